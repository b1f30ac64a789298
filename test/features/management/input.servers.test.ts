import { beforeAll, describe, expect, it } from "vitest";
import type { Answer, Browser } from "../../support/browser";
import { databases } from "../../support/database";
import { fakeNetwork } from "../../support/providers";
import { shareWorld } from "../../support/world";

/** What each endpoint takes, besides the id of Acme. Every case below changes one thing about it. */
const TENANT = { name: "New", slug: "new-slug", metadata: { a: 1 } };
const CONFIG = { providerId: "google", clientId: "new-id", clientSecret: "new-secret" };
const POST: Record<string, object> = {
  "/tenant/create": TENANT,
  "/tenant/update": TENANT,
  "/tenant/delete": {},
  "/tenant/oauth-config/register": { ...CONFIG, scopes: ["email"], enabled: false },
  "/tenant/oauth-config/update": { providerId: "google", clientSecret: "new-secret" },
  "/tenant/oauth-config/check": CONFIG,
  "/tenant/oauth-config/delete": { providerId: "google" },
};

const INVALID = "400 VALIDATION_ERROR";
const NO_TENANT = "400 TENANT_ID_REQUIRED";
const NOT_FOUND = "404 TENANT_NOT_FOUND";
const BAD_URI = "400 INVALID_REDIRECT_URI";
const BAD_OPTIONS = "400 INVALID_PROVIDER_OPTIONS";
const UNSUPPORTED = "400 UNSUPPORTED_PROVIDER";
const NO_CONFIG = "404 OAUTH_CONFIG_NOT_FOUND";

const DAY = 24 * 60 * 60;

/** Leaves the field out. */
const MISSING = undefined;
const WRONG_TYPES = [null, 5, ["a"]];
const UNSTORABLE = ["a\0b", "\ud800", "a\udc00b"];
const BAD_TEXT = [...WRONG_TYPES, MISSING, "", ...UNSTORABLE];
const UNKNOWN_IDS = ["acme", "x".repeat(100_000), "' or ''='", "%", ...UNSTORABLE];
const BAD_METADATA = [
  ...["text", 5, true, [], [{}]],
  ...UNSTORABLE.flatMap((text) => [{ a: text }, { [text]: 1 }, { a: [{ b: [text] }] }]),
];
const MANY_SCOPES = Array.from({ length: 51 }, (_, index) => `scope-${index}`);

/** A field, values for it, and the answer to each; a bar between two answers that are good. */
type Case = [field: string, values: unknown[], expected: string];

const DETAILS: Case[] = [
  ["name", ["", "   ", "\n\t", "A\r\nBcc: b@c.de", "a\u0085b", "x".repeat(256)], INVALID],
  ["name", [...WRONG_TYPES, ...UNSTORABLE], INVALID],
  ["slug", WRONG_TYPES, INVALID],
  ["slug", ["", "a", "a".repeat(64), ...UNSTORABLE], "400 INVALID_SLUG"],
  ["slug", ["admin", "wpad", "mta-sts"], "400 SLUG_RESERVED"],
  ["slug", ["globex"], "409 TENANT_ALREADY_EXISTS"],
  ["metadata", BAD_METADATA, INVALID],
];
const ID: Case[] = [
  ["tenantId", WRONG_TYPES, INVALID],
  ["tenantId", [""], NO_TENANT],
  ["tenantId", UNKNOWN_IDS, NOT_FOUND],
];
const CLIENT: Case[] = [
  ["providerId", [...WRONG_TYPES, MISSING, "", "goo\0gle"], INVALID],
  ["clientSecret", [null, 5, "", "x".repeat(8193), ...UNSTORABLE], INVALID],
  ["scopes", ["email", [5], [""], ["x".repeat(256)], MANY_SCOPES, ["a\0b"]], INVALID],
  ["redirectURI", [5, ["https://example.com"], `https://${"x".repeat(2048)}`], INVALID],
  ["options", [[], '{"hd":"acme.example"}', 1, true], INVALID],
];

const BODIES: Record<string, Case[]> = {
  "/tenant/create": [...DETAILS, ["name", [MISSING], INVALID], ["slug", [MISSING], INVALID]],
  // A tenant's own administrator need not name it.
  "/tenant/update": [
    ...DETAILS,
    ...ID,
    ["tenantId", [MISSING], NO_TENANT],
    ["status", ["deleting", "Active", "", null, 1, ["active"]], INVALID],
  ],
  "/tenant/delete": [
    ...ID,
    ["tenantId", [MISSING], INVALID],
    ["after", [-1, 1.5, 90 * DAY + 1, "60", null, Number.MAX_VALUE], INVALID],
  ],
  "/tenant/oauth-config/register": [
    ...ID,
    ...CLIENT,
    ["tenantId", [MISSING], NO_TENANT],
    ["providerId", ["nope", "Google", "google ", "constructor", "__proto__"], UNSUPPORTED],
    ["clientId", [...BAD_TEXT, "x".repeat(2049)], INVALID],
    ["clientSecret", [MISSING], INVALID],
    ["redirectURI", ["", "http://example.com/cb", "https://example.com/\0"], BAD_URI],
    ["enabled", [null, 1, "true", []], INVALID],
    ["options", [{ hd: 1 }], BAD_OPTIONS],
  ],
  "/tenant/oauth-config/update": [
    ...ID,
    ...CLIENT,
    ["tenantId", [MISSING], NO_TENANT],
    ["providerId", ["github", "nobody", "Google", "google ", "__proto__", "%"], NO_CONFIG],
    ["options", [{ hd: 1 }], BAD_OPTIONS],
    ["redirectURI", ["http://acme.example"], BAD_URI],
    ["enabled", [null, 1, "true"], INVALID],
    // It knows every field that it takes.
    ["clientId", ["other-client"], INVALID],
    ["id", ["1"], INVALID],
    ["secretChangedAt", ["2001-01-01"], INVALID],
  ],
  "/tenant/oauth-config/check": [
    ...ID,
    ...CLIENT,
    ["tenantId", [MISSING], NO_TENANT],
    ["clientId", [MISSING, ["id"]], INVALID],
    ["clientSecret", [MISSING], INVALID],
  ],
  "/tenant/oauth-config/delete": [
    ...ID,
    ["tenantId", [MISSING], NO_TENANT],
    ["providerId", [...WRONG_TYPES, MISSING, ""], INVALID],
    ["providerId", ["github", "nope", "__proto__", "' or ''='", "%"], NO_CONFIG],
    // MariaDB compares text without regard to case and to spaces at the end.
    ["providerId", ["Google", "google "], NO_CONFIG],
    ["providerId", ["x".repeat(100_000), ...UNSTORABLE], `${NO_CONFIG}|${INVALID}`],
  ],
};

const GET = "/tenant/get";
const LIST = "/tenant/oauth-config/list";
const QUERIES: [expected: string, paths: string[]][] = [
  ["400 TENANT_ID_OR_SLUG_REQUIRED", [GET, `${GET}?id=`, `${GET}?id=a&slug=b`]],
  [INVALID, [`${GET}?id=a&id=b`, `${GET}?slug=a&slug=b`, `${LIST}?tenantId=a&tenantId=b`]],
  [NOT_FOUND, [`${GET}?id=%00`, `${GET}?slug=a%00b`, `${GET}?slug=%ED%A0%80`, `${GET}?id=%`]],
  [NOT_FOUND, [`${GET}?id=${"x".repeat(10_000)}`, `${LIST}?tenantId=a%00b`, `${LIST}?tenantId=a`]],
  [NO_TENANT, [LIST, `${LIST}?tenantId=`]],
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

  const cases = Object.entries(BODIES).flatMap(([path, rows]) =>
    rows.map((row) => ({ path, row })),
  );
  it.each(cases)("bad input for $path changes nothing: $row.0, $row.2", async ({ path, row }) => {
    const [field, values, expected] = row;
    const whole = path === "/tenant/create" ? {} : { tenantId: world.ids.acme };
    const sent = fakeNetwork();
    await world.unchanged(async () => {
      for (const value of values) {
        const answer = await operator.post(path, { ...whole, ...POST[path], [field]: value });
        expectAnswer(JSON.stringify(value)?.slice(0, 60), answer, expected);
      }
    });
    expect(sent).toEqual([]);
  });

  it("nor does any in a query, or what is no JSON", async () => {
    await world.unchanged(async () => {
      for (const [expected, paths] of QUERIES) {
        for (const path of paths) expectAnswer(path, await operator.get(path), expected);
      }
      // Two tenants name none.
      const twice = `/tenant/oauth-config/delete?tenantId=${world.ids.acme}&tenantId=x`;
      expectAnswer(twice, await operator.post(twice, { providerId: "google" }), INVALID);
      for (const path of ["/tenant/create", "/tenant/oauth-config/register"]) {
        for (const body of ["null", "[]", '"text"']) {
          expectAnswer(body, await operator.post(path, body), INVALID);
        }
        const form = { "content-type": "application/x-www-form-urlencoded" };
        const answer = await operator.post(path, "name=New&slug=new", { headers: form });
        expectAnswer(path, answer, "415 UNSUPPORTED_MEDIA_TYPE");
      }
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
    const after = { tenantId: created.data.id, after: 90 * DAY };
    expect((await operator.post("/tenant/delete", after)).status).toBe(200);
  });
});

/** Every kind of value, and what looks like something else, or has a meaning elsewhere. */
const EVERYTHING = {
  values: ["pro", 5, false, null, [[], [{}], [null, true]]],
  numbers: [0, -1, 0.1, 5e-324, 1.7976931348623157e308, 2 ** 53 - 1, 1e21, 1e-7],
  texts: ["2024-01-01", "2024-01-01T00:00:00Z", "{}", '{"c":1}', "null", "true", "1", '"', ""],
  escaped: "\\ \" ' ` $x \n\r\t\b\f \u001f \u2028 %s ?",
  "ключ 🔑": "gr\u00f6\u00dfe 株式会社 👩\u200d👧 e\u0301 \u{10ffff} \ufffd",
  keys: { "": 1, constructor: { prototype: 1 }, hasOwnProperty: 1, id: 1, "a.b": 1, $gt: 1 },
};

describe.each(databases)("metadata on %s", (database) => {
  const world = shareWorld({}, database);
  type Stored = { id: string; metadata: Record<string, unknown> | null };

  const create = async (metadata: string) => {
    const body = `{"name":"Acme","slug":"${crypto.randomUUID()}","metadata":${metadata}}`;
    return (await world.operator()).post<Stored>("/tenant/create", body);
  };

  it.each<[string, object]>([
    ["an empty object", {}],
    ["everything", EVERYTHING],
    ["a key __proto__", JSON.parse('{"__proto__":{"polluted":"yes"},"a":{"__proto__":[1]}}')],
    ["64 KiB of JSON", ofBytes(64 * 1024)],
    ["30 levels", JSON.parse(nested(30))],
  ])("comes back as it was: %s", async (_, metadata) => {
    const operator = await world.operator();
    const created = await create(JSON.stringify(metadata));
    const { id } = created.data;
    const found = await operator.get<Stored>("/tenant/get", { query: { id } });
    expect((await world.change(id, { metadata: null })).metadata).toBeNull();
    const update = `{"tenantId":"${id}","metadata":${JSON.stringify(metadata)}}`;
    const updated = await operator.post<Stored>("/tenant/update", update);
    const listed = (await world.api.listTenants()).find((tenant) => tenant.id === id);
    for (const read of [created.data, found.data, updated.data, listed]) {
      expect(json(read?.metadata)).toBe(json(metadata));
    }
    expect({}).not.toHaveProperty("polluted");
  });

  // It is bytes that count. MariaDB takes no JSON with more than 32 levels, and JSON.stringify()
  // runs out of stack.
  it.each([
    ["more than 64 KiB", JSON.stringify(ofBytes(64 * 1024 + 1))],
    ["as much in longer letters", JSON.stringify({ text: "é".repeat(32 * 1024) })],
    ["31 levels", nested(31)],
    ["10000 levels", nested(10_000)],
  ])("of %s is refused", async (_, metadata) => {
    const { status, code } = await create(metadata);
    expect([status, code]).toEqual([400, "VALIDATION_ERROR"]);
  });
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
