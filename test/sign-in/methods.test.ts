import { socialProviderList } from "better-auth/social-providers";
import { describe, expect, it } from "vitest";
import { runInTenant, type SignInMethods } from "../../src/index";
import { connect } from "../support/client";
import { createInstance, type Instance } from "../support/instance";
import { fakeNetwork } from "../support/network";
import { shareInstance } from "../support/shared";

const GLOBAL = { clientId: "global-client", clientSecret: "global-client-secret" };
const CLIENT = { clientId: "acme-client", clientSecret: "acme-client-secret" };
const POOL = {
  domain: "acme.auth.eu-west-1.amazoncognito.com",
  region: "eu-west-1",
  userPoolId: "eu-west-1_Acme",
};
const OWN = "ours-alone.example";

const shared = shareInstance({
  tenant: { trustedProviderHosts: [OWN] },
  auth: {
    socialProviders: {
      google: GLOBAL,
      discord: GLOBAL,
      gitlab: GLOBAL,
      slack: { ...GLOBAL, enabled: false },
    },
  },
});

const ask = (instance: Instance, tenantId?: string) =>
  instance
    .browser()
    .get<SignInMethods>("/tenant/sign-in-methods", tenantId ? { query: { tenantId } } : {});

const register = (tenantId: string, providerId: string, more: object = {}) =>
  shared.instance.api.registerTenantOAuthConfig({
    body: { tenantId, providerId, ...CLIENT, ...more },
  });

const idsAt = async (tenantId: string) =>
  (await ask(shared.instance, tenantId)).data.providers.map(({ id }) => id);

describe("the answer", () => {
  it("says who the tenant is, and how people sign in, in exactly these fields", async () => {
    const { instance } = shared;
    const body = { name: "Acme Inc.", slug: "acme", metadata: { plan: "secret plan" } };
    const { id } = await instance.api.createTenant({ body });
    await register(id, "github", { scopes: ["repo"], redirectURI: "https://acme.example/back" });
    const answer = await ask(instance, id);
    expect(answer.status).toBe(200);
    expect(answer.data).toEqual({
      tenant: { id, name: "Acme Inc.", slug: "acme", status: "active" },
      emailAndPassword: { enabled: true, signUp: true },
      providers: [
        { id: "google", name: "Google" },
        { id: "discord", name: "Discord" },
        { id: "gitlab", name: "Gitlab" },
        { id: "github", name: "GitHub" },
      ],
    });
    expect(answer.headers.getSetCookie()).toEqual([]);
  });

  it("is the same for everybody, whoever asks", async () => {
    const { instance, operator } = shared;
    const { id } = await instance.createTenant();
    const home = await instance.createTenant();
    const expected = (await ask(instance, id)).data;
    const callers = [operator, (await instance.signUp(id)).browser];
    callers.push((await instance.signUp(home.id)).browser);
    for (const browser of callers) {
      const path = "/tenant/sign-in-methods";
      expect((await browser.get(path, { query: { tenantId: id } })).data).toEqual(expected);
    }
  });

  it.each([
    [{ enabled: true }, { enabled: true, signUp: true }],
    [
      { enabled: true, disableSignUp: false },
      { enabled: true, signUp: true },
    ],
    [
      { enabled: true, disableSignUp: true },
      { enabled: true, signUp: false },
    ],
    [{ enabled: false }, { enabled: false, signUp: false }],
    [
      { enabled: false, disableSignUp: true },
      { enabled: false, signUp: false },
    ],
  ])("with emailAndPassword %j is %j", async (emailAndPassword, expected) => {
    const instance = await createInstance({ auth: { emailAndPassword } });
    const { id } = await instance.createTenant();
    const { data } = await ask(instance, id);
    expect(data.emailAndPassword).toEqual(expected);
    expect(data.providers).toEqual([]);
    // That is what sign-up says, too.
    const body = { tenantId: id, name: "A", email: "a@example.com", password: "long enough" };
    const { status } = await instance.browser().post("/tenant/sign-up/email", body);
    expect(status === 200).toBe(expected.signUp);
  });

  it("costs two queries, however many configs there are, and asks no provider", async () => {
    const { instance } = shared;
    const { id } = await instance.createTenant();
    for (const providerId of ["github", "twitch", "vk", "zoom"]) await register(id, providerId);
    const sent = fakeNetwork();
    instance.database.statements.length = 0;
    expect((await ask(instance, id)).data.providers).toHaveLength(7);
    expect(instance.database.statements).toHaveLength(2);
    expect(instance.database.statements.join()).not.toMatch(/insert|update|delete/i);
    expect(sent).toEqual([]);
  });
});

describe("the providers", () => {
  it("are the global ones that are switched on", async () => {
    const { id } = await shared.instance.createTenant();
    expect(await idsAt(id)).toEqual(["google", "discord", "gitlab"]);
  });

  it("and the tenant's own, each once, and nobody else's", async () => {
    const { id } = await shared.instance.createTenant();
    const other = await shared.instance.createTenant();
    await register(id, "google");
    await register(id, "slack");
    await register(other.id, "twitch");
    expect(await idsAt(id)).toEqual(["google", "discord", "gitlab", "slack"]);
    expect(await idsAt(other.id)).toEqual(["google", "discord", "gitlab", "twitch"]);
  });

  it("for a config that is switched off the global one stands in, if there is one", async () => {
    const { id } = await shared.instance.createTenant();
    await register(id, "google", { enabled: false });
    await register(id, "github", { enabled: false });
    expect(await idsAt(id)).toEqual(["google", "discord", "gitlab"]);
  });

  it("for one that cannot be used nothing stands in", async () => {
    const { instance } = shared;
    const { id } = await instance.createTenant();
    const { quote, query } = instance.database;
    const spoil = (column: string, value: string | null, providerId: string) =>
      query(
        `update ${quote("tenantOauthConfig")} set ${quote(column)} = ?
         where ${quote("tenantId")} = ? and ${quote("providerId")} = ?`,
        [value, id, providerId],
      );
    await register(id, "google");
    await register(id, "discord", { options: { prompt: "consent" } });
    await register(id, "gitlab");
    await register(id, "cognito", { options: POOL });
    expect(await idsAt(id)).toEqual(["google", "discord", "gitlab", "cognito"]);
    await spoil("clientSecret", "00ff00ff", "google");
    await spoil("options", "00ff00ff", "discord");
    await spoil("clientId", "00ff00ff", "gitlab");
    // As it was stored before the provider's options were.
    await spoil("options", null, "cognito");
    expect(await idsAt(id)).toEqual([]);
  });

  it("are exactly those that a sign-in finds", async () => {
    const { instance } = shared;
    const { id } = await instance.createTenant();
    await register(id, "google", { enabled: false });
    await register(id, "discord");
    await register(id, "github");
    await register(id, "twitch", { enabled: false });
    await register(id, "cognito", { options: POOL });
    await register(id, "gitlab", { options: { issuer: `https://${OWN}` } });
    const { quote, query } = instance.database;
    await query(
      `update ${quote("tenantOauthConfig")} set ${quote("clientId")} = 'broken'
       where ${quote("tenantId")} = ? and ${quote("providerId")} = 'discord'`,
      [id],
    );
    const found: string[] = [];
    for (const provider of socialProviderList) {
      const body = { tenantId: id, provider };
      const { status } = await instance.browser().post("/tenant/sign-in/social", body);
      if (status === 200) found.push(provider);
    }
    expect((await idsAt(id)).sort()).toEqual(found.sort());
    expect(found).toEqual(["cognito", "github", "gitlab", "google"]);
  });
});

describe("R1: the tenant", () => {
  it("is named by the query, else by the header", async () => {
    const { instance } = shared;
    const [one, two] = [await instance.createTenant(), await instance.createTenant()];
    const get = async (options: object) =>
      (await instance.browser().get<SignInMethods>("/tenant/sign-in-methods", options)).data.tenant
        .id;
    const headers = { "x-tenant-id": two.id };
    expect(await get({ query: { tenantId: one.id } })).toBe(one.id);
    expect(await get({ headers })).toBe(two.id);
    expect(await get({ query: { tenantId: one.id }, headers })).toBe(one.id);
  });

  it("is the resolver's before all others, by id or by slug", async () => {
    let resolved: string | { slug: string } | null = null;
    const instance = await createInstance({ tenant: { resolveTenantId: () => resolved } });
    const [one, two] = [await instance.createTenant(), await instance.createTenant()];
    for (const answer of [two.id, { slug: two.slug }]) {
      resolved = answer;
      expect((await ask(instance, one.id)).data.tenant.id).toBe(two.id);
      expect((await ask(instance)).data.tenant.id).toBe(two.id);
    }
  });

  it("is the one around a call of the server's own code", async () => {
    const { instance } = shared;
    const { id } = await instance.createTenant();
    await register(id, "github");
    const inside = await runInTenant(id, () => instance.api.getTenantSignInMethods());
    expect(inside).toEqual((await ask(instance, id)).data);
    const named = await instance.api.getTenantSignInMethods({ query: { tenantId: id } });
    expect(named).toEqual(inside);
  });

  it("R2: has to be named, and to exist", async () => {
    const { instance } = shared;
    const { id } = await instance.createTenant();
    const unnamed = await ask(instance);
    expect([unnamed.status, unnamed.code]).toEqual([400, "TENANT_ID_REQUIRED"]);
    // A session is no name here: the page is asked before anybody is signed in.
    const person = (await instance.signUp(id)).browser;
    const signedIn = await person.get("/tenant/sign-in-methods");
    expect([signedIn.status, signedIn.code]).toEqual([400, "TENANT_ID_REQUIRED"]);
    for (const tenantId of ["nobody", `${id} `, id.toUpperCase(), "\u0000"]) {
      const unknown = await ask(instance, tenantId);
      expect([unknown.status, unknown.code]).toEqual([404, "TENANT_NOT_FOUND"]);
    }
  });
});

it("authClient.tenant.signInMethods() asks for it", async () => {
  const { instance } = shared;
  const { id } = await instance.createTenant();
  const expected = (await ask(instance, id)).data;
  const plain = connect(instance);
  const byQuery = await plain.authClient.tenant.signInMethods({ query: { tenantId: id } });
  expect(plain.last()).toMatchObject({ method: "GET", path: "/tenant/sign-in-methods" });
  expect(byQuery).toMatchObject({ error: null, data: expected });
  const ofTenant = connect(instance, { tenant: { tenantId: id } });
  const byHeader = await ofTenant.authClient.tenant.signInMethods();
  expect(ofTenant.last()).toMatchObject({ method: "GET", query: {}, body: undefined });
  expect(byHeader.data).toEqual(expected);
  const missing = await connect(instance).authClient.tenant.signInMethods();
  expect(missing.error).toMatchObject({ status: 400, code: "TENANT_ID_REQUIRED" });
});
