// Cookies of one place in a browser that is at another.
import type { BetterAuthPlugin } from "better-auth";
import { createAuthMiddleware, getSessionFromCtx } from "better-auth/api";
import { anonymous, bearer, multiSession } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { Browser } from "../support/browser";
import { startIdentityProvider } from "../support/identity-provider";
import { BASE_URL, createStateless, PASSWORD } from "../support/instance";
import { combine } from "../support/matrix";
import { createSocialWorld, GLOBAL } from "../support/social";
import { createStorage, type Store } from "../support/stores";
import { createWorld } from "../support/world";

type SessionOptions = NonNullable<Store["session"]>;
const cached = (strategy: "compact" | "jwt" | "jwe"): Store => ({
  name: `a cached cookie (${strategy})`,
  session: { cookieCache: { enabled: true, maxAge: 300, strategy } },
});
const inStorage = (name: string, session: SessionOptions = {}): Store => ({
  name,
  storage: () => createStorage(),
  session,
});
const DATABASE: Store = { name: "the database" };
const COOKIES = ["shared", "per-tenant"] as const;

it("R5: a dead bearer token at Globex does not take the cookie of Acme along", async () => {
  const world = await createWorld({ plugins: [bearer()] });
  const { acme, globex } = await world.janes();
  await globex.post("/sign-out");
  const tab = world.at("globex", acme);
  expect((await tab.get("/list-sessions")).headers.getSetCookie()).toEqual([]);
  const headers = { authorization: `Bearer ${globex.token}` };
  const answer = await tab.get("/list-sessions", { headers });
  expect([answer.status, answer.headers.getSetCookie()]).toEqual([401, []]);
  expect(await world.whoIs(tab, "acme")).toMatchObject({ id: acme.id });
});

/** Asks after every request who is there, which is where a stranger's session is looked at. */
const asks: BetterAuthPlugin = {
  id: "asks",
  hooks: {
    after: [
      {
        matcher: () => true,
        handler: createAuthMiddleware(async (ctx) => void (await getSessionFromCtx(ctx))),
      },
    ],
  },
};

const PLUGINS: [string, () => BetterAuthPlugin[]][] = [
  ["nothing else (control)", () => []],
  ["anonymous()", () => [anonymous()]],
  ["an after hook that asks who is there", () => [asks]],
];
const withStores = combine(PLUGINS, [DATABASE, inStorage("a storage"), cached("compact")]).map(
  ([[name, plugins], store]) => [name, store.name, plugins, store] as const,
);

describe("R5: signing in at Globex in a browser of elsewhere", () => {
  it.each(withStores)("with %s, sessions in %s: one is there", async (_, __, plugins, store) => {
    const world = await createWorld({ plugins: plugins(), store });
    const janes = await world.janes();
    for (const home of ["acme", "platform"] as const) {
      const tab = world.at("globex", janes[home]);
      const body = { email: janes.globex.email, password: PASSWORD };
      expect((await tab.post("/sign-in/email", body)).status).toBe(200);
      expect(await world.whoIs(tab)).toMatchObject({ id: janes.globex.id });
    }
  });

  it.each(PLUGINS)("with %s, by a provider: one is there", async (_, plugins) => {
    const world = await createSocialWorld({ plugins: plugins() });
    await world.configure("globex");
    const tab = world.at(null, await world.as("jane", "acme"));
    expect((await world.signInAtProvider(tab, "globex")).location).toBe("/welcome");
    expect(await world.whoIs(tab, "globex")).toMatchObject({ tenantId: world.ids.globex });
  });
});

const STORES = [DATABASE, cached("compact"), cached("jwt"), cached("jwe")];
const withCookies = combine(STORES, COOKIES).map(
  ([store, cookies]) => [cookies, store.name, store] as const,
);

describe("signing out with multiSession()", () => {
  it.each(withCookies)("ends the session, cookies %s, in %s", async (sessionCookies, _, store) => {
    const world = await createWorld({
      plugins: [multiSession()],
      tenant: { sessionCookies },
      store,
    });
    for (const place of ["acme", "platform"]) {
      // With Globex open as well.
      const both = await world.signUp(place, "both@example.com");
      for (const [name, value] of (await world.as("jane", "globex")).cookies) {
        if (!both.cookies.has(name)) both.cookies.set(name, value);
      }
      const alone = await world.signUp(place, "alone@example.com");
      for (const person of [both, alone]) {
        expect((await person.post("/sign-out")).status).toBe(200);
        expect(await world.whoIs(person)).toBe(null);
      }
      // better-auth deletes its cookie by a name in lower case, and an id in a name may not be.
      if (sessionCookies === "per-tenant" && place === "acme") continue;
      expect([...alone.cookies.keys()]).toEqual([]);
    }
  });

  it.each([
    inStorage("a storage"),
    inStorage("both", { storeSessionInDatabase: true }),
    inStorage("both, kept", { storeSessionInDatabase: true, preserveSessionInDatabase: true }),
  ])("drops the cookies, sessions in $name", async (store) => {
    const world = await createWorld({ plugins: [multiSession()], store });
    const jane = await world.as("jane", "platform");
    expect((await jane.post("/sign-out")).status).toBe(200);
    expect([...jane.cookies.keys()]).toEqual([]);
  });
});

/** Alice, signed in at Acme by Acme's own client, whose browser then signs up at Globex. */
async function createAlice(sessionCookies: (typeof COOKIES)[number], expiresIn: number) {
  const idp = await startIdentityProvider();
  idp.addPerson("alice");
  Object.assign(idp.rules, { refreshTokens: true, expiresIn });
  // Without a database better-auth keeps the account in a cookie, tied to no user.
  const auth = createStateless(
    { sessionCookies },
    {
      socialProviders: { gitlab: { ...GLOBAL, issuer: idp.issuer } },
      account: { storeAccountCookie: true },
    },
  );
  const ids: string[] = [];
  for (const slug of ["acme", "globex"]) {
    const { id } = await auth.api.createTenant({ body: { name: slug, slug } });
    const config = { clientId: `client-${slug}`, clientSecret: `secret-${slug}` };
    idp.registerClient(config.clientId, config.clientSecret);
    const body = { tenantId: id, providerId: "gitlab", ...config };
    await auth.api.registerTenantOAuthConfig({ body });
    ids.push(id);
  }
  const browser = new Browser(auth.handler, BASE_URL);
  const body = { provider: "gitlab", tenantId: ids[0], callbackURL: "/welcome" };
  const { data } = await browser.post<{ url: string }>("/tenant/sign-in/social", body);
  await browser.get(await idp.authorize(data.url, "alice"));
  const [atAcme, atGlobex] = ids.map((id) => browser.fork({ "x-tenant-id": id }));
  const person = { name: "B", email: "b@example.com", password: PASSWORD };
  expect((await atGlobex?.post("/sign-up/email", person))?.status).toBe(200);
  const takeToken = (by = atGlobex) =>
    by?.post<{ accessToken?: string }>("/get-access-token", { useAccountCookie: true });
  return { idp, atAcme: () => takeToken(atAcme), atGlobex: () => takeToken() };
}

describe.each(COOKIES)("an account cookie of Acme, %s", (sessionCookies) => {
  it("R10: opens nothing at Globex", async () => {
    const { atAcme, atGlobex } = await createAlice(sessionCookies, 7200);
    expect((await atAcme())?.data.accessToken).toEqual(expect.any(String));
    const taken = await atGlobex();
    expect([taken?.status, taken?.data.accessToken]).toEqual([400, undefined]);
  });

  it("R10: has a refresh token that is never sent by Globex's client", async () => {
    const { idp, atAcme, atGlobex } = await createAlice(sessionCookies, 1);
    await atGlobex();
    await atAcme();
    const refreshes = idp.exchanges().filter(({ params }) => params.grant_type === "refresh_token");
    expect(refreshes.map(({ params }) => params.client_id)).toEqual(["client-acme"]);
  });
});
