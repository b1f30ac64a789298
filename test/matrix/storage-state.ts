import { isDeepStrictEqual } from "node:util";
import { SIDES, type Side, type SideName } from "./sides";

type Entries = Map<string, string>;

/** What is in secondary storage, who owns it, and the way back to it. */
export function watchStorage(
  entries: Entries,
  sides: Side[],
  userIdsOf: (side: SideName) => string[],
) {
  const before = new Map(entries);
  const ownersOf = createOwnership(sides, userIdsOf);

  const changed = () => {
    const keys = [...before.keys(), ...entries.keys()];
    return [...new Set(keys)].filter((key) => before.get(key) !== entries.get(key));
  };

  return {
    textsOf(side: SideName): string[] {
      const own = [...before].filter(([key, value]) => ownersOf(key, value).has(side));
      // A session is stored under its token, which only its tenant may know.
      return own.flatMap(([key, value]) => [key, ...textsIn(value)]);
    },

    /** The entries of the sides that a request has changed; undoes whatever it did. */
    changesOf(names: SideName[]): string[] {
      const found: string[] = [];
      for (const key of changed()) {
        const [was, is] = [before.get(key), entries.get(key)];
        const owners = new Set([...ownersOf(key, was), ...ownersOf(key, is)]);
        const victims = names.filter((side) => owners.has(side) && !isBookkeeping(key, was, is));
        if (victims.length)
          found.push(`storage of ${victims.join(" and ")}: ${kind(was, is)} ${key}`);
        if (was === undefined) entries.delete(key);
        else entries.set(key, was);
      }
      return found;
    },
  };
}

const kind = (was: string | undefined, is: string | undefined) =>
  was === undefined ? "new" : is === undefined ? "gone" : "changed";

/**
 * Whose an entry is, by its key, by its label, and by the people in it. That should be one side;
 * where it is two, each of them may object to what happens to it.
 */
function createOwnership(sides: Side[], userIdsOf: (side: SideName) => string[]) {
  const sideOfTenant = new Map(sides.map(({ name, tenantId }) => [tenantId, name]));
  const people = SIDES.map((side) => [side, userIdsOf(side)] as const);
  return (key: string, value: string | undefined): Set<SideName> => {
    if (value === undefined) return new Set();
    const tenantIds = [tenantInKey(key), tenantInLabel(value)].filter((id) => id !== undefined);
    const named = (tenantIds.length ? tenantIds : [null]).map((id) => sideOfTenant.get(id));
    const text = `${key} ${value}`;
    const met = people.flatMap(([side, ids]) => (ids.some((id) => text.includes(id)) ? side : []));
    return new Set([...named, ...met].filter((side) => side !== undefined));
  };
}

/** When a key was last used is bookkeeping, wherever it is kept. */
function isBookkeeping(key: string, was: string | undefined, is: string | undefined): boolean {
  if (!/(^|:)api-key:/.test(key) || was === undefined || is === undefined) return false;
  const content = (value: string) => opened(value, ["lastRequest", "updatedAt"]);
  return isDeepStrictEqual(content(was), content(is));
}

/** What is in a value, also in JSON that is inside of JSON. */
function opened(value: unknown, without: string[] = []): unknown {
  const parsed = typeof value === "string" ? parse(value) : value;
  if (typeof parsed !== "object" || parsed === null) return value;
  const fields = Object.entries(parsed).filter(([name]) => !without.includes(name));
  return Object.fromEntries(fields.map(([name, field]) => [name, opened(field, without)]));
}

function tenantInKey(key: string): string | undefined {
  const tenantId = /^tenant:([^:]+):/.exec(key)?.[1];
  return tenantId && decodeURIComponent(tenantId);
}

function tenantInLabel(value: string): string | undefined {
  const parsed = parse(value) as { tenantAuth?: { tenantId?: string } } | null;
  return parsed?.tenantAuth?.tenantId || undefined;
}

function textsIn(value: unknown): string[] {
  const content = opened(value);
  if (typeof content === "string") return [content];
  return Object.values(content ?? {}).flatMap(textsIn);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
