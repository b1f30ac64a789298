import { electron } from "@better-auth/electron";
import { anonymous, oneTap, username } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { runInTenant, type SignInMethod, type SignInMethods } from "../../../src/index";
import { fakeNetwork } from "../../support/providers";
import {
  createWorld,
  outcome,
  shareWorld,
  type World,
  type WorldOptions,
} from "../../support/world";
import { createWays } from "../policy/sign-ins";

const PATH = "/tenant/sign-in-methods";
const GLOBAL = { clientId: "global-client", clientSecret: "global-client-secret" };
const CLIENT = { clientId: "acme-client", clientSecret: "acme-client-secret" };
const POOL = { domain: "a.amazoncognito.com", region: "eu-west-1", userPoolId: "eu-west-1_Acme" };
const OWN = "ours-alone.example";
const slack = { ...GLOBAL, enabled: false };
const socialProviders = { google: GLOBAL, discord: GLOBAL, gitlab: GLOBAL, slack };

const shared = shareWorld({ tenant: { trustedProviderHosts: [OWN] }, auth: { socialProviders } });

const ask = (tenantId?: string, world: World = shared) =>
  world.browser().get<SignInMethods>(PATH, tenantId ? { query: { tenantId } } : {});

const idsAt = async (tenantId: string) => (await ask(tenantId)).data.providers.map(({ id }) => id);

/** A tenant with configs of its own for some providers. */
async function settle(configs: Record<string, object> = {}) {
  const { id } = await shared.createTenant();
  for (const [providerId, more] of Object.entries(configs)) {
    const body = { tenantId: id, providerId, ...CLIENT, ...more };
    await shared.api.registerTenantOAuthConfig({ body });
  }
  return id;
}

it("says who the tenant is, and how users sign in, in exactly these fields", async () => {
  const body = { name: "Initech Inc.", slug: "initech", metadata: { plan: "secret plan" } };
  const { id } = await shared.api.createTenant({ body });
  const more = { scopes: ["repo"], redirectURI: "https://acme.example/back" };
  const config = { tenantId: id, providerId: "github", ...CLIENT, ...more };
  await shared.api.registerTenantOAuthConfig({ body: config });
  const answer = await ask(id);
  const expected = {
    tenant: { id, name: "Initech Inc.", slug: "initech", status: "active" },
    methods: ["password", "social:google", "social:discord", "social:gitlab", "social:github"],
    twoFactor: { required: false },
    emailAndPassword: { enabled: true, signUp: true },
    providers: [
      { id: "google", name: "Google" },
      { id: "discord", name: "Discord" },
      { id: "gitlab", name: "Gitlab" },
      { id: "github", name: "GitHub" },
    ],
  };
  expect([answer.status, answer.data]).toEqual([200, expected]);
  expect(answer.headers.getSetCookie()).toEqual([]);
  // Whoever asks, and from wherever.
  for (const caller of [await shared.operator(), await shared.as("jane", "globex")]) {
    expect((await caller.get(PATH, { query: { tenantId: id } })).data).toEqual(expected);
  }
});

it.each([
  [{ emailAndPassword: { enabled: true, disableSignUp: true } }, true],
  [{ emailAndPassword: { enabled: false } }, false],
  [{ disabledPaths: ["/sign-in/email"] }, false],
  [{ disabledPaths: ["/sign-up/email"] }, true],
])("with %j nobody signs up, and users sign in: %s", async (auth, enabled) => {
  const world = await createWorld({ auth });
  const { data } = await ask(world.ids.acme, world);
  expect(data).toMatchObject({ emailAndPassword: { enabled, signUp: false }, providers: [] });
});

it("costs two queries, however many configs there are, and asks no provider", async () => {
  const id = await settle({ github: {}, twitch: {}, vk: {}, zoom: {} });
  const sent = fakeNetwork();
  const { statements } = shared.database;
  statements.length = 0;
  expect(await idsAt(id)).toHaveLength(7);
  expect(statements).toHaveLength(2);
  expect(statements.join()).not.toMatch(/insert|update|delete/i);
  expect(sent).toEqual([]);
});

it("the providers are exactly those that a sign-in finds", async () => {
  const id = await settle({
    google: { enabled: false },
    discord: {},
    github: {},
    twitch: { enabled: false },
    cognito: { options: POOL },
    gitlab: { options: { issuer: `https://${OWN}` } },
  });
  await settle({ twitch: {} });
  await shared.database.query(
    `update "tenantOauthConfig" set "clientId" = 'broken'
       where "tenantId" = ? and "providerId" = 'discord'`,
    [id],
  );
  const found: string[] = [];
  for (const provider of "google discord gitlab github twitch cognito slack zoom".split(" ")) {
    const { status } = await shared.at(id).post("/tenant/sign-in/social", { provider });
    if (status === 200) found.push(provider);
  }
  expect((await idsAt(id)).sort()).toEqual(found.sort());
  expect(found).toEqual(["cognito", "github", "gitlab", "google"]);
});

it("R2: the tenant has to be named, and to exist; around a call of the server it is", async () => {
  const { acme } = shared.ids;
  expect(outcome(await ask())).toEqual([400, "TENANT_ID_REQUIRED"]);
  // A session is no name here: the page is asked before anybody is signed in.
  const window = (await shared.as("jane", "acme")).fork({});
  expect(outcome(await window.get(PATH))).toEqual([400, "TENANT_ID_REQUIRED"]);
  for (const tenantId of ["nobody", `${acme} `, acme.toUpperCase(), "\u0000"]) {
    expect(outcome(await ask(tenantId))).toEqual([404, "TENANT_NOT_FOUND"]);
  }
  const called = await runInTenant(acme, () => shared.api.getTenantSignInMethods());
  expect(called).toEqual((await ask(acme)).data);
});

it("sign-in-methods answers what the policy allows, and not the policy", async () => {
  const { at, change } = await createWorld({
    auth: { socialProviders: { google: GLOBAL, gitlab: GLOBAL } },
  });
  const methods = async () => (await at("acme").get("/tenant/sign-in-methods")).data;
  expect(await methods()).toMatchObject({ emailAndPassword: { enabled: true, signUp: true } });
  await change("acme", { policy: { methods: ["social:gitlab"] } });
  expect(await methods()).toMatchObject({
    emailAndPassword: { enabled: false, signUp: false },
    providers: [{ id: "gitlab" }],
  });
  await change("acme", { policy: { signUp: "invited", methods: ["password"] } });
  expect(await methods()).toMatchObject({
    emailAndPassword: { enabled: true, signUp: false },
    providers: [],
  });
  expect(JSON.stringify(await methods())).not.toContain("polic");
});

describe("methods", () => {
  const CASES: [string, WorldOptions, SignInMethod[]][] = [
    ["nothing but a password", {}, ["password"]],
    ["nothing at all", { auth: { emailAndPassword: { enabled: false } } }, []],
    [
      "one that is switched off",
      { plugins: [anonymous()], auth: { disabledPaths: ["/sign-in/email", "/sign-in/anonymous"] } },
      [],
    ],
    ["a username", { plugins: [username()] }, ["password"]],
    [
      "one tap with a client of its own",
      { plugins: [oneTap({ clientId: "id" })] },
      ["password", "social:google"],
    ],
  ];

  it.each(CASES)("an application with %s", async (_, options, methods) => {
    const world = await createWorld(options);
    expect((await ask(world.ids.acme, world)).data.methods).toEqual(methods);
  });

  it("all that there are, each with the name that a policy has for it", async () => {
    const { ways, at, setPolicy, api, ids } = await createWays("the database");
    const query = { tenantId: ids.acme };
    const offered = async () => (await api.getTenantSignInMethods({ query })).methods;
    const all = await offered();
    const used = ways.flatMap(({ method }) => method ?? []);
    expect([...all].sort()).toEqual([...new Set(used)].sort());
    for (const method of all) {
      await setPolicy({ methods: [method] });
      expect(await offered()).toEqual([method]);
      // Another tenant decides for itself.
      expect((await at("globex").get<SignInMethods>(PATH)).data.methods).toEqual(all);
    }
    await setPolicy({ methods: ["social"] });
    expect(await offered()).toEqual(all.filter((method) => method.startsWith("social:")));
  });

  it("electron, which works on the platform only, is none of a tenant's", async () => {
    const world = await createWorld({ plugins: [electron()] });
    expect((await ask(world.ids.acme, world)).data.methods).toEqual(["password"]);
  });
});
