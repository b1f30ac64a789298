import type { Where } from "better-auth/types";
import fc from "fast-check";

export const MODELS = ["user", "session", "account", "verification"] as const;
export type Model = (typeof MODELS)[number];

/** Three tenants and the platform. */
export const SCOPES = ["ta", "tb", "tc", null] as const;
export type Scope = (typeof SCOPES)[number];
export const stored = (scope: Scope) => scope ?? "";

export type StoredRow = Record<string, unknown>;
export type Population = Record<Model, StoredRow[]>;

type Method =
  | "create"
  | "findOne"
  | "findMany"
  | "count"
  | "update"
  | "updateMany"
  | "delete"
  | "deleteMany"
  | "consumeOne"
  | "incrementOne";

export interface Call {
  method: Method;
  inTransaction: boolean;
  input: Record<string, unknown> & {
    model: Model;
    data?: Record<string, unknown>;
    update?: Record<string, unknown>;
  };
}

// Small pools, so that values meet: in one scope, and across the border.
const NAMES = ["ann", "bob", "Ann"];
const EMAILS = ["ann@x.com", "bob@x.com", "eve@x.com"];
const IDENTIFIERS = ["reset:ann@x.com", "otp:ann@x.com", "otp:bob@x.com"];
const PROVIDERS = ["credential", "google"];
const CREDITS = [0, 1, 2];
const DAYS = [1, 2, 3].map((day) => new Date(Date.UTC(2030, 0, day)));
const times = { createdAt: DAYS[0], updatedAt: DAYS[0] };

/** The people of a scope, with what belongs to them. */
function inhabitants(scope: Scope): fc.Arbitrary<Population> {
  const where = scope ?? "p";
  const tenantId = stored(scope);
  const belongings = fc.record({
    name: fc.constantFrom(...NAMES),
    credits: fc.constantFrom(...CREDITS),
    sessions: fc.array(fc.constantFrom(...DAYS), { maxLength: 2 }),
    accounts: fc.uniqueArray(fc.constantFrom(...PROVIDERS), { maxLength: 2 }),
  });
  return fc
    .record({
      people: fc.array(belongings, { maxLength: EMAILS.length }),
      identifiers: fc.array(fc.constantFrom(...IDENTIFIERS), { maxLength: 3 }),
    })
    .map(({ people, identifiers }) => ({
      user: people.map(({ name, credits }, i) => ({
        id: `u-${where}-${i}`,
        name,
        credits,
        email: EMAILS[i],
        emailVerified: false,
        image: null,
        tenantId,
        ...times,
      })),
      session: people.flatMap(({ sessions }, i) =>
        sessions.map((expiresAt, j) => ({
          id: `s-${where}-${i}-${j}`,
          token: `t-${where}-${i}-${j}`,
          userId: `u-${where}-${i}`,
          ipAddress: null,
          userAgent: null,
          expiresAt,
          tenantId,
          ...times,
        })),
      ),
      account: people.flatMap(({ accounts }, i) =>
        accounts.map((providerId, j) => ({
          id: `a-${where}-${i}-${j}`,
          // The same account at the provider signs in everywhere.
          accountId: `subject-${i}`,
          providerId,
          userId: `u-${where}-${i}`,
          tenantId,
          ...times,
        })),
      ),
      verification: identifiers.map((identifier, i) => ({
        id: `v-${where}-${i}`,
        identifier,
        value: `value-${i}`,
        expiresAt: DAYS[i],
        tenantId,
        ...times,
      })),
    }));
}

/** Rows of all scopes, mixed. */
export const populations: fc.Arbitrary<Population> = fc
  .tuple(...SCOPES.map(inhabitants))
  .chain((scopes) => {
    const mixed = (model: Model) => {
      const rows = scopes.flatMap((scope) => scope[model]);
      return fc.shuffledSubarray(rows, { minLength: rows.length });
    };
    return fc.record({
      user: mixed("user"),
      session: mixed("session"),
      account: mixed("account"),
      verification: mixed("verification"),
    });
  });

const TEXT_FIELDS: Record<Model, string[]> = {
  user: ["id", "name", "email"],
  session: ["id", "token", "userId"],
  account: ["id", "userId", "accountId", "providerId"],
  verification: ["id", "identifier", "value"],
};
const OTHER_FIELDS: Record<Model, [field: string, values: (number | Date)[]][]> = {
  user: [["credits", CREDITS]],
  session: [["expiresAt", DAYS]],
  account: [],
  verification: [["expiresAt", DAYS]],
};
const COMPARISONS = ["eq", "ne", "lt", "lte", "gt", "gte"] as const;

/** A condition on a field: about values that exist, on either side of the border, and parts of them. */
function clauses(model: Model, population: Population): fc.Arbitrary<Where> {
  const connector = fc.constantFrom("AND" as const, "OR" as const, undefined);
  const texts = fc.constantFrom(...TEXT_FIELDS[model], "tenantId").chain((field) => {
    const values = [...new Set(population[model].map((row) => String(row[field]))), "", "nobody"];
    const value = fc.constantFrom(...values);
    return fc.oneof(
      { weight: 3, arbitrary: fc.record({ field: fc.constant(field), value, connector }) },
      fc.record({
        field: fc.constant(field),
        operator: fc.constantFrom(...COMPARISONS),
        value,
        connector,
      }),
      fc.record({
        field: fc.constant(field),
        operator: fc.constantFrom(
          "contains" as const,
          "starts_with" as const,
          "ends_with" as const,
        ),
        value: fc.oneof(
          value,
          value.map((text) => text.slice(0, 3)),
          value.map((text) => text.slice(-2)),
        ),
        connector,
      }),
      fc.record({
        field: fc.constant(field),
        operator: fc.constantFrom("in" as const, "not_in" as const),
        value: fc.uniqueArray(value, { maxLength: 4 }),
        connector,
      }),
    );
  });
  const others = OTHER_FIELDS[model].map(([field, values]) =>
    fc.record({
      field: fc.constant(field),
      operator: fc.constantFrom(...COMPARISONS),
      value: fc.constantFrom(...values),
      connector,
    }),
  );
  return fc.oneof({ weight: 4, arbitrary: texts }, ...others) as fc.Arbitrary<Where>;
}

function joins(model: Model): fc.Arbitrary<Record<string, unknown> | undefined> {
  const limited = fc.constantFrom(true, { limit: 1 });
  const none = fc.constant(undefined);
  if (model === "user") {
    return fc.oneof(none, fc.record({ session: limited, account: limited }, { requiredKeys: [] }));
  }
  return model === "verification" ? none : fc.constantFrom(undefined, { user: true });
}

function changes(model: Model, userIds: string[]): fc.Arbitrary<Record<string, unknown>> {
  const tenantId = fc.constantFrom<string | null>("ta", "tb", "", null);
  const optional = { requiredKeys: [] };
  if (model === "user") {
    return fc
      .record({ credits: fc.constantFrom(...CREDITS), tenantId }, optional)
      .chain((rest) => fc.constantFrom(...NAMES).map((name) => ({ ...rest, name })));
  }
  if (model === "verification") {
    return fc.record({ tenantId }, optional).map((rest) => ({ ...rest, value: "changed" }));
  }
  const field = model === "session" ? "userAgent" : "scope";
  const userId = fc.constantFrom(...userIds, "u-nobody");
  return fc.record({ userId, tenantId }, optional).map((rest) => ({ ...rest, [field]: "changed" }));
}

/** A new row, which may claim to belong elsewhere. */
function creations(model: Model, userIds: string[]): fc.Arbitrary<Record<string, unknown>> {
  const claim = fc.constantFrom("ta", "tb", "", undefined);
  const owner = fc.constantFrom(...userIds, "u-nobody");
  return fc.tuple(claim, owner, fc.uuid()).map(([tenantId, userId, id]) => {
    const row = { id, tenantId, ...times };
    if (model === "user")
      return { ...row, name: "new", email: `${id}@x.com`, emailVerified: false };
    if (model === "session") return { ...row, userId, token: `t-${id}`, expiresAt: DAYS[1] };
    if (model === "account") return { ...row, userId, accountId: id, providerId: "google" };
    return { ...row, identifier: IDENTIFIERS[0], value: id, expiresAt: DAYS[1] };
  });
}

// SQL leaves open which of several rows is meant by calls that are about one, and their order.
const ABOUT_ONE: Method[] = ["findOne", "update", "delete", "consumeOne", "incrementOne"];
const ABOUT_ALL: Method[] = ["create", "findMany", "count", "updateMany", "deleteMany"];

/** Any call of the adapter that an endpoint could make. */
export function callsFor(population: Population, kind: "memory" | "sqlite"): fc.Arbitrary<Call> {
  const userIds = population.user.map(({ id }) => String(id));
  return fc
    .record({
      model: fc.constantFrom(...MODELS),
      method: fc.constantFrom(...ABOUT_ALL, ...ABOUT_ONE),
      inTransaction: fc.boolean(),
    })
    .chain(({ model: chosen, method, inTransaction }) => {
      // Only users have a number to count with.
      const model = method === "incrementOne" ? "user" : chosen;
      const pinned = kind === "sqlite" && ABOUT_ONE.includes(method);
      const ids = population[model].map(({ id }) => String(id));
      const id = fc.constantFrom(...ids, "nobody").map((value) => [{ field: "id", value }]);
      const where = pinned ? id : fc.array(clauses(model, population), { maxLength: 3 });
      const column = fc.constantFrom(...TEXT_FIELDS[model], ...OTHER_FIELDS[model].map(([f]) => f));
      const page = {
        sortBy: fc.record({
          field: kind === "sqlite" ? fc.constant("id") : column,
          direction: fc.constantFrom("asc", "desc"),
        }),
        limit: fc.integer({ min: 1, max: 5 }),
        offset: fc.integer({ min: 0, max: 3 }),
        select: fc.uniqueArray(column, { minLength: 1 }).map((fields) => [...fields, "id"]),
        join: joins(model),
      };
      const sorted = kind === "sqlite" ? (["sortBy"] as const) : [];
      const input = (): fc.Arbitrary<Record<string, unknown>> => {
        switch (method) {
          case "create":
            return fc.record({ data: creations(model, userIds), forceAllowId: fc.constant(true) });
          case "findOne":
            return fc.record(
              { where, select: page.select, join: page.join },
              { requiredKeys: ["where"] },
            );
          case "findMany":
            return fc.record({ where, ...page }, { requiredKeys: [...sorted] });
          case "update":
          case "updateMany":
            return fc.record({ where, update: changes(model, userIds) });
          case "incrementOne":
            return fc.record(
              {
                where,
                increment: fc.constantFrom({ credits: 1 }, { credits: -2 }),
                set: fc.constantFrom({ name: "bob" }),
              },
              { requiredKeys: ["where", "increment"] },
            );
          default:
            return fc.record({ where });
        }
      };
      return input().map((rest) => ({ method, inTransaction, input: { model, ...rest } }) as Call);
    });
}
