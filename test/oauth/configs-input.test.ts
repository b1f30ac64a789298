import { beforeEach, describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { createInstance, type Instance } from "../support/instance";

const VALID = { providerId: "google", clientId: "google-client", clientSecret: "google-secret" };

let instance: Instance;
let operator: Browser;
let tenantId: string;

beforeEach(async () => {
  instance = await createInstance();
  operator = (await instance.operator()).browser;
  tenantId = (await instance.createTenant()).id;
});

const register = (body: object) =>
  operator.post("/tenant/oauth-config/register", { tenantId, ...VALID, ...body });

async function expectRefused(body: object, code: string) {
  const answer = await register(body);
  expect([answer.status, answer.code]).toEqual([400, code]);
  expect(JSON.stringify(answer.data)).not.toContain("google-secret");
  expect(await instance.rows("tenantOauthConfig")).toBe(0);
}

describe("redirectURI", () => {
  it.each([
    "https://app.example.com",
    "https://app.example.com/",
    "https://app.example.com:8443/back?from=google&to=%2Fhome",
    "http://localhost/back",
    "http://localhost:3000/back",
    "http://127.0.0.1:3000/back",
    "http://[::1]:3000/back",
  ])("takes %s as it is", async (redirectURI) => {
    const answer = await register({ redirectURI });
    expect([answer.status, answer.data.redirectURI]).toEqual([200, redirectURI]);
  });

  it.each([
    ["http elsewhere", "http://app.example.com/back"],
    ["http on a private address", "http://192.168.0.1/back"],
    ["http on a name that starts like loopback", "http://localhost.evil.com/back"],
    ["http on a name that starts like a loopback address", "http://127.0.0.1.evil.com/back"],
    ["loopback in the credentials", "http://localhost:3000@evil.com/back"],
    ["a user name", "https://somebody@app.example.com/back"],
    ["a user name and a password", "https://somebody:password@app.example.com/back"],
    ["empty credentials", "https://@app.example.com/back"],
    ["a fragment", "https://app.example.com/back#part"],
    ["an empty fragment", "https://app.example.com/back#"],
    ["a path", "/back"],
    ["a relative path", "back"],
    ["no scheme", "app.example.com/back"],
    ["a host without a scheme", "//evil.com/back"],
    ["backslashes for slashes", "\\\\evil.com\\back"],
    ["a backslash in the host", "https://app.example.com\\@evil.com"],
    ["backslashes after the scheme", "https:\\\\evil.com"],
    ["no slashes after the scheme", "https:evil.com"],
    ["one slash after the scheme", "https:/evil.com"],
    ["three slashes after the scheme", "https:///evil.com"],
    ["encoded slashes", "https:%2f%2fevil.com"],
    ["no host", "https://"],
    ["javascript:", "javascript:alert(1)"],
    ["javascript: dressed up", "javascript://app.example.com/%0aalert(1)"],
    ["data:", "data:text/html,hello"],
    ["file:", "file:///etc/passwd"],
    ["a scheme of an app", "myapp://back"],
    ["a leading space", " https://app.example.com/back"],
    ["a trailing newline", "https://app.example.com/back\n"],
    ["a tab in the scheme", "ht\ttps://app.example.com/back"],
    ["a line break inside", "https://app.example.com/\r\nset-cookie:a=b"],
    ["a NUL", "https://app.example.com/\u0000"],
    ["a space inside", "https://app.example.com/a b"],
    ["letters outside of ASCII", "https://\u0430pp.example.com/back"],
    ["a port that is none", "https://app.example.com:99999/back"],
    ["nothing", ""],
  ])("threat: open redirect: refuses %s", async (_, redirectURI) => {
    await expectRefused({ redirectURI }, "INVALID_REDIRECT_URI");
  });

  it("leaves the config that is there as it was when the new one is refused", async () => {
    const first = await register({ redirectURI: "https://app.example.com/back" });
    const second = await register({ clientId: "other", redirectURI: "javascript:alert(1)" });
    expect(second.code).toBe("INVALID_REDIRECT_URI");
    const listed = await operator.get("/tenant/oauth-config/list", { query: { tenantId } });
    expect(listed.data).toEqual([first.data]);
  });
});

describe("providerId", () => {
  it.each([
    "nobody",
    "Google",
    "google ",
    "credential",
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "../google",
  ])("refuses %j, which is no built-in provider", async (providerId) => {
    await expectRefused({ providerId }, "UNSUPPORTED_PROVIDER");
  });
});

describe("everything else", () => {
  it.each<[string, object]>([
    ["no provider", { providerId: undefined }],
    ["an empty provider", { providerId: "" }],
    ["a provider with a NUL", { providerId: "google\u0000" }],
    ["a provider that is no text", { providerId: ["google"] }],
    ["no client id", { clientId: undefined }],
    ["an empty client id", { clientId: "" }],
    ["a client id that is no text", { clientId: ["google-client"] }],
    ["no client secret", { clientSecret: undefined }],
    ["an empty client secret", { clientSecret: "" }],
    ["a client secret that is no text", { clientSecret: { value: "google-secret" } }],
    ["null for the client secret", { clientSecret: null }],
    ["scopes in one text", { scopes: "openid email" }],
    ["scopes that are no text", { scopes: [1] }],
    ["a redirect URI that is no text", { redirectURI: { href: "https://app.example.com" } }],
    ["enabled as a text", { enabled: "true" }],
    ["null for enabled", { enabled: null }],
    ["a tenant that is no text", { tenantId: { id: "x" } }],
  ])("refuses %s", async (_, body) => {
    await expectRefused(body, "VALIDATION_ERROR");
  });

  it("refuses a body that is no JSON object", async () => {
    for (const body of ["[]", '"text"', "null"]) {
      const answer = await operator.post("/tenant/oauth-config/register", body);
      expect([answer.status, answer.code]).toEqual([400, "VALIDATION_ERROR"]);
    }
    expect(await instance.rows("tenantOauthConfig")).toBe(0);
  });

  it("ignores what is not for the caller to set", async () => {
    const answer = await register({ id: "mine", createdAt: "2001-01-01", updatedAt: "2001-01-01" });
    expect(answer.status).toBe(200);
    expect(answer.data.id).not.toBe("mine");
    expect(String(answer.data.createdAt)).not.toContain("2001");
    expect(String(answer.data.updatedAt)).not.toContain("2001");
  });

  it("keeps a client id in any script", async () => {
    const clientId = "client \u{1f511} ключ 'quoted' \\ \"";
    expect((await register({ clientId })).data.clientId).toBe(clientId);
  });
});

describe("who may not manage", () => {
  it.each(["register", "delete"])("learns nothing from %s", async (name) => {
    const path = `/tenant/oauth-config/${name}`;
    const person = (await instance.signUp(tenantId)).browser;
    for (const target of [tenantId, "nobody"]) {
      const body = { ...VALID, tenantId: target };
      const anonymous = await instance.browser().post(path, body);
      expect([anonymous.status, anonymous.code]).toEqual([401, "UNAUTHORIZED"]);
      const user = await person.post(path, body);
      expect([user.status, user.code]).toEqual([403, "TENANT_MANAGEMENT_NOT_ALLOWED"]);
    }
    expect(await instance.rows("tenantOauthConfig")).toBe(0);
  });
});
