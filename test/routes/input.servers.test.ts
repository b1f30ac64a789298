import { beforeAll, describe, expect, it } from "vitest";
import type { Answer, Browser } from "../support/browser";
import { databases } from "../support/database";
import { shareWorld } from "../support/world";

/** Stands for the id of Acme in the tables below. */
const TENANT = "<Acme>";

/** What each endpoint takes. Every case below changes one thing about it. */
const POST: Record<string, Record<string, unknown>> = {
  "/tenant/create": { name: "New", slug: "new-slug", metadata: { a: 1 } },
  "/tenant/update": { tenantId: TENANT, name: "New", slug: "new-slug", metadata: { a: 1 } },
  "/tenant/delete": { tenantId: TENANT },
  "/tenant/oauth-config/register": {
    tenantId: TENANT,
    providerId: "google",
    clientId: "new-id",
    clientSecret: "new-secret",
    scopes: ["email"],
    redirectURI: "https://example.com/callback",
    enabled: false,
  },
  "/tenant/oauth-config/delete": { tenantId: TENANT, providerId: "google" },
};
const GET = ["/tenant/get", "/tenant/list", "/tenant/oauth-config/list"];

const INVALID = "400 VALIDATION_ERROR";
const NO_TENANT = "400 TENANT_ID_REQUIRED";
const NOT_FOUND = "404 TENANT_NOT_FOUND";
const BAD_SLUG = "400 INVALID_SLUG";
const BAD_URI = "400 INVALID_REDIRECT_URI";
const UNSUPPORTED = "400 UNSUPPORTED_PROVIDER";
const NO_CONFIG = "404 OAUTH_CONFIG_NOT_FOUND";
const WHICH = "400 TENANT_ID_OR_SLUG_REQUIRED";

const DAY = 24 * 60 * 60;

/** Leaves the field out. */
const MISSING = undefined;
const WRONG_TYPES = [null, 5, true, {}, ["a"]];
const UNSTORABLE = ["a\0b", "\ud800", "a\udc00b"];
const BAD_TEXT = [...WRONG_TYPES, MISSING, "", ...UNSTORABLE];
const UNKNOWN_IDS = [
  ...["no-such-tenant", "acme", "1", "x".repeat(100_000), "' or ''='", "%", "_".repeat(32)],
  ...UNSTORABLE,
];
const BAD_METADATA = [
  ...["text", 5, true, [], [{}], { text: "x".repeat(64 * 1024) }],
  ...UNSTORABLE.flatMap((text) => [{ a: text }, { [text]: 1 }, { a: [{ b: [text] }] }]),
];
const MANY_SCOPES = Array.from({ length: 51 }, (_, index) => `scope-${index}`);

/** A field, values for it, and the answer to each; a bar between two answers that are good. */
type Case = [field: string, values: unknown[], expected: string];

const DETAILS: Case[] = [
  ["name", ["", "   ", "\n\t", "x".repeat(256), ...WRONG_TYPES, ...UNSTORABLE], INVALID],
  ["slug", WRONG_TYPES, INVALID],
  ["slug", ["", "a", "a".repeat(64), ...UNSTORABLE], BAD_SLUG],
  ["slug", ["admin"], "400 SLUG_RESERVED"],
  ["slug", ["globex"], "409 TENANT_ALREADY_EXISTS"],
  ["metadata", BAD_METADATA, INVALID],
];
const IDS: Case[] = [
  ["tenantId", WRONG_TYPES, INVALID],
  ["tenantId", [""], NO_TENANT],
  ["tenantId", UNKNOWN_IDS, NOT_FOUND],
];
const PROVIDER: Case = ["providerId", [...WRONG_TYPES, MISSING, ""], INVALID];

const BODIES: Record<string, Case[]> = {
  "/tenant/create": [...DETAILS, ["name", [MISSING], INVALID], ["slug", [MISSING], INVALID]],
  // A tenant's own administrator need not name it.
  "/tenant/update": [
    ...DETAILS,
    ...IDS,
    ["tenantId", [MISSING], NO_TENANT],
    ["status", ["deleting", "Active", "", null, 1, ["active"]], INVALID],
  ],
  "/tenant/delete": [
    ...IDS,
    ["tenantId", [MISSING], INVALID],
    ["after", [-1, 1.5, 90 * DAY + 1, "60", null, Number.MAX_VALUE], INVALID],
  ],
  "/tenant/oauth-config/register": [
    ...IDS,
    ["tenantId", [MISSING], NO_TENANT],
    PROVIDER,
    ["providerId", ["nope", "Google", "google ", "constructor", "__proto__"], UNSUPPORTED],
    ["providerId", ["x".repeat(100_000), ...UNSTORABLE], `${UNSUPPORTED}|${INVALID}`],
    ["clientId", [...BAD_TEXT, "x".repeat(2049)], INVALID],
    ["clientSecret", [...BAD_TEXT, "x".repeat(8193)], INVALID],
    ["scopes", ["email", 5, {}, [5], [null], [[]], [""], ["x".repeat(256)], MANY_SCOPES], INVALID],
    ["scopes", UNSTORABLE.map((text) => ["email", text]), INVALID],
    ["redirectURI", [5, true, {}, [], ["https://example.com"]], INVALID],
    ["redirectURI", [`https://example.com/${"x".repeat(2048)}`], `${INVALID}|${BAD_URI}`],
    ["redirectURI", ["", "callback", "//example.com", "http://example.com/cb"], BAD_URI],
    ["redirectURI", ["javascript:alert(1)", "https://example.com/#a", "https://"], BAD_URI],
    ["redirectURI", UNSTORABLE.map((text) => `https://example.com/${text}`), BAD_URI],
    ["enabled", [null, 1, 0, "true", "", {}, []], INVALID],
  ],
  "/tenant/oauth-config/delete": [
    ...IDS,
    ["tenantId", [MISSING], NO_TENANT],
    PROVIDER,
    ["providerId", ["github", "nope", "Google?", "__proto__", "' or ''='"], NO_CONFIG],
    // MariaDB compares text without regard to case and to spaces at the end.
    ["providerId", ["Google", "google "], `${NO_CONFIG}|${INVALID}|${UNSUPPORTED}`],
    ["providerId", ["x".repeat(100_000), ...UNSTORABLE], `${NO_CONFIG}|${INVALID}`],
  ],
};

/** Whatever the endpoint: bodies that are no object, content that is called something else. */
const RAW_BODIES: [expected: string, bodies: (string | undefined)[]][] = [
  ["400 BAD_REQUEST", ['{"tenantId":', "{} {}", "tenantId=a", ""]],
  [INVALID, [undefined, "null", "[]", '"text"', "5"]],
];
const CONTENT_TYPES = [
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
  "text/plain",
  "text/plain; charset=application/json",
  "application/xml",
  "application/octet-stream",
];

const LIST = "/tenant/oauth-config/list";
const QUERIES: [expected: string, paths: string[]][] = [
  [WHICH, ["/tenant/get", "/tenant/get?id=", "/tenant/get?id=a&slug=b", "/tenant/get?id[]=a"]],
  [INVALID, ["id=a&id=b", "slug=a&slug=b", "id=a&id=a"].map((query) => `/tenant/get?${query}`)],
  [NOT_FOUND, ["/tenant/get?id=no-such-tenant", "/tenant/get?slug=nobody", "/tenant/get?id=%00"]],
  [NOT_FOUND, ["/tenant/get?slug=a%00b", "/tenant/get?slug=%ED%A0%80", "/tenant/get?id=%FF%FE"]],
  [NOT_FOUND, ["/tenant/get?id=%", `/tenant/get?id=${"x".repeat(10_000)}`]],
  [NO_TENANT, [LIST, `${LIST}?tenantId=`]],
  [INVALID, [`${LIST}?tenantId=a&tenantId=b`]],
  [NOT_FOUND, [`${LIST}?tenantId=no-such-tenant`, `${LIST}?tenantId=a%00b`]],
];

describe.each(databases)("on %s", (database) => {
  const world = shareWorld({}, database);
  let operator: Browser;
  beforeAll(async () => {
    operator = await world.operator();
    const config = { providerId: "google", clientId: "id", clientSecret: "the-secret" };
    await world.api.registerTenantOAuthConfig({ body: { tenantId: world.ids.acme, ...config } });
  });

  const expectAnswer = (label: string, { status, code }: Answer<unknown>, expected: string) =>
    expect(expected.split("|"), label).toContain(`${status} ${code}`);

  const bodyOf = (path: string, changes: object = {}) => {
    const { tenantId, ...rest } = POST[path] ?? {};
    return { ...(tenantId ? { tenantId: world.ids.acme } : {}), ...rest, ...changes };
  };

  describe.each(Object.keys(POST))("bad input for POST %s changes nothing", (path) => {
    const cases = (BODIES[path] ?? []).map(([field, ...rest]) => ({ field, rest }));
    it.each(cases)("$field is $rest.1", async ({ field, rest: [values, expected] }) => {
      await world.unchanged(async () => {
        for (const value of values) {
          const answer = await operator.post(path, bodyOf(path, { [field]: value }));
          expectAnswer(show(value), answer, expected);
        }
      });
    });

    it("no JSON, another type, another method", async () => {
      const send = (method: string, body: unknown, type = "application/json") =>
        operator.send(path, { method, body, headers: { "content-type": type } });
      const whole = JSON.stringify(bodyOf(path));
      await world.unchanged(async () => {
        for (const [expected, bodies] of RAW_BODIES) {
          for (const body of bodies) expectAnswer(show(body), await send("POST", body), expected);
        }
        for (const type of CONTENT_TYPES) {
          expectAnswer(type, await send("POST", whole, type), "415 UNSUPPORTED_MEDIA_TYPE");
        }
        // The framework's router answers these itself, with an empty body: there is no code.
        for (const method of ["GET", "PUT", "PATCH", "DELETE"]) {
          const body = method === "GET" ? undefined : whole;
          expectAnswer(method, await send(method, body), "404 undefined");
        }
      });
    });
  });

  it("nor does any in a query, or by another method", async () => {
    await world.unchanged(async () => {
      for (const [expected, paths] of QUERIES) {
        for (const path of paths) expectAnswer(show(path), await operator.get(path), expected);
      }
      for (const path of GET) {
        for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
          const query = { id: world.ids.acme, tenantId: world.ids.acme };
          const answer = await operator.send(path, { method, query, body: {} });
          expectAnswer(`${method} ${path}`, answer, "404 undefined");
        }
      }
      // Two tenants name none.
      for (const path of ["/tenant/oauth-config/register", "/tenant/oauth-config/delete"]) {
        const twice = `${path}?tenantId=${world.ids.acme}&tenantId=${world.ids.acme}`;
        const answer = await operator.post(twice, bodyOf(path, { tenantId: undefined }));
        expectAnswer(path, answer, `${NO_TENANT}|${INVALID}`);
      }
      const { status, data } = await operator.get("/tenant/list?id=a&id=b&tenantId=%00&cursor=-1");
      expect([status, data.length]).toEqual([200, 2]);
    });
  });

  it("what is just inside the limits is taken", async () => {
    const tenant = { name: "é".repeat(255), slug: "a".repeat(63) };
    const created = await operator.post<{ id: string }>("/tenant/create", tenant);
    expect([created.status, created.data]).toMatchObject([200, tenant]);
    const config = {
      clientId: "é".repeat(2048),
      scopes: Array.from({ length: 50 }, (_, index) => `${index}`.padEnd(255, "x")),
      redirectURI: "https://example.com/".padEnd(2048, "x"),
    };
    const ids = { tenantId: created.data.id, providerId: "google" };
    const body = { ...config, ...ids, clientSecret: "é".repeat(8192) };
    const { status, data } = await operator.post("/tenant/oauth-config/register", body);
    expect([status, data]).toMatchObject([200, config]);
  });
});

const DATES = ["2024-01-01", "2024-01-01T00:00:00Z", "2024-02-30T25:00:00Z"];
const ROUND_TRIPS: [description: string, metadata: Record<string, unknown>][] = [
  ["an empty object", {}],
  ["a flat object", { plan: "pro", seats: 5, trial: false, ok: true, coupon: null }],
  ["nested objects and arrays", { a: { b: { c: [1, [2, [3, { d: [] }]], {}] } }, e: [[], [{}]] }],
  ["nulls and booleans", { a: null, b: [null, true], c: { d: null, e: false } }],
  ["numbers", { list: [0, -1, 0.1, 5e-324, 1.7976931348623157e308, 2 ** 53 - 1, 1e21, 1e-7] }],
  ["strings that look like dates", { list: DATES, deep: { date: "1999-12-31T23:59:59.999Z" } }],
  ["strings that look like JSON", { a: "{}", b: '{"c":1}', c: "null", d: "true", e: "1", f: '"' }],
  ["strings that need escaping", { a: "\\ \" ' ` $x \n\r\t\b\f \u001f \u2028 %s ?", b: "" }],
  [
    "unicode",
    { "ключ 🔑": "gr\u00f6\u00dfe 株式会社 👩\u200d👧 e\u0301 \u{10ffff} \ufffd \ufeff" },
  ],
  [
    "keys with a meaning elsewhere",
    { "": 1, constructor: { prototype: 1 }, hasOwnProperty: 1, id: 1, length: 3, "a.b": 1, $gt: 1 },
  ],
  ["a key __proto__", JSON.parse('{"__proto__":{"polluted":"yes"},"a":{"__proto__":[1]}}')],
  ["64 KiB of JSON", ofBytes(64 * 1024)],
  ["30 levels", JSON.parse(nested(30))],
];

describe.each(databases)("metadata on %s", (database) => {
  const world = shareWorld({}, database);
  type Stored = { id: string; metadata: Record<string, unknown> | null };

  /** Creates a tenant, with metadata as JSON. */
  const create = async (metadata: string) => {
    const body = `{"name":"Acme","slug":"${crypto.randomUUID()}","metadata":${metadata}}`;
    return (await world.operator()).post<Stored>("/tenant/create", body);
  };

  it.each(ROUND_TRIPS)("comes back as it was: %s", async (_, metadata) => {
    const operator = await world.operator();
    const given = JSON.stringify(metadata);
    const { status, data } = await create(given);
    expect(status).toBe(200);
    const { id } = data;
    /** As every way of reading the tenant gives it. */
    const readings = async () => [
      (await operator.get<Stored>("/tenant/get", { query: { id } })).data,
      (await operator.get<Stored[]>("/tenant/list")).data.find((tenant) => tenant.id === id),
      await world.api.getTenant({ query: { id } }),
      (await world.api.listTenants()).find((tenant) => tenant.id === id),
    ];
    const first = [data, ...(await readings())];
    expect((await world.change(id, { metadata: null })).metadata).toBeNull();
    const update = `{"tenantId":"${id}","metadata":${given}}`;
    const updated = await operator.post<Stored>("/tenant/update", update);
    const again = await world.change(id, { metadata });
    for (const read of [...first, updated.data, again, ...(await readings())]) {
      expect(json(read?.metadata)).toBe(json(metadata));
      const { polluted } = (read?.metadata ?? {}) as { polluted?: string };
      expect(polluted).toBeUndefined();
    }
    expect(({} as { polluted?: string }).polluted).toBeUndefined();
  });

  it("of more than 64 KiB is refused, and it is bytes that count", async () => {
    const { id: tenantId } = await world.createTenant();
    const many = [ofBytes(64 * 1024 + 1), { text: "é".repeat(32 * 1024) }];
    for (const metadata of many) {
      expect((await create(JSON.stringify(metadata))).code).toBe("VALIDATION_ERROR");
      const operator = await world.operator();
      const { status, code } = await operator.post("/tenant/update", { tenantId, metadata });
      expect([status, code]).toEqual([400, "VALIDATION_ERROR"]);
    }
  });

  // MariaDB takes no JSON with more than 32 levels, and JSON.stringify() runs out of stack.
  it.each([40, 200, 6000, 10_000])(
    "stores %i levels or refuses them, and never breaks",
    async (levels) => {
      const before = await world.rows("tenant");
      const { status, code, data } = await create(nested(levels));
      if (status === 200) expect(JSON.stringify(data.metadata)).toBe(nested(levels));
      else expect([status, code]).toEqual([400, "VALIDATION_ERROR"]);
      expect(await world.rows("tenant")).toBe(before + (status === 200 ? 1 : 0));
    },
  );
});

/** An object whose JSON has exactly this many bytes. */
function ofBytes(bytes: number) {
  return { text: "y".repeat(bytes - '{"text":""}'.length) };
}

/** An object with this many levels, itself included. */
function nested(levels: number): string {
  return `${'{"a":'.repeat(levels - 1)}{}${"}".repeat(levels - 1)}`;
}

/** JSON with its keys in order: PostgreSQL does not keep theirs. A Date is no string here. */
function json(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(json)}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${json(item)}`)}}`;
}

/** A value as it is shown where it fails. */
function show(value: unknown): string {
  const shown = JSON.stringify(value) ?? "missing";
  return shown.length > 60 ? `${shown.slice(0, 40)}… (${shown.length} characters)` : shown;
}
