import { betterAuth } from "better-auth";
import { describe, expect, it } from "vitest";
import { tenantAuth } from "../../src/index";
import { Browser } from "../support/browser";
import { startIdentityProvider } from "../support/identity-provider";
import { BASE_URL, PASSWORD } from "../support/instance";
import { GLOBAL } from "../support/social";

type SessionCookies = "shared" | "per-tenant";

/** Without a database better-auth keeps the account in a cookie, tied to no user. */
function createStateless(sessionCookies: SessionCookies, issuer: string) {
  return betterAuth({
    secret: "a test secret that is long enough for everybody",
    baseURL: "http://localhost:3000",
    emailAndPassword: {
      enabled: true,
      password: { hash: async (password) => password, verify: async () => true },
    },
    session: { cookieCache: { enabled: true, strategy: "jwe", refreshCache: true } },
    socialProviders: { gitlab: { ...GLOBAL, issuer } },
    account: { storeAccountCookie: true },
    logger: { disabled: true },
    plugins: [tenantAuth({ sessionCookies })],
  });
}

/** Alice, signed in at A by A's own client, whose browser then signs up at B. */
async function createAlice(sessionCookies: SessionCookies, expiresIn: number) {
  const idp = await startIdentityProvider();
  idp.registerClient(GLOBAL.clientId, GLOBAL.clientSecret);
  idp.addPerson("alice");
  Object.assign(idp.rules, { refreshTokens: true, expiresIn });
  const auth = createStateless(sessionCookies, idp.issuer);

  async function createTenant(slug: string) {
    const { id } = await auth.api.createTenant({ body: { name: slug, slug } });
    const config = { clientId: `client-${slug}`, clientSecret: `secret-${slug}` };
    idp.registerClient(config.clientId, config.clientSecret);
    const body = { tenantId: id, providerId: "gitlab", ...config };
    await auth.api.registerTenantOAuthConfig({ body });
    return id;
  }
  const a = await createTenant("aa");
  const b = await createTenant("bb");
  const browser = new Browser(auth.handler, BASE_URL);
  const start = await browser.post<{ url: string }>("/tenant/sign-in/social", {
    provider: "gitlab",
    tenantId: a,
    callbackURL: "/welcome",
  });
  await browser.get(await idp.authorize(start.data.url, "alice"));
  const atA = browser.fork({ "x-tenant-id": a });
  const atB = browser.fork({ "x-tenant-id": b });
  const person = { name: "B", email: "b@example.com", password: PASSWORD };
  expect((await atB.post("/tenant/sign-up/email", { ...person, tenantId: b })).status).toBe(200);
  return { idp, atA, atB };
}

const takeToken = (browser: Browser) =>
  browser.post<{ accessToken?: string }>("/get-access-token", { useAccountCookie: true });

describe.each(["shared", "per-tenant"] as const)("an account cookie of A, %s", (sessionCookies) => {
  it("R10: opens nothing at B", async () => {
    const { atA, atB } = await createAlice(sessionCookies, 7200);
    expect((await takeToken(atA)).data.accessToken).toEqual(expect.any(String));
    const taken = await takeToken(atB);
    expect([taken.status, taken.data.accessToken]).toEqual([400, undefined]);
  });

  it("R10: has a refresh token that is never sent by B's client", async () => {
    const { idp, atA, atB } = await createAlice(sessionCookies, 1);
    await takeToken(atB);
    await takeToken(atA);
    const refreshes = idp.exchanges().filter(({ params }) => params.grant_type === "refresh_token");
    expect(refreshes.map(({ params }) => params.client_id)).toEqual(["client-aa"]);
  });
});
