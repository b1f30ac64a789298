import { modelFinder, type Subject } from "../instance/subject";
import type { Row } from "../options";
import { parse } from "../sides/browser";
import { type Place, SIDES, type SideName } from "../sides/places";
import type { Tables } from "./rows";

/** Tells whose a row is: by its tenant, by who made it, or by what it refers to. */
export function createOwnership(subject: Subject, places: Place[], made: Map<string, SideName>) {
  const sideOfTenant = new Map(places.map(({ name, tenantId }) => [tenantId ?? "", name]));
  const find = modelFinder(subject);
  const owners = new Map(made);

  function ownerOf(model: string, row: Row): SideName | undefined {
    if (subject.shared.includes(model)) return undefined;
    if (model === "tenant") return sideOfTenant.get(String(row.id));
    const belongs = subject.confined.includes(model) || model === "tenantOauthConfig";
    if (belongs) return sideOfTenant.get(String(row.tenantId ?? ""));
    return owners.get(keyOf(model, row.id)) ?? ownerOfParent(model, row);
  }

  function ownerOfParent(model: string, row: Row): SideName | undefined {
    for (const [field, { references }] of Object.entries(subject.ctx.tables[model]?.fields ?? {})) {
      const parent = find(references?.model ?? field.replace(/Id$/, ""));
      const owner = parent && owners.get(keyOf(parent, row[field]));
      if (owner) return owner;
    }
    return undefined;
  }

  return {
    ownerOf,
    /** Remembers whose the rows of a snapshot are. */
    learn(tables: Tables) {
      for (const [model, table] of tables) {
        for (const [id, { row }] of table) {
          const owner = ownerOf(model, row);
          if (owner) owners.set(keyOf(model, id), owner);
        }
      }
    },
    /** Whose a row of the application's own is, by the tenants and users that it names. */
    namedIn(row: object): SideName | undefined {
      for (const [name, value] of Object.entries(row)) {
        // A short number may be anything, unless the column says that it is a person.
        const isId = String(value).length >= 8 || /user|owner|author|member/i.test(name);
        if (!value || !isId) continue;
        const owner = sideOfTenant.get(String(value)) ?? owners.get(keyOf("user", value));
        if (owner) return owner;
      }
      return undefined;
    },
    /** Whose an entry of secondary storage is, by its key, its label, and the people in it. */
    ownersOfEntry(key: string, value: string | undefined): Set<SideName> {
      if (value === undefined) return new Set();
      const ids = [tenantInKey(key), tenantInLabel(value)].filter((id) => id !== undefined);
      const named = (ids.length ? ids : [""]).map((id) => sideOfTenant.get(id));
      const text = `${key} ${value}`;
      const met = SIDES.filter((side) => userIdsOf(side).some((id) => text.includes(id)));
      return new Set([...named, ...met].filter((side) => side !== undefined));
    },
  };

  /** Numbers are found in any text. */
  function userIdsOf(side: SideName): string[] {
    return [...owners]
      .filter(([key, owner]) => owner === side && key.startsWith("user "))
      .map(([key]) => key.slice("user ".length))
      .filter((id) => id.length >= 8);
  }
}

export type Ownership = ReturnType<typeof createOwnership>;

export const keyOf = (model: string, id: unknown) => `${model} ${id}`;

function tenantInKey(key: string): string | undefined {
  const tenantId = /^tenant:([^:]+):/.exec(key)?.[1];
  return tenantId && decodeURIComponent(tenantId);
}

function tenantInLabel(value: string): string | undefined {
  const parsed = parse(value) as { tenantAuth?: { tenantId?: string } } | null | undefined;
  return parsed?.tenantAuth?.tenantId || undefined;
}
