import { randomBytes } from "node:crypto";
import type { BetterAuthPlugin } from "better-auth";
import type { DBFieldAttribute, DBPrimitive } from "better-auth/db";
import { organization, phoneNumber, username } from "better-auth/plugins";
import type { DBAdapter, Where } from "better-auth/types";
import { describe, expect, it, vi } from "vitest";
import { getTenantId, prefixUniqueValues, runInTenant } from "../../../src/index";
import { checkDeployment } from "../../../src/testing/index";
import { type DatabaseKind, databases, type TestDatabase } from "../../support/database";
import { createInstance, PASSWORD } from "../../support/instance";
import { createMemory, mapStorage } from "../../support/stores";
import {
  createWorld,
  EMAIL,
  expectRefused,
  outcome,
  PLACES,
  type Place,
  type Send,
  type World,
  type WorldOptions,
} from "../../support/world";

const MODELS = ["organization", "member", "invitation"];

const official = (send: Send) => [
  username(),
  phoneNumber({
    sendOTP: send("code"),
    signUpOnVerification: { getTempEmail: (phone) => `${phone}@phone.example.com` },
  }),
  organization(),
];

const createOfficial = (options: WorldOptions = {}) =>
  createWorld({ plugins: official, tenant: { scopedModels: MODELS }, ...options });

const jane = { name: "Jane", email: EMAIL, username: "Jane", password: PASSWORD };
const NOBODY = "INVALID_USERNAME_OR_PASSWORD";

type Row = Record<string, unknown>;
type Signed = { user: Row };

/** Runs where a place is, as server code does. */
const inside = <T>(
  { ids }: Pick<World, "ids">,
  place: Place,
  run: () => Promise<T>,
): Promise<T> => {
  const id = ids[place];
  return id === null ? run() : runInTenant(id, run);
};

describe.each(databases)("R15: on %s", (database) => {
  it("the same username is another user in each tenant, and signs in there", async () => {
    const world = await createOfficial({ database });
    const ids = new Set<unknown>();
    for (const place of PLACES) {
      const ask = () => world.at(place).post("/is-username-available", { username: "jane" });
      expect((await ask()).data).toEqual({ available: true });
      const password = `password of ${place}`;
      const person = world.at(place);
      const { data } = await person.post<Signed>("/sign-up/email", { ...jane, password });
      expect(data.user).toMatchObject({ username: "jane", displayUsername: "Jane" });
      ids.add(data.user.id);
      expect((await ask()).data).toEqual({ available: false });
      const again = { ...jane, email: "other@example.com" };
      expectRefused(await person.post("/sign-up/email", again), 400, "USERNAME_IS_ALREADY_TAKEN");
    }
    expect(ids.size).toBe(3);
    for (const place of PLACES) {
      for (const other of PLACES) {
        const password = `password of ${other}`;
        const browser = world.at(place);
        const answer = await browser.post<Signed>("/sign-in/username", { ...jane, password });
        if (place !== other) expectRefused(answer, 401, NOBODY);
        else expect(answer.data.user).toMatchObject({ username: "jane" });
        const session = await browser.get<Signed | null>("/get-session");
        expect(session.data?.user.username).toBe(place === other ? "jane" : undefined);
      }
    }
    const stored = await world.database.query(
      `select username from ${world.database.quote("user")} order by username`,
    );
    const expected = [`${world.ids.acme}~jane`, `${world.ids.globex}~jane`, "jane"];
    expect(stored.map((row) => row.username).sort()).toEqual(expected.sort());
  });

  it("the same phone number signs up and in, in each tenant", async () => {
    const world = await createOfficial({ database });
    const phone = { phoneNumber: "+15551234567" };
    const enter = async (place: Place) => {
      await world.at(place).post("/phone-number/send-otp", phone);
      const body = { ...phone, code: world.lastMail("code").code };
      return (await world.at(place).post<Signed>("/phone-number/verify", body)).data.user;
    };
    const users = [];
    for (const place of PLACES) users.push(await enter(place));
    expect(users).toMatchObject([phone, phone, phone]);
    expect(new Set(users.map(({ id }) => id)).size).toBe(3);
    for (const [index, place] of PLACES.entries()) {
      expect((await enter(place)).id).toBe(users[index]?.id);
    }
  });

  it("the same slug is another organization in each tenant", async () => {
    const world = await createOfficial({ database });
    const people = await world.janes();
    const create = { name: "Sales", slug: "sales" };
    const made = new Map<Place, unknown>();
    for (const place of PLACES) {
      const { status, data } = await people[place].post<Row>("/organization/create", create);
      expect([status, data.slug]).toEqual([200, "sales"]);
      made.set(place, data.id);
      const again = await people[place].post("/organization/create", create);
      expect(outcome(again)).toEqual([400, "ORGANIZATION_ALREADY_EXISTS"]);
    }
    for (const place of PLACES) {
      const query = { organizationSlug: "sales" };
      const full = await people[place].get<Row>("/organization/get-full-organization", { query });
      expect(full.data).toMatchObject({ id: made.get(place), slug: "sales" });
      const list = await people[place].get<Row[]>("/organization/list");
      expect(list.data).toMatchObject([{ id: made.get(place), slug: "sales" }]);
      const taken = await people[place].post("/organization/check-slug", { slug: "sales" });
      expect(taken.status).toBe(400);
      const data = { slug: "sales", name: "Renamed" };
      const change = { data, organizationId: made.get(place) };
      const update = await people[place].post<Row>("/organization/update", change);
      expect(update.data).toMatchObject(data);
    }
  });

  it("of many users who want a name at once, one in each tenant gets it", async () => {
    const world = await createOfficial({ database });
    const signUp = (place: Place, n: number) =>
      world.at(place).post("/sign-up/email", { ...jane, email: `${n}@example.com` });
    const all = PLACES.flatMap((place) => Array.from({ length: 8 }, (_, n) => signUp(place, n)));
    const answers = await Promise.all(all);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
    for (const place of PLACES) expect(await world.rowsIn(place, "user")).toHaveLength(1);
    for (const answer of answers) expect(answer.status).toBeLessThan(500);
  });

  it("a value that does not fit behind the prefix is a 400", async () => {
    const world = await createFields({ code: CODE }, { database });
    for (const length of [255, 10_000]) {
      // As random as a text that no index can hold: PostgreSQL compresses others.
      const code = randomBytes(length).toString("base64").slice(0, length);
      const body = { ...jane, email: `${length}@example.com`, code };
      const answer = await world.at("acme").post("/sign-up/email", body);
      const fits = database === "sqlite" || (database === "postgres" && length === 255);
      if (fits) expect(answer.status).toBe(200);
      else expectRefused(answer, 400, "INVALID_VALUE");
    }
  });
});

const CODE = { type: "string", required: false, unique: true } satisfies DBFieldAttribute;

/** Users with fields of the application's. */
const createFields = (
  additionalFields: Record<string, DBFieldAttribute>,
  { auth, ...options }: WorldOptions = {},
) => createWorld({ auth: { ...auth, user: { additionalFields } }, ...options });

const OPERATORS: [where: Partial<Where>, found: string[]][] = [
  [{ value: "anna" }, ["anna"]],
  [{ operator: "eq", value: "ANNA", mode: "insensitive" }, ["anna"]],
  [{ operator: "ne", value: "anna" }, ["", "bob", "carl~x"]],
  [{ operator: "in", value: ["anna", "bob", "zoe"] }, ["anna", "bob"]],
  [{ operator: "in", value: ["BOB"], mode: "insensitive" }, ["bob"]],
  [{ operator: "not_in", value: ["anna", "bob"] }, ["", "carl~x"]],
  [{ operator: "starts_with", value: "an" }, ["anna"]],
  [{ operator: "starts_with", value: "AN", mode: "insensitive" }, ["anna"]],
  [{ operator: "ends_with", value: "na" }, ["anna"]],
  [{ operator: "ends_with", value: "NA", mode: "insensitive" }, ["anna"]],
  [{ operator: "ends_with", value: "~x" }, ["carl~x"]],
  [{ operator: "contains", value: "ob" }, ["bob"]],
  [{ operator: "contains", value: "OB", mode: "insensitive" }, ["bob"]],
  [{ operator: "contains", value: "~" }, ["carl~x"]],
  [{ operator: "contains", value: "missing" }, []],
  [{ operator: "lt", value: "bob" }, ["", "anna"]],
  [{ operator: "lte", value: "bob" }, ["", "anna", "bob"]],
  [{ operator: "gt", value: "bob" }, ["carl~x"]],
  [{ operator: "gte", value: "bob" }, ["bob", "carl~x"]],
];

/** What needs no SQL. */
type Ground = DatabaseKind | "memory";
const openGround = (ground: Ground): DatabaseKind | TestDatabase =>
  ground === "memory" ? createMemory().database : ground;

describe.each<Ground>(["memory", ...databases])("operators on %s", (ground) => {
  /** Four people with codes, and two without, in both tenants. */
  async function populate() {
    const { context, createTenant } = await createInstance({
      database: openGround(ground),
      migrate: ground !== "memory",
      auth: { user: { additionalFields: { code: { ...CODE, fieldName: "the_code" } } } },
    });
    const tenants = [(await createTenant()).id, (await createTenant()).id];
    const codes = ["anna", "bob", "carl~x", "", null, undefined];
    for (const tenantId of tenants) {
      for (const [index, code] of codes.entries()) {
        const data = { name: "N", email: `${index}@example.com`, code };
        await runInTenant(tenantId, () => context.adapter.create({ model: "user", data }));
      }
    }
    const [tenantId = ""] = tenants;
    const here = <T>(run: (adapter: DBAdapter) => Promise<T>) =>
      runInTenant(tenantId, () => run(context.adapter as unknown as DBAdapter));
    const call = <T = Row>(method: Exclude<keyof DBAdapter, "id" | "options">, input: object) =>
      here((adapter) =>
        (adapter[method] as (input: object) => Promise<T>)({ model: "user", ...input }),
      );
    const find = async (...where: Where[]) => {
      const rows = await call<Row[]>("findMany", { where });
      expect(await call("count", { where })).toBe(rows.length);
      return rows.map(({ code }) => code).filter((code) => code !== null && code !== undefined);
    };
    return { here, call, find, tenantId };
  }

  it("work on the value, by the name of the field and of its column", async () => {
    const { find, tenantId } = await populate();
    for (const field of ["code", "the_code"]) {
      for (const [where, found] of OPERATORS) {
        // In memory, better-auth's adapter cannot compare the start of a null.
        if (ground === "memory" && where.operator === "starts_with") continue;
        const codes = await find({ field, ...where } as Where);
        expect(codes.sort(), JSON.stringify({ field, ...where })).toEqual(found);
      }
      // The prefix is no part of the value: neither whole, nor in part, nor together with it.
      const letter = [...tenantId].find((one) => !/[anbobcrlx]/i.test(one)) ?? "";
      for (const text of [tenantId, letter, `${tenantId}~`, `${tenantId.at(-1)}~a`]) {
        for (const operator of ["contains", "ends_with", "eq", "in"] as const) {
          const value = operator === "in" ? [text] : text;
          expect(await find({ field, operator, value }), `${operator} ${text}`).toEqual([]);
        }
      }
      expect(await find({ field, operator: "ends_with", value: `${tenantId.at(-1)}~` })).toEqual(
        [],
      );
    }
  });

  it("work together, with null, sorted, selected, and where rows are changed", async () => {
    const { find, call } = await populate();
    const one = (code: string, connector: "AND" | "OR" = "AND"): Where[] => [
      { field: "code", value: code, connector },
    ];
    expect((await find(...one("anna", "OR"), ...one("bob", "OR"))).sort()).toEqual(["anna", "bob"]);
    expect(await call("count", { where: [{ field: "code", value: null }] })).toBe(2);

    const sorted = await call<Row[]>("findMany", {
      where: [{ field: "code", operator: "gte", value: "a" }],
      sortBy: { field: "code", direction: "desc" },
    });
    expect(sorted.map(({ code }) => code)).toEqual(["carl~x", "bob", "anna"]);
    const selected = await call("findOne", { where: one("anna"), select: ["code"] });
    expect(selected).toEqual({ code: "anna" });

    const update = { code: "anna", name: "Renamed" };
    expect(await call("update", { where: one("anna"), update })).toMatchObject(update);
    // The memory adapter has no unique values.
    if (ground === "memory") return;
    const taken = call("update", { where: one("bob"), update });
    await expect(taken).rejects.toMatchObject({ statusCode: 422 });
    const many = await call("updateMany", { where: one("bob"), update: { code: "ben" } });
    expect([many, await find(...one("ben"))]).toEqual([1, ["ben"]]);
    const set = { code: "bert" };
    const incremented = await call("incrementOne", { where: one("ben"), increment: {}, set });
    expect(incremented).toMatchObject(set);
    expect(await call("consumeOne", { where: one("bert") })).toMatchObject(set);
    await call("delete", { where: one("anna") });
    expect(await call("deleteMany", { where: one("carl~x") })).toBe(1);
    expect(await find()).toEqual([""]);
  });

  it("work in a transaction", async () => {
    const { here } = await populate();
    const where = [{ field: "code", value: "anna" }];
    const seen = await here((adapter) =>
      adapter.transaction(async (inner) => [
        await inner.findOne<Row>({ model: "user", where }),
        await inner.update<Row>({ model: "user", where, update: { code: "ann" } }),
      ]),
    );
    expect(seen.map((row) => row?.code)).toEqual(["anna", "ann"]);
  });
});

describe("what other code sees", () => {
  it("hooks, mails, storages and cookies have the value without the prefix", async () => {
    const seen: unknown[] = [];
    const note = (event: string) => async (user: Row) => {
      seen.push([event, getTenantId() !== null, user.username]);
    };
    const { storage, entries } = mapStorage();
    const world = await createOfficial({
      auth: {
        secondaryStorage: storage,
        session: { cookieCache: { enabled: true } },
        databaseHooks: {
          user: {
            create: { before: note("creating"), after: note("created") },
            update: { before: note("updating"), after: note("updated") },
          },
        },
      },
    });
    const person = world.at("acme");
    await person.post("/sign-up/email", jane);
    await person.post("/update-user", { username: "janet" });
    expect(seen).toEqual([
      ["creating", true, "jane"],
      ["created", true, "jane"],
      ["updating", true, "janet"],
      ["updated", true, "janet"],
    ]);
    const session = await person.get<Signed>("/get-session");
    expect(session.data.user.username).toBe("janet");
    const stored = [...entries.values()].filter((value) => value.includes("janet"));
    expect(stored.length).toBeGreaterThan(0);
    for (const value of stored) expect(value).not.toContain("~janet");
  });

  it("joins show users without the prefix", async () => {
    for (const joins of [true, false]) {
      const world = await createOfficial({ auth: { advanced: { database: { joins } } } });
      const person = world.at("acme");
      await person.post("/sign-up/email", jane);
      const session = await person.get<Signed>("/get-session");
      expect(session.data.user.username).toBe("jane");
      const rows = await inside(world, "acme", () =>
        world.context.adapter.findMany<{ user: Row }>({ model: "account", join: { user: true } }),
      );
      expect(rows.map(({ user }) => user.username)).toEqual(["jane"]);
    }
  });

  it("an operator sees values of all tenants without the prefix, and finds equal ones", async () => {
    const world = await createOfficial();
    const operator = await world.operator();
    for (const place of PLACES) {
      await world.at(place).post("/sign-up/email", jane);
      const other = { ...jane, email: "x@example.com", username: "not.jane" };
      await world.at(place).post("/sign-up/email", other);
    }
    const list = async (query: Record<string, string>, where: Place = "platform") => {
      const browser = world.at(where, operator);
      const { data } = await browser.get<{ users: Row[]; total: number }>("/admin/list-users", {
        query,
      });
      const found = data.users.filter(({ username }) => username).map(({ username }) => username);
      return [found, data.total];
    };
    const [all] = await list({});
    expect(all).toEqual(["jane", "not.jane", "jane", "not.jane", "jane", "not.jane"]);
    const filter = { filterField: "username", filterValue: "jane" };
    expect(await list(filter)).toEqual([["jane", "jane", "jane"], 3]);
    expect(await list(filter, "acme")).toEqual([["jane"], 1]);
    expect(await list({ ...filter, filterOperator: "in" })).toEqual([["jane", "jane", "jane"], 3]);
    // better-auth's answer to a filter that fails.
    expect(await list({ ...filter, filterOperator: "ne" })).toEqual([[], 0]);
    const within = { ...filter, filterOperator: "contains", filterValue: "t.ja" };
    expect(await list(within, "acme")).toEqual([["not.jane"], 1]);
  });
});

describe("threat: a value that looks like a tenant's", () => {
  it("cannot be chosen on the platform, where it would be taken in the tenant", async () => {
    const world = await createFields({ code: CODE });
    const person = await world.as("jane", "platform");
    const { acme } = world.ids;
    const signUp = (place: Place, more: object) =>
      world.at(place).post<Signed>("/sign-up/email", { ...jane, ...more });
    for (const between of ["~", "\uff5e"]) {
      for (const code of [`${acme}${between}jane`, `x${between}`, `a\u200bb${between}c`]) {
        for (const attempt of [
          () => signUp("platform", { email: "x@example.com", code }),
          () => person.post("/update-user", { code }),
        ]) {
          expectRefused(await world.unchanged(attempt), 400, "INVALID_VALUE");
        }
      }
    }
    const code = `${acme}~jane`;
    expect((await signUp("acme", { code: "jane" })).status).toBe(200);
    // In a tenant, even its own prefix is only a part of the value.
    for (const place of ["acme", "globex"] as const) {
      const { data } = await signUp(place, { email: "y@example.com", code });
      expect(data.user.code).toBe(code);
    }
  });

  it("cannot be made by a transform of the field", async () => {
    const input = (value: unknown) => String(value).replaceAll(".", "").toUpperCase();
    const world = await createFields({ code: { ...CODE, transform: { input } } });
    const code = `${world.ids.acme}.\u007ejane`;
    const answer = await world.at("platform").post("/sign-up/email", { ...jane, code });
    expectRefused(answer, 400, "INVALID_VALUE");
    // The prefix stays as it is.
    for (const place of PLACES) {
      const body = { ...jane, code: "a.b" };
      const { data } = await world.at(place).post<Signed>("/sign-up/email", body);
      expect(data.user.code).toBe("AB");
      const where = [{ field: "code", value: "AB" }];
      const find = () => world.context.adapter.findOne<Row>({ model: "user", where });
      expect(await inside(world, place, find)).toMatchObject({ code: "AB" });
    }
  });

  it("gets its prefix where a transform makes it of nothing", async () => {
    const input = (value: DBPrimitive) => value ?? "made";
    const world = await createFields({ code: { ...CODE, transform: { input } } });
    for (const place of PLACES) {
      const { data } = await world.at(place).post<Signed>("/sign-up/email", jane);
      expect(data.user.code).toBe("made");
      const again = await world
        .at(place)
        .post("/sign-up/email", { ...jane, email: "y@example.com" });
      expectRefused(again, 422, "VALUE_TAKEN");
    }
  });

  it("is the same in joined rows", async () => {
    const world = await createFields({ code: CODE });
    const code = `${world.ids.acme}~boss`;
    const mallory = world.at("acme");
    await mallory.post("/sign-up/email", { ...jane, code });
    expect((await mallory.get<Signed>("/get-session")).data.user.code).toBe(code);
  });

  it("is refused in no time, however long it is", async () => {
    const world = await createFields({ code: CODE });
    const code = `a${"\u0301".repeat(40_000)}${"\u0316".repeat(40_000)}~`;
    const start = performance.now();
    const answer = await world.at("platform").post("/sign-up/email", { ...jane, code });
    expectRefused(answer, 400, "INVALID_VALUE");
    expect(performance.now() - start).toBeLessThan(2000);
  });

  it.each(databases)("what is no text is refused on %s, and a number is one", async (database) => {
    const world = await createFields({ code: CODE }, { database });
    for (const place of PLACES) {
      for (const code of [{ a: 1 }, ["a"], [[`${world.ids.acme}~a`]], true]) {
        const answer = await world.at(place).post("/sign-up/email", { ...jane, code });
        expectRefused(answer, 400, "INVALID_VALUE");
      }
    }
    const { data } = await world.at("acme").post<Signed>("/sign-up/email", { ...jane, code: 7 });
    expect(data.user.code).toBe("7");
  });

  it("sign-up responds the same for an address that exists and one that does not", async () => {
    const world = await createOfficial({
      auth: { emailAndPassword: { enabled: true, requireEmailVerification: true } },
    });
    await world.at("globex").post("/sign-up/email", jane);
    await world.at("acme").post("/sign-up/email", { ...jane, username: "another" });
    const answers = [];
    for (const email of [EMAIL, "unknown@example.com"]) {
      const { status, data } = await world
        .at("acme")
        .post<Signed>("/sign-up/email", { ...jane, email });
      answers.push([status, Object.keys(data), Object.keys(data.user), data.user.username]);
    }
    expect(answers[0]).toEqual(answers[1]);
    expect(answers[0]).toEqual([200, ["token", "user"], expect.any(Array), "jane"]);
  });
});

/** A plugin of the application's. */
const own = (
  fields: Record<string, DBFieldAttribute>,
  indexes: object[] = [],
): BetterAuthPlugin => ({
  id: "own",
  schema: { project: { fields, indexes: indexes as never } },
});

describe("which fields", () => {
  const scoped = { scopedModels: ["project"] };
  const name: DBFieldAttribute = { type: "string", required: true };

  it("unique texts of scoped models are unique per tenant, others are not touched", async () => {
    let drawn = 0;
    const draw = () => `drawn-${++drawn}`;
    const world = await createWorld({
      tenant: { ...scoped, globallyUnique: { project: ["license"] } },
      plugins: [
        own(
          {
            name,
            key: { ...name, unique: true, fieldName: "project_key" },
            number: { type: "number", unique: true, required: false },
            license: { ...CODE, transform: {} },
            random: { ...CODE, defaultValue: draw },
            owner: { ...CODE, references: { model: "user", field: "id" } },
            path: { ...name, defaultValue: draw },
          },
          [{ fields: ["path"], unique: true }, { fields: ["name"] }],
        ),
      ],
    });
    const people = await world.janes();
    const create = (place: Place, data: object) =>
      inside(world, place, () =>
        world.context.adapter.create<Row>({ model: "project", data: data as Row }),
      );
    for (const [index, place] of PLACES.entries()) {
      const owner = people[place].id;
      const data = { name: "n", key: "k", path: "p", number: index, license: `l${index}`, owner };
      expect(await create(place, data)).toMatchObject({ ...data, random: `drawn-${index + 1}` });
      const where = [{ field: "random", value: `drawn-${index + 1}` }];
      const find = () => world.context.adapter.findOne<Row>({ model: "project", where });
      expect(await inside(world, place, find)).toMatchObject(data);
    }
    const [stored] = await world.database.query(`select * from "project" where "license" = 'l0'`);
    const { acme } = world.ids;
    const prefixed = { project_key: `${acme}~k`, path: `${acme}~p`, random: `${acme}~drawn-1` };
    expect(stored).toMatchObject({ name: "n", ...prefixed, number: 0, owner: people.acme.id });
    for (const taken of [{ key: "k" }, { path: "p" }, { license: "l1" }, { number: 2 }]) {
      const made = create("acme", { name: "n", key: "k2", path: "p2", ...taken });
      await expect(made, JSON.stringify(taken)).rejects.toMatchObject({ statusCode: 422 });
    }
  });

  it.each<[string, object, DBFieldAttribute, RegExp]>([
    ["a model", { nothing: ["key"] }, CODE, /globallyUnique: nothing\.key is not a unique text/],
    ["a field", { project: ["nothing"] }, CODE, /globallyUnique: project\.nothing is not/],
    ["no text", { project: ["key"] }, { type: "number", unique: true }, /project\.key is not/],
    ["one that is not unique", { project: ["key"] }, name, /project\.key is not/],
    ["a list", { project: "key" }, CODE, /globallyUnique/],
    [
      "what changes when read",
      {},
      { ...CODE, transform: { output: String } },
      /globallyUnique: \{ project: \["key"\] \}/,
    ],
    [
      "what changes with every update",
      {},
      { ...CODE, onUpdate: () => "drawn" },
      /onUpdate.* globallyUnique: \{ project: \["key"\] \}/,
    ],
  ])("refuses to start with %s", async (_, globallyUnique, key, message) => {
    const tenant = { ...scoped, globallyUnique: globallyUnique as Record<string, string[]> };
    const starting = createInstance({ tenant, plugins: [own({ key })], migrate: false });
    await expect(starting).rejects.toThrow(message);
  });

  it.each([
    ["project", "key"],
    ["projects_table", "project_key"],
  ])(
    "threat: a row of a tenant bound to the platform's: refuses a key onto %s.%s",
    async (model, field) => {
      const key: DBFieldAttribute = { ...name, unique: true, fieldName: "project_key" };
      const projectKey: DBFieldAttribute = { ...name, references: { model, field } };
      const plugin: BetterAuthPlugin = {
        id: "own",
        schema: {
          project: { modelName: "projects_table", fields: { key } },
          issue: { fields: { projectKey } },
        },
      };
      const start = (globallyUnique = {}) => {
        const tenant = { scopedModels: ["project", "issue"], globallyUnique };
        const arrange = (ours: BetterAuthPlugin, others: BetterAuthPlugin[]) => [ours, ...others];
        return createWorld({ tenant, plugins: [plugin], arrange });
      };
      await expect(start()).rejects.toThrow(
        /foreign key.*$[\s\S]*^ {2}globallyUnique: \{ project: \["key"\] \},$/m,
      );
      const { context, ids } = await start({ project: ["key"] });
      await runInTenant(ids.acme, async () => {
        await context.adapter.create({ model: "project", data: { key: "alpha" } as never });
        const issue = { projectKey: "alpha" };
        const made = await context.adapter.create({ model: "issue", data: issue as never });
        expect(made).toMatchObject(issue);
      });
    },
  );

  it("by other names of tables and columns", async () => {
    const fields = { username: "user_name" };
    const { browser, createTenant, database } = await createInstance({
      auth: { user: { modelName: "people" } },
      plugins: [username({ schema: { user: { fields } } })],
    });
    for (const tenantId of [(await createTenant()).id, (await createTenant()).id]) {
      const at = () => browser({ "x-tenant-id": tenantId });
      expect((await at().post("/sign-up/email", jane)).status).toBe(200);
      expect((await at().post("/sign-in/username", jane)).status).toBe(200);
      const rows = await database.query('select * from "people" where user_name = ?', [
        `${tenantId}~jane`,
      ]);
      expect(rows).toHaveLength(1);
    }
  });
});

describe.each(databases)("prefixUniqueValues on %s", (database) => {
  it("prefixes what an earlier version has stored, once, and says what is taken by now", async () => {
    const world = await createOfficial({ database });
    for (const place of PLACES) {
      for (const one of place === "platform" ? ["jane", "joe"] : ["jane", "joe", "new"]) {
        const body = { ...jane, username: one, email: `${one}@example.com` };
        await world.at(place).post("/sign-up/email", body);
      }
    }
    const jane$ = await world.as("owner", "acme");
    await jane$.post("/organization/create", { name: "Sales", slug: "sales" });
    const look = async () => {
      const { findings } = await checkDeployment(world.auth);
      return findings
        .map(({ id, found }) => `${id}: ${found}`)
        .filter((finding) => !/^(no-statistics|inexact-collation)/.test(finding));
    };
    expect(await look()).toEqual([]);
    expect(await prefixUniqueValues(world.auth)).toEqual({ prefixed: 0, refused: 0 });

    // As before: every value was unique in the whole table.
    const { acme, globex } = world.ids;
    await world.write("user", { username: "joe.acme" }, { username: `${acme}~joe` });
    await world.write("user", { username: "new.acme" }, { username: `${acme}~new` });
    await world.write("organization", { slug: "sales" });
    // And one that somebody has taken since.
    await world.write("user", { username: "taken" }, { username: `${globex}~new` });
    const taken = { ...jane, username: "taken", email: "taken@example.com" };
    expect((await world.at("globex").post("/sign-up/email", taken)).status).toBe(200);
    const signIn = async (place: Place, username: string) =>
      (await world.at(place).post("/sign-in/username", { ...jane, username })).status;
    expect(await signIn("acme", "joe.acme")).toBe(401);
    const found = await look();
    expect(found).toHaveLength(2);
    expect(found.join()).toMatch(/unprefixed-values: 3 values of tenants in .user. \(.username.\)/);
    expect(found.join()).toMatch(/1 values of tenants in .organization. \(.slug.\)/);

    // Two processes at once.
    const counts = await Promise.all([
      prefixUniqueValues(world.auth),
      prefixUniqueValues(world.auth),
    ]);
    expect(counts.map(({ prefixed }) => prefixed).reduce((sum, one) => sum + one)).toBe(3);
    expect(await signIn("acme", "joe.acme")).toBe(200);
    expect(await signIn("acme", "new.acme")).toBe(200);
    expect(await signIn("platform", "joe")).toBe(200);
    expect(await signIn("globex", "jane")).toBe(200);
    expect(await prefixUniqueValues(world.auth)).toEqual({ prefixed: 0, refused: 1 });
    expect(world.logs.join()).toMatch(/user \S+: username stays as it is: Value taken/);
    expect((await look()).join()).toMatch(/1 values of tenants/);
    await world.write("user", { username: null }, { username: "taken" });
    expect(await look()).toEqual([]);
  });
});

it.each(databases)("prefixUniqueValues of another copy of the package, on %s", async (database) => {
  const world = await createWorld({ database, plugins: [username()] });
  await world.at("acme").post("/sign-up/email", jane);
  const table = world.database.quote("user");
  await world.database.query(`update ${table} set username = 'jane'`);
  vi.resetModules();
  const copy = await import("../../../src/index");
  expect(copy.prefixUniqueValues).not.toBe(prefixUniqueValues);
  expect(await copy.prefixUniqueValues(world.auth)).toEqual({ prefixed: 1, refused: 0 });
  const rows = await world.database.query(`select username from ${table}`);
  expect(rows).toEqual([{ username: `${world.ids.acme}~jane` }]);
});

it("prefixUniqueValues continues where it was interrupted", async () => {
  const world = await createOfficial();
  for (const name of ["anna", "bert", "carl"]) {
    const body = { ...jane, username: name, email: `${name}@example.com` };
    await world.at("acme").post("/sign-up/email", body);
    await world.write("user", { username: name }, { username: `${world.ids.acme}~${name}` });
  }
  const { isolationOf } = await import("../../../src/core/isolation");
  const stored = isolationOf(world.context)?.database as DBAdapter;
  const update = vi.spyOn(stored, "updateMany").mockRejectedValueOnce(new Error("away"));
  await expect(prefixUniqueValues(world.auth)).rejects.toThrow("away");
  update.mockRestore();
  expect(await prefixUniqueValues(world.auth)).toEqual({ prefixed: 3, refused: 0 });
});
