import { apiKey } from "@better-auth/api-key";
import { oauthProvider } from "@better-auth/oauth-provider";
import { bearer, jwt, oneTimeToken } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { createInviting } from "../invitations/inviting";
import type { Browser } from "../support/browser";
import { type Instance, PASSWORD } from "../support/instance";
import { createPlaces, EMAIL, expectRefused } from "./places";

const BACK = "https://client.example/back";
const FORM = { headers: { "content-type": "application/x-www-form-urlencoded" } };

const provider = () =>
  oauthProvider({
    loginPage: "/login",
    consentPage: "/consent",
    allowDynamicClientRegistration: true,
    allowUnauthenticatedClientRegistration: true,
  });

/** An application, and what it sends people with; and the query that is signed for the login page. */
async function createClient(browser: () => Browser) {
  const body = { redirect_uris: [BACK], token_endpoint_auth_method: "none" };
  const { data } = await browser().post<{ client_id: string }>("/oauth2/register", body);
  const query = {
    client_id: data.client_id,
    response_type: "code",
    redirect_uri: BACK,
    scope: "openid email",
    state: "a-state",
    code_challenge: "x".repeat(43),
    code_challenge_method: "S256",
  };
  const login = await browser().get("/oauth2/authorize", { query });
  expect(login.location).toMatch(/^\/login\?/);
  const oauth_query = login.location?.split("?")[1] ?? "";
  return { query, oauth_query };
}

type Call = (browser: Browser) => ReturnType<Browser["get"]>;

const calls = ({ query, oauth_query }: Awaited<ReturnType<typeof createClient>>): Call[] => [
  (browser) => browser.get("/oauth2/authorize", { query }),
  (browser) => browser.post("/oauth2/authorize", new URLSearchParams(query).toString(), FORM),
  (browser) => browser.post("/oauth2/consent", { accept: true, oauth_query }),
  (browser) => browser.post("/oauth2/continue", { selected: true, oauth_query }),
  (browser) => browser.get("/oauth2/get-clients"),
  (browser) => browser.get("/oauth2/get-consents"),
  (browser) => browser.post("/update-user", { name: "Changed", oauth_query }),
];

describe.each(["shared", "per-tenant"] as const)("oauth-provider, %s cookies", (sessionCookies) => {
  async function createServer() {
    const keys = apiKey({ enableSessionForAPIKeys: true, rateLimit: { enabled: false } });
    const plugins = [jwt(), provider(), bearer(), oneTimeToken(), keys];
    const places = await createPlaces(plugins, {
      tenant: { scopedModels: ["apikey"], sessionCookies },
    });
    const client = await createClient(() => places.instance.browser());
    return { ...places, client };
  }

  /** Everything that stands for somebody, in browsers that name no tenant. */
  async function carriersOf(instance: Instance, { browser, token }: Awaited<SignedUp>) {
    const { data } = await browser.post<{ key: string }>("/api-key/create", { name: "a key" });
    const withCookies = instance.browser();
    const renamed = instance.browser();
    for (const [name, value] of browser.cookies) {
      withCookies.cookies.set(name, value);
      renamed.cookies.set(name.replace(/(session_token).*/, "$1"), value);
    }
    return [
      withCookies,
      renamed,
      instance.browser({ authorization: `Bearer ${token}` }),
      instance.browser({ "x-api-key": data.key }),
    ];
  }
  type SignedUp = ReturnType<Awaited<ReturnType<typeof createServer>>["signUp"]>;

  it("R5: no credential of a tenant's is one there, at whichever endpoint", async () => {
    const { signUp, instance, client, unchanged } = await createServer();
    const carriers = await carriersOf(instance, await signUp("a"));
    for (const browser of carriers) {
      for (const call of calls(client)) {
        const answer = await unchanged(() => call(browser));
        if (answer.status === 302) expect(answer.location).toMatch(/^\/login\?/);
        else expect(answer.status).toBe(401);
      }
    }
  });

  it("control: those of the platform are", async () => {
    const { signUp, instance, client } = await createServer();
    const [browser] = await carriersOf(instance, await signUp("platform"));
    for (const call of calls(client)) {
      const answer = await call(browser as Browser);
      expect(answer.location ?? "/consent").toMatch(/^\/consent/);
      expect(answer.status).toBeLessThan(400);
    }
  });

  it("threat: no way into a tenant goes on to an application", async () => {
    const { signUp, at, instance, ids, client, rows } = await createServer();
    const { browser } = await signUp("a");
    const { oauth_query } = client;
    const { data } = await browser.get<{ token: string }>("/one-time-token/generate");
    const person = { email: EMAIL, password: PASSWORD, oauth_query };
    const named = { ...person, tenantId: ids.a };
    const refused = await instance.browser().post("/tenant/sign-in/email", named);
    expectRefused(refused, 403, "PLATFORM_ONLY");
    const token = { token: data.token, oauth_query };
    expectRefused(await at("a").post("/one-time-token/verify", token), 403, "PLATFORM_ONLY");
    expectRefused(await instance.browser().post("/one-time-token/verify", token), 400);
    expect(await rows("oauthConsent")).toBe(0);
  });
});

it("threat: an invitation to a tenant leads to no application", async () => {
  const inviting = await createInviting({ plugins: [jwt(), provider()] });
  const { oauth_query } = await createClient(() => inviting.browser());
  const { token } = await inviting.invite(inviting.ids.a);
  expectRefused(await inviting.accept(token, { oauth_query }), 403, "PLATFORM_ONLY");
  expect(await inviting.users(inviting.ids.a)).toBe(0);
  expect((await inviting.accept(token)).status).toBe(200);
});
