import { createAuthorizationURL, validateAuthorizationCode } from "better-auth/oauth2";
import { socialProviderList, socialProviders } from "better-auth/social-providers";
import { expect, it, onTestFinished } from "vitest";
import { createInstance } from "../support/instance";
import { fakeNetwork } from "../support/network";

const CLIENT = { clientId: "acme-client", clientSecret: "acme-client-secret" };
const PROVIDER = "https://tomorrow.example";

interface TomorrowOptions {
  clientId: string;
  clientSecret: string;
  realm?: string;
}

/** A provider as better-auth writes them, which needs a client id and a secret. */
const tomorrow = (options: TomorrowOptions) => ({
  id: "tomorrow",
  name: "Tomorrow",
  accountSubject: ({ profile }: { profile: { id: string } }) => profile.id,
  createAuthorizationURL: (flow: { state: string; codeVerifier: string; redirectURI: string }) =>
    createAuthorizationURL({
      id: "tomorrow",
      options,
      authorizationEndpoint: `${PROVIDER}/authorize`,
      ...flow,
    }),
  validateAuthorizationCode: (code: { code: string; codeVerifier?: string; redirectURI: string }) =>
    validateAuthorizationCode({ ...code, options, tokenEndpoint: `${PROVIDER}/token` }),
  async getUserInfo({ accessToken }: { accessToken?: string }) {
    const headers = { authorization: `Bearer ${accessToken}` };
    const profile = await (await fetch(`${PROVIDER}/me`, { headers })).json();
    return { user: { ...profile, emailVerified: true }, data: profile };
  },
  options,
});

/** One that cannot even be made without a realm. */
const strict = ({ realm, ...options }: TomorrowOptions) => {
  if (!realm) throw new Error("REALM_REQUIRED");
  return tomorrow(options);
};

/** One that notices only when somebody wants to sign in. */
const late = (options: TomorrowOptions) => ({
  ...tomorrow(options),
  createAuthorizationURL: async () => {
    throw new Error("REALM_REQUIRED");
  },
});

/** better-auth with one more provider, until the test is over. */
async function createInstanceOfTomorrow(factory: (options: TomorrowOptions) => unknown) {
  const list = socialProviderList as unknown as string[];
  const providers = socialProviders as unknown as Record<string, unknown>;
  list.push("tomorrow");
  providers.tomorrow = factory;
  const forget = () => {
    if (list.includes("tomorrow")) list.splice(list.indexOf("tomorrow"), 1);
    delete providers.tomorrow;
  };
  onTestFinished(forget);
  const instance = await createInstance();
  const { browser: operator } = await instance.operator();
  const { id: tenantId } = await instance.createTenant();
  const register = (options?: object) =>
    operator.post("/tenant/oauth-config/register", {
      tenantId,
      providerId: "tomorrow",
      ...CLIENT,
      options,
    });
  return { instance, operator, tenantId, register, forget };
}

it("a provider that better-auth adds works with a client id and a secret", async () => {
  const { instance, operator, tenantId, register } = await createInstanceOfTomorrow(tomorrow);
  expect((await register()).status).toBe(200);
  const sent = fakeNetwork(({ url }) =>
    Response.json(
      url.endsWith("/token")
        ? { access_token: "good", token_type: "Bearer" }
        : { id: "alice", name: "Alice", email: "alice@example.com" },
    ),
  );
  const browser = instance.browser();
  const start = await browser.post<{ url: string }>("/tenant/sign-in/social", {
    tenantId,
    provider: "tomorrow",
    callbackURL: "/welcome",
  });
  const url = new URL(start.data.url);
  expect([url.origin, url.searchParams.get("client_id")]).toEqual([PROVIDER, CLIENT.clientId]);
  const redirectURI = "http://localhost:3000/api/auth/tenant/callback/tomorrow";
  expect(url.searchParams.get("redirect_uri")).toBe(redirectURI);
  const state = url.searchParams.get("state") ?? "";
  const back = await browser.get("/tenant/callback/tomorrow", { query: { code: "c", state } });
  expect(back.location).toBe("/welcome");
  expect(sent.map((request) => request.url)).toEqual([`${PROVIDER}/token`, `${PROVIDER}/me`]);
  const form = Object.fromEntries(new URLSearchParams(sent[0]?.body));
  expect(form).toMatchObject({
    client_id: CLIENT.clientId,
    client_secret: CLIENT.clientSecret,
    redirect_uri: redirectURI,
  });
  const session = await browser.get("/get-session", { headers: { "x-tenant-id": tenantId } });
  expect(session.data).toMatchObject({ user: { email: "alice@example.com", tenantId } });

  const methods = await instance.browser().get("/tenant/sign-in-methods", { query: { tenantId } });
  expect(methods.data.providers).toEqual([{ id: "tomorrow", name: "Tomorrow" }]);
  const check = await operator.post("/tenant/oauth-config/check", {
    tenantId,
    providerId: "tomorrow",
  });
  expect(check.data).toMatchObject({ ok: true, redirectURI });
});

it("it takes the options that all providers share, and no others", async () => {
  const { instance, register } = await createInstanceOfTomorrow(tomorrow);
  const refused = await register({ realm: "acme" });
  expect([refused.status, refused.code]).toEqual([400, "INVALID_PROVIDER_OPTIONS"]);
  expect(refused.data.message).toContain("options.realm");
  expect((await register({ additionalClientIds: ["other"] })).code).toBe(
    "INVALID_PROVIDER_OPTIONS",
  );
  expect(await instance.rows("tenantOauthConfig")).toBe(0);
  const taken = await register({ disableSignUp: true });
  expect([taken.status, taken.data.options]).toEqual([200, { disableSignUp: true }]);
});

it.each([
  ["when it is made", strict],
  ["when somebody wants to sign in", late],
])("one that needs more, and says so %s, is refused at registration", async (_, factory) => {
  const { instance, operator, tenantId, register } = await createInstanceOfTomorrow(factory);
  const answer = await register();
  expect([answer.status, answer.code]).toEqual([400, "INVALID_PROVIDER_OPTIONS"]);
  expect(JSON.stringify(answer.data)).not.toMatch(/acme-client|REALM/);
  expect(await instance.rows("tenantOauthConfig")).toBe(0);
  const sent = fakeNetwork();
  const check = await operator.post("/tenant/oauth-config/check", {
    tenantId,
    providerId: "tomorrow",
    ...CLIENT,
  });
  expect(check.data).toMatchObject({
    ok: false,
    findings: [{ subject: "options", ok: false, code: "INVALID_PROVIDER_OPTIONS" }],
  });
  expect(sent).toEqual([]);
});

it("a provider that better-auth drops signs nobody in, and its config can be seen and deleted", async () => {
  const { instance, operator, tenantId, register, forget } =
    await createInstanceOfTomorrow(tomorrow);
  await register();
  forget();
  const start = await instance.browser().post("/tenant/sign-in/social", {
    tenantId,
    provider: "tomorrow",
  });
  expect([start.status, start.code]).toEqual([404, "PROVIDER_NOT_FOUND"]);
  const methods = await instance.browser().get("/tenant/sign-in-methods", { query: { tenantId } });
  expect(methods.data.providers).toEqual([]);
  const list = await operator.get("/tenant/oauth-config/list", { query: { tenantId } });
  expect(list.data).toMatchObject([{ providerId: "tomorrow", readable: true }]);
  const deleted = await operator.post("/tenant/oauth-config/delete", {
    tenantId,
    providerId: "tomorrow",
  });
  expect(deleted.status).toBe(200);
});
