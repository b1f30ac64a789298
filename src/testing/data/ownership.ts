import { parseJSON } from "../../core/utils";
import { modelFinder, type Subject } from "../instance/subject";
import type { Row } from "../options";
import { type Place, SIDES, type SideName } from "../sides/places";
import type { Tables } from "./rows";

/** Finds the owner of a row: by its tenant, by the side that made it, or by what it refers to. */
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
    /** Remembers the owners of the rows of a snapshot. */
    learn(tables: Tables) {
      for (const [model, table] of tables) {
        for (const [id, { row }] of table) {
          const owner = ownerOf(model, row);
          if (owner) owners.set(keyOf(model, id), owner);
        }
      }
    },
    /** The owner of a row of the application's own, by the tenants and users that it names. */
    namedIn(row: object): SideName | undefined {
      for (const [name, value] of Object.entries(row)) {
        // A short number may be anything, unless the column says that it is a user.
        const isId = String(value).length >= 8 || /user|owner|author|member/i.test(name);
        if (!value || !isId) continue;
        const owner = sideOfTenant.get(String(value)) ?? owners.get(keyOf("user", value));
        if (owner) return owner;
      }
      return undefined;
    },
    /** The owners of an entry of secondary storage, by its key, its label, and the users in it. */
    ownersOfEntry(key: string, value: string | undefined): Set<SideName> {
      if (value === undefined) return new Set();
      const inKey = /^tenant:([^:]+):/.exec(key)?.[1];
      const { tenantAuth } = Object(parseJSON(value)) as { tenantAuth?: { tenantId?: string } };
      const ids = [inKey && decodeURIComponent(inKey), tenantAuth?.tenantId].filter(Boolean);
      const named = (ids.length ? ids : [""]).map((id) => sideOfTenant.get(id ?? ""));
      const text = `${key} ${value}`;
      const met = SIDES.filter((side) => userIdsOf(side).some((id) => text.includes(id)));
      return new Set([...named, ...met].filter((side) => side !== undefined));
    },
  };

  function userIdsOf(side: SideName): string[] {
    // Not short ones: numbers are found in any text.
    return [...owners].flatMap(([key, owner]) =>
      owner === side && /^user .{8}/.test(key) ? [key.slice("user ".length)] : [],
    );
  }
}

export type Ownership = ReturnType<typeof createOwnership>;

export const keyOf = (model: string, id: unknown) => `${model} ${id}`;
