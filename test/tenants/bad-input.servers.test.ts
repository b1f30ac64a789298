import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createManagedTenant, storedState } from "../management-calls";
import type { Browser } from "../support/browser";
import { createDatabase } from "../support/database";
import { createInstance, type Instance } from "../support/instance";
import { databases } from "../support/servers";

/** Stands for the id of the tenant in the table below. */
const TENANT = "<the tenant>";

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
const GET: Record<string, Record<string, string>> = {
  "/tenant/get": { id: TENANT },
  "/tenant/list": {},
  "/tenant/oauth-config/list": { tenantId: TENANT },
};

const INVALID = "400 VALIDATION_ERROR";
const NO_TENANT = "400 TENANT_ID_REQUIRED";
const NOT_FOUND = "404 TENANT_NOT_FOUND";
const BAD_SLUG = "400 INVALID_SLUG";
const BAD_URI = "400 INVALID_REDIRECT_URI";
const UNSUPPORTED = "400 UNSUPPORTED_PROVIDER";
const NO_CONFIG = "404 OAUTH_CONFIG_NOT_FOUND";

const WRONG_TYPES = [null, 5, true, {}, ["a"]];
const MISSING = undefined;
const UNSTORABLE = ["a\0b", "\ud800", "a\udc00b"];
const BAD_TEXT = [...WRONG_TYPES, MISSING, "", ...UNSTORABLE];

const UNKNOWN_IDS = ["no-such-tenant", "x".repeat(100_000), "' or ''='", "%", ...UNSTORABLE];
const BAD_METADATA = [
  "text",
  5,
  true,
  [],
  [{}],
  { text: "x".repeat(64 * 1024) },
  ...UNSTORABLE.flatMap((text) => [{ a: text }, { [text]: 1 }, { a: [{ b: [text] }] }]),
];

interface Case {
  path: string;
  field: string;
  /** undefined leaves the field out. */
  values: unknown[];
  expected: string;
}

const BODIES: Case[] = [
  ...["/tenant/create", "/tenant/update"].flatMap((path): Case[] => [
    { path, field: "name", values: ["", "   ", "\n\t", "x".repeat(256)], expected: INVALID },
    { path, field: "name", values: [...WRONG_TYPES, ...UNSTORABLE], expected: INVALID },
    { path, field: "slug", values: WRONG_TYPES, expected: INVALID },
    { path, field: "slug", values: ["", "a", "a".repeat(64), ...UNSTORABLE], expected: BAD_SLUG },
    { path, field: "slug", values: ["admin"], expected: "400 SLUG_RESERVED" },
    { path, field: "slug", values: ["taken"], expected: "409 TENANT_ALREADY_EXISTS" },
    { path, field: "metadata", values: BAD_METADATA, expected: INVALID },
  ]),
  { path: "/tenant/create", field: "name", values: [MISSING], expected: INVALID },
  { path: "/tenant/create", field: "slug", values: [MISSING], expected: INVALID },
  ...["/tenant/update", "/tenant/delete"].flatMap((path): Case[] => [
    { path, field: "tenantId", values: WRONG_TYPES, expected: INVALID },
    { path, field: "tenantId", values: [""], expected: NO_TENANT },
    { path, field: "tenantId", values: UNKNOWN_IDS, expected: NOT_FOUND },
  ]),
  // A tenant's own administrator need not name it.
  { path: "/tenant/update", field: "tenantId", values: [MISSING], expected: NO_TENANT },
  { path: "/tenant/delete", field: "tenantId", values: [MISSING], expected: INVALID },
  ...["/tenant/oauth-config/register", "/tenant/oauth-config/delete"].flatMap((path): Case[] => [
    { path, field: "tenantId", values: WRONG_TYPES, expected: INVALID },
    { path, field: "tenantId", values: [MISSING, ""], expected: NO_TENANT },
    { path, field: "tenantId", values: UNKNOWN_IDS, expected: NOT_FOUND },
    { path, field: "providerId", values: [...WRONG_TYPES, MISSING, ""], expected: INVALID },
  ]),
  ...(
    [
      ["providerId", ["nope", "Google", "google ", "constructor", "__proto__"], UNSUPPORTED],
      ["providerId", ["x".repeat(100_000), ...UNSTORABLE], `${UNSUPPORTED}|${INVALID}`],
      ["clientId", [...BAD_TEXT, "x".repeat(2049)], INVALID],
      ["clientSecret", [...BAD_TEXT, "x".repeat(8193)], INVALID],
      ["scopes", ["email", 5, {}, [5], [null], [[]], [""], ["x".repeat(256)]], INVALID],
      ["scopes", [Array.from({ length: 51 }, (_, index) => `scope-${index}`)], INVALID],
      ["scopes", UNSTORABLE.map((text) => ["email", text]), INVALID],
      ["redirectURI", [5, true, {}, [], ["https://example.com"]], INVALID],
      ["redirectURI", [`https://example.com/${"x".repeat(2048)}`], `${INVALID}|${BAD_URI}`],
      ["redirectURI", ["", "callback", "//example.com", "http://example.com/cb"], BAD_URI],
      ["redirectURI", ["javascript:alert(1)", "https://example.com/#a", "https://"], BAD_URI],
      ["redirectURI", UNSTORABLE.map((text) => `https://example.com/${text}`), BAD_URI],
      ["enabled", [null, 1, 0, "true", "", {}, []], INVALID],
    ] as [string, unknown[], string][]
  ).map(([field, values, expected]) => ({
    path: "/tenant/oauth-config/register",
    field,
    values,
    expected,
  })),
  ...(
    [
      [["github", "nope", "Google?", "__proto__", "' or ''='"], NO_CONFIG],
      [["x".repeat(100_000), ...UNSTORABLE], `${NO_CONFIG}|${INVALID}`],
    ] as [unknown[], string][]
  ).map(([values, expected]) => ({
    path: "/tenant/oauth-config/delete",
    field: "providerId",
    values,
    expected,
  })),
];

const QUERIES: [pathAndQuery: string, expected: string][] = [
  ["/tenant/get", "400 TENANT_ID_OR_SLUG_REQUIRED"],
  ["/tenant/get?id=", "400 TENANT_ID_OR_SLUG_REQUIRED"],
  ["/tenant/get?id=a&slug=b", "400 TENANT_ID_OR_SLUG_REQUIRED"],
  ["/tenant/get?id[]=a", "400 TENANT_ID_OR_SLUG_REQUIRED"],
  ["/tenant/get?id=a&id=b", INVALID],
  ["/tenant/get?slug=a&slug=b", INVALID],
  ["/tenant/get?id=a&id=a", INVALID],
  ["/tenant/get?id=no-such-tenant", NOT_FOUND],
  ["/tenant/get?slug=nobody", NOT_FOUND],
  ["/tenant/get?id=%00", NOT_FOUND],
  ["/tenant/get?slug=a%00b", NOT_FOUND],
  ["/tenant/get?slug=%ED%A0%80", NOT_FOUND],
  ["/tenant/get?id=%FF%FE", NOT_FOUND],
  ["/tenant/get?id=%", NOT_FOUND],
  [`/tenant/get?id=${"x".repeat(10_000)}`, NOT_FOUND],
  ["/tenant/oauth-config/list", NO_TENANT],
  ["/tenant/oauth-config/list?tenantId=", NO_TENANT],
  ["/tenant/oauth-config/list?tenantId=a&tenantId=b", INVALID],
  ["/tenant/oauth-config/list?tenantId=no-such-tenant", NOT_FOUND],
  ["/tenant/oauth-config/list?tenantId=a%00b", NOT_FOUND],
];

/** Bodies that are no object, whatever the endpoint. */
const RAW_BODIES: [description: string, body: string | undefined, expected: string][] = [
  ["broken JSON", '{"tenantId":', "400 BAD_REQUEST"],
  ["JSON with something behind it", "{} {}", "400 BAD_REQUEST"],
  ["not JSON", "tenantId=a", "400 BAD_REQUEST"],
  ["an empty text", "", "400 BAD_REQUEST"],
  ["no body", undefined, INVALID],
  ["null", "null", INVALID],
  ["an array", "[]", INVALID],
  ["a string", '"text"', INVALID],
  ["a number", "5", INVALID],
];

const CONTENT_TYPES = [
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
  "text/plain",
  "text/plain; charset=application/json",
  "application/xml",
  "application/octet-stream",
];

describe.each(databases)("bad input on %s", (database) => {
  let instance: Instance;
  let operator: Browser;
  let tenantId: string;
  let close = async () => {};

  // One instance for all of it: nothing is ever written, and every case checks that.
  beforeAll(async () => {
    const opened = await createDatabase(database);
    close = opened.close;
    instance = await createInstance({ database: opened });
    operator = (await instance.operator()).browser;
    tenantId = (await createManagedTenant(instance, "acme")).id;
    await instance.createTenant("taken");
  });
  afterAll(() => close());

  /** Several expected answers are joined by a bar: either is a good answer. */
  async function expectRefused(expected: string, send: () => ReturnType<Browser["send"]>) {
    const before = await storedState(instance);
    const { status, code } = await send();
    expect(expected.split("|")).toContain(`${status} ${code}`);
    expect(await storedState(instance)).toEqual(before);
  }

  const withTenant = <T extends Record<string, unknown>>(input: T): T =>
    Object.fromEntries(
      Object.entries(input).map(([key, value]) => [key, value === TENANT ? tenantId : value]),
    ) as T;

  describe.each(Object.keys(POST))("POST %s", (path) => {
    const cases = BODIES.filter((candidate) => candidate.path === path).flatMap(
      ({ field, values, expected }) =>
        values.map((value) => ({ field, value, shown: show(value), expected })),
    );

    it.each(cases)("$field: $shown", async ({ field, value, expected }) => {
      const body = { ...withTenant(POST[path] ?? {}), [field]: value };
      await expectRefused(expected, () => operator.post(path, body));
    });

    it.each(RAW_BODIES)("%s", async (_, body, expected) => {
      const headers = { "content-type": "application/json" };
      await expectRefused(expected, () => operator.send(path, { method: "POST", body, headers }));
    });

    it.each(CONTENT_TYPES)("JSON that is called %s", async (type) => {
      const body = JSON.stringify(withTenant(POST[path] ?? {}));
      await expectRefused("415 UNSUPPORTED_MEDIA_TYPE", () =>
        operator.post(path, body, { headers: { "content-type": type } }),
      );
    });

    // The framework's router answers these itself, with an empty body: there is no code to have.
    it.each(["GET", "PUT", "PATCH", "DELETE"])("method %s", async (method) => {
      const body = method === "GET" ? undefined : withTenant(POST[path] ?? {});
      await expectRefused("404 undefined", () => operator.send(path, { method, body }));
    });
  });

  describe.each(Object.keys(GET))("GET %s", (path) => {
    it.each(["POST", "PUT", "PATCH", "DELETE"])("method %s", async (method) => {
      const query = withTenant(GET[path] ?? {});
      await expectRefused("404 undefined", () => operator.send(path, { method, query, body: {} }));
    });
  });

  it.each(QUERIES.map(([path, expected]) => ({ path, shown: show(path), expected })))(
    "GET $shown",
    async ({ path, expected }) => {
      await expectRefused(expected, () => operator.get(path));
    },
  );

  it.each(["register", "delete"])("two tenants in the query of %s name none", async (name) => {
    const path = `/tenant/oauth-config/${name}`;
    const { tenantId: _, ...body } = POST[path] ?? {};
    const twice = `${path}?tenantId=${tenantId}&tenantId=${tenantId}`;
    await expectRefused(`${NO_TENANT}|${INVALID}`, () => operator.post(twice, body));
  });

  it("GET /tenant/list stumbles over nothing that it does not know", async () => {
    const { status, data } = await operator.get("/tenant/list?id=a&id=b&tenantId=%00&cursor=-1");
    expect(status).toBe(200);
    expect(data).toHaveLength(2);
  });

  // MariaDB compares text without regard to case and to spaces at the end.
  it.each(["Google", "google "])("deleting the config of %j deletes not google's", async (id) => {
    const own = await createInstance({ database });
    const { browser } = await own.operator();
    const tenant = await createManagedTenant(own);
    const body = { tenantId: tenant.id, providerId: id };
    const { status, code } = await browser.post("/tenant/oauth-config/delete", body);
    expect([NO_CONFIG, INVALID, UNSUPPORTED]).toContain(`${status} ${code}`);
    expect(await own.rows("tenantOauthConfig")).toBe(1);
  });

  it("takes what is just inside the limits", async () => {
    const created = await operator.post<{ id: string; name: string }>("/tenant/create", {
      name: "é".repeat(255),
      slug: "a".repeat(63),
    });
    expect([created.status, created.data.name]).toEqual([200, "é".repeat(255)]);
    const scopes = Array.from({ length: 50 }, (_, index) => `${index}`.padEnd(255, "x"));
    const redirectURI = "https://example.com/".padEnd(2048, "x");
    const config = await operator.post("/tenant/oauth-config/register", {
      tenantId: created.data.id,
      providerId: "google",
      clientId: "é".repeat(2048),
      clientSecret: "é".repeat(8192),
      scopes,
      redirectURI,
    });
    expect(config.status).toBe(200);
    expect(config.data).toMatchObject({ clientId: "é".repeat(2048), scopes, redirectURI });
    await instance.api.deleteTenant({ body: { tenantId: created.data.id } });
  });
});

/** A value as it is shown in the title of a test. */
function show(value: unknown): string {
  const json = JSON.stringify(value) ?? "missing";
  return json.length > 60 ? `${json.slice(0, 40)}… (${json.length} characters)` : json;
}
