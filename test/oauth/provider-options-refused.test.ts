import { socialProviderList } from "better-auth/social-providers";
import { beforeEach, describe, expect, it } from "vitest";
import { parseOwnOptions } from "../../src/oauth/provider-options";
import { entryOf, shared as sharedOptions } from "../../src/oauth/provider-table";
import { fakeNetwork } from "../support/network";
import { shareInstance } from "../support/shared";
import { neededBy } from "./option-sights";

const shared = shareInstance();
const CLIENT = { clientId: "acme-client", clientSecret: "acme-client-secret" };
/** Stands in every value that is refused, and must not come back. */
const MARK = "value-that-nobody-may-repeat";

let tenantId: string;

beforeEach(async () => {
  fakeNetwork();
  tenantId = (await shared.instance.createTenant()).id;
});

const rows = () => {
  const { quote } = shared.instance.database;
  return shared.instance.rows("tenantOauthConfig", `${quote("tenantId")} = ?`, [tenantId]);
};

/** The body is text: JSON has keys that an object literal cannot have. */
function register(providerId: string, options: string) {
  const fields = JSON.stringify({ tenantId, providerId, ...CLIENT }).slice(1);
  return shared.operator.post<{ message: string }>(
    "/tenant/oauth-config/register",
    `{"options":${options},${fields}`,
  );
}

async function expectRefused(
  providerId: string,
  options: string | object,
  named: string,
  code = "INVALID_PROVIDER_OPTIONS",
) {
  const text = typeof options === "string" ? options : JSON.stringify(options);
  const answer = await register(providerId, text);
  expect([text.slice(0, 200), answer.status, answer.code]).toEqual([text.slice(0, 200), 400, code]);
  expect(answer.data.message).toContain(named);
  expect(answer.data.message.length).toBeLessThan(600);
  expect(JSON.stringify([answer.data, ...answer.headers])).not.toContain(MARK);
  expect(await rows()).toBe(0);
}

/** The same without the way there, for the many. */
function expectInvalid(providerId: string, options: object, named: string) {
  let thrown: unknown;
  try {
    parseOwnOptions(providerId, options, []);
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toMatchObject({
    statusCode: 400,
    body: { code: "INVALID_PROVIDER_OPTIONS", message: expect.stringContaining(named) },
  });
  expect(JSON.stringify(thrown)).not.toContain(MARK);
}

const WRONG = [{ nested: MARK }, [[MARK]], -1.5, null];

describe.each([...socialProviderList])("%s", (id) => {
  const options = Object.entries({ ...sharedOptions, ...entryOf(id).options });

  it("takes no option that it does not know, and says which", async () => {
    await expectRefused(id, { ...neededBy(id), unheardOf: MARK }, "options.unheardOf");
  });

  it("takes none that is the application's", () => {
    const names = options.flatMap(([name, rule]) => (rule === null ? [name] : []));
    expect(names).toContain("getUserInfo");
    for (const name of names) {
      expectInvalid(id, { ...neededBy(id), [name]: MARK }, `options.${name}`);
    }
  });

  it("takes no value of the wrong kind", () => {
    const names = options.flatMap(([name, rule]) => (rule ? [name] : []));
    expect(names).toContain("prompt");
    for (const name of names) {
      for (const wrong of WRONG) {
        expectInvalid(id, { ...neededBy(id), [name]: wrong }, `options.${name}`);
      }
    }
  });
});

it("what is refused for itself is refused in a request", async () => {
  for (const name of ["getUserInfo", "clientAssertion", "scope", "redirectURI"]) {
    await expectRefused("microsoft", { [name]: MARK }, `options.${name}`);
  }
  for (const wrong of WRONG) await expectRefused("google", { hd: wrong }, "options.hd");
});

it("some options have few good values", async () => {
  const wrong: [string, Record<string, unknown>][] = [
    ["google", { prompt: MARK }],
    ["google", { accessType: MARK }],
    ["google", { display: MARK }],
    ["google", { hd: `${MARK} ${MARK}` }],
    ["google", { hd: `https://${MARK}` }],
    ["google", { hd: "" }],
    ["google", { includeGrantedScopes: "true" }],
    ["cloudflare", { tokenEndpointAuthMethod: "none" }],
    ["cloudflare", { tokenEndpointAuthMethod: "private_key_jwt" }],
    ["discord", { permissions: 1.5 }],
    ["discord", { permissions: "8" }],
    ["dropbox", { accessType: MARK }],
    ["facebook", { fields: [`id&access_token=${MARK}`] }],
    ["facebook", { fields: Array.from({ length: 51 }, () => "id") }],
    ["facebook", { configId: "" }],
    ["microsoft", { profilePhotoSize: 49 }],
    ["paypal", { environment: MARK }],
    ["reddit", { duration: MARK }],
    ["salesforce", { environment: MARK }],
    ["twitch", { claims: [`"${MARK}`] }],
    ["vk", { scheme: MARK }],
    ["wechat", { lang: MARK }],
    ["apple", { audience: [] }],
    ["apple", { audience: "" }],
    ["apple", { appBundleIdentifier: `${MARK}\n` }],
    ["google", { additionalClientIds: MARK }],
    ["google", { additionalClientIds: [""] }],
    ["google", { additionalClientIds: Array.from({ length: 21 }, (_, i) => `${MARK}-${i}`) }],
    // One client id is all that this provider can have.
    ["github", { additionalClientIds: [MARK] }],
  ];
  for (const [id, options] of wrong) {
    await expectRefused(id, options, `options.${Object.keys(options)[0]}`);
  }
});

it("a tenant may only forbid more than the application", async () => {
  for (const name of ["disableSignUp", "disableImplicitSignUp", "disableIdTokenSignIn"]) {
    await expectRefused("google", { [name]: false }, `options.${name}`);
  }
});

describe("what is needed and missing", () => {
  it.each(["domain", "region", "userPoolId"])("Cognito's %s", async (name) => {
    const { [name]: _, ...rest } = neededBy("cognito");
    await expectRefused("cognito", rest, `options.${name}`);
  });

  it("all of Cognito's", async () => {
    for (const options of ["null", "{}"]) {
      await expectRefused("cognito", options, "options.domain");
    }
  });
});

describe("threat: strange keys", () => {
  it.each([
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "hasOwnProperty",
    "valueOf",
    "__defineGetter__",
    "clientSecret",
    "clientId",
    "clientKey",
    "client_secret",
    "tokenEndpoint",
    "authorizationEndpoint",
    "getUserInfo",
    "mapProfileToUser",
    "scope",
    "enabled",
    "redirectURI",
    "tenantId",
    "options",
    "hd ",
    "HD",
    "",
    "0",
    "\u0000",
    "\ud83d\udd11",
  ])("%j is no option", async (key) => {
    const name = JSON.stringify(key);
    await expectRefused("google", `{${name}:"${MARK}"}`, `options.${key}`);
    await expectRefused("google", `{${name}:{"clientSecret":"${MARK}"}}`, `options.${key}`);
    await expectRefused("github", `{"prompt":"login",${name}:"${MARK}"}`, `options.${key}`);
  });

  it("change nothing about other objects", async () => {
    await register("google", `{"__proto__":{"polluted":true},"constructor":{"prototype":{"p":1}}}`);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(({} as Record<string, unknown>).p).toBeUndefined();
  });
});

describe("threat: strange values", () => {
  it.each(["[]", '["hd"]', `"${MARK}"`, "1", "true", "false", '""'])(
    "%s is not a set of options",
    async (options) => {
      await expectRefused("google", options, "options", "VALIDATION_ERROR");
    },
  );

  it("a million letters, a thousand levels and ten thousand keys are refused in few words", async () => {
    const deep = `${'{"a":'.repeat(1000)}"${MARK}"${"}".repeat(1000)}`;
    const list = JSON.stringify(Array.from({ length: 10_000 }, () => MARK));
    const keys = Array.from({ length: 10_000 }, (_, i) => `"${"k".repeat(100)}${i}":"${MARK}"`);
    await expectRefused("google", `{"hd":"${"a".repeat(1_000_000)}.example"}`, "options.hd");
    await expectRefused("google", `{"hd":${deep}}`, "options.hd");
    await expectRefused("twitch", `{"claims":${list}}`, "options.claims");
    await expectRefused("google", `{${keys.join(",")}}`, `options.${"k".repeat(64)}`);
    await expectRefused("google", deep, "options.a");
  });
});

describe("a refusal", () => {
  it("leaves the config that is there as it was", async () => {
    const first = await register("google", '{"hd":"acme.example"}');
    expect(first.status).toBe(200);
    expect((await register("google", `{"hd":"${MARK} "}`)).status).toBe(400);
    const list = await shared.operator.get("/tenant/oauth-config/list", { query: { tenantId } });
    expect(list.data).toEqual([first.data]);
  });

  it("is the same for the server's own code", async () => {
    const body = { tenantId, providerId: "google", ...CLIENT, options: { unheardOf: MARK } };
    const error = await shared.instance.api
      .registerTenantOAuthConfig({ body })
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      statusCode: 400,
      body: { code: "INVALID_PROVIDER_OPTIONS", message: expect.stringContaining("unheardOf") },
    });
    expect(JSON.stringify(error)).not.toContain(MARK);
    expect(await rows()).toBe(0);
  });
});
