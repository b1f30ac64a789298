import type { AuthContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { emailOTP, genericOAuth } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import {
  isSignedFor,
  prefixState,
  readState,
  sign,
} from "../../../src/features/oauth/state-prefix";
import type { Answer } from "../../support/browser";
import { startIdentityProvider } from "../../support/identity-provider";
import { BASE_URL } from "../../support/instance";
import { turnOf } from "../../support/matrix";
import { fakeGoogleAndGitHub } from "../../support/providers";
import {
  createSocialWorld,
  GLOBAL,
  STATE_STRATEGIES,
  shareSocialWorld,
} from "../../support/social";
import { mapStorage, type Store } from "../../support/stores";
import { createWorld, expectRefused, queryOf } from "../../support/world";

const CALLBACK = "/tenant/callback/gitlab";
const PLATFORMS_CALLBACK = "/callback/gitlab";
const ALICE = "alice@example.com";

describe.each(STATE_STRATEGIES)("a state in the %s", (stateStrategy) => {
  const world = shareSocialWorld({
    stateStrategy,
    socialProviders: { google: GLOBAL },
    tenant: { resolveTenantId: ({ headers }) => headers?.get("x-host-of-tenant") },
  });

  /** What a sign-in by a provider would add to; everybody with a password has one session. */
  async function signedIn() {
    const { quote } = world.database;
    const passwords = await world.rows("account", `${quote("providerId")} = 'credential'`);
    return {
      accounts: (await world.rows("account")) - passwords,
      users: await world.rows("user", "email = ?", [ALICE]),
      sessions: (await world.rows("session")) - passwords,
      exchanges: world.idp.exchanges().length,
    };
  }

  /** A tenant, and Alice, who has agreed at the provider and is about to come back to it. */
  async function onHerWay({ config = true } = {}) {
    const internet = fakeGoogleAndGitHub();
    const { id } = await world.createTenant();
    if (config) await world.configure(id);
    const browser = world.browser();
    const url = await world.authorize(browser, id);
    const before = await signedIn();
    return {
      id,
      browser,
      url,
      query: queryOf(url),

      /** A redirect with an error, nobody signed in, and no code sent to any provider. */
      async expectRefused(answer: Answer, error: string | RegExp = /./) {
        expect(answer.status).toBe(302);
        expect(answer.location).toMatch(/^(\/failed|http:\/\/localhost:3000\/api\/auth\/error)\?/);
        expect(queryOf(answer.location).error).toMatch(error);
        expect(await signedIn()).toEqual(before);
        expect(internet.exchanges()).toEqual([]);
        expect(answer.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
      },
    };
  }

  describe("threat: state not bound to provider or tenant (R6)", () => {
    it.each([
      ["at google", "/tenant/callback/google", true, /./],
      ["at what is no provider", "/tenant/callback/nobody", true, /./],
      ["at better-auth's own callback", PLATFORMS_CALLBACK, true, "state_mismatch"],
      ["there with the global credentials", PLATFORMS_CALLBACK, false, "state_mismatch"],
    ])("of a tenant's gitlab is refused %s", async (_, path, config, error) => {
      const { id, browser, query, expectRefused } = await onHerWay({ config });
      // Whatever tenant is named, and without the label as well.
      for (const headers of [{}, { "x-tenant-id": id }] as Record<string, string>[]) {
        for (const state of [query.state ?? "", query.state?.slice(-32) ?? ""]) {
          const back = { query: { ...query, state }, headers };
          await expectRefused(await browser.fork().get(path, back), error);
        }
      }
    });

    it("of the platform is refused at the tenants' callback, whatever the client says", async () => {
      const { id, browser, expectRefused } = await onHerWay({ config: false });
      const tenantAuth = { tenantId: id, providerId: "gitlab", credentials: "global" };
      const additionalData = { serverContext: { tenantAuth }, tenantAuth, tenantId: id };
      for (const body of [{}, { additionalData }]) {
        const query = queryOf(await world.authorize(browser, null, body));
        const headers = world.naming(id);
        await expectRefused(await browser.get(CALLBACK, { query, headers }));
      }
    });

    it.each(["resolver", "session"])("a %s of another tenant changes nothing", async (how) => {
      const { id, browser, url } = await onHerWay();
      const other = await world.createTenant();
      const headers: Record<string, string> =
        how === "resolver" ? { "x-host-of-tenant": other.id } : {};
      if (how === "session") {
        const { cookies } = await world.signUp(other.id, "bob@example.com");
        for (const [name, value] of cookies) browser.cookies.set(name, value);
      }
      const before = await world.everythingIn(other.id);
      expect((await browser.get(url, { headers })).location).toBe("/welcome");
      expect(await world.whoIs(browser, id)).toMatchObject({ email: ALICE, tenantId: id });
      expect(await world.everythingIn(other.id)).toEqual(before);
    });

    it("is refused with the cookie of another browser or tenant, and stays good", async () => {
      const { id, browser, url, expectRefused } = await onHerWay();
      await expectRefused(await world.browser().get(url), "state_mismatch");
      const other = world.browser();
      for (const tenant of [id, (await world.createTenant()).id]) {
        await world.start(other, tenant);
        await expectRefused(await other.get(url), "state_mismatch");
      }
      // Not every client sends it back letter for letter.
      for (const [name, value] of browser.cookies) {
        browser.cookies.set(name, decodeURIComponent(value));
      }
      expect((await browser.get(url)).location).toBe("/welcome");
    });

    it("is refused when it is unknown, and when it is missing", async () => {
      const { id, browser, url, query, expectRefused } = await onHerWay();
      const { code = "" } = query;
      const unknown = await browser.get(CALLBACK, { query: { code, state: "unknown" } });
      await expectRefused(unknown, "state_mismatch");
      await expectRefused(await browser.get(CALLBACK, { query: { code } }), "state_not_found");
      await expectRefused(await browser.get(CALLBACK), "state_not_found");
      // Nor where two tenants are named beside it.
      const twice = await browser.get(`${url}&tenant=${id}&tenant=${id}`);
      await expectRefused(twice, "state_mismatch");
      expect((await browser.get(url)).location).toBe("/welcome");
    });

    it.each(["GET", "POST"])(
      "is missing where it is empty, as for better-auth: %s",
      async (method) => {
        const { id, browser, url, query, expectRefused } = await onHerWay();
        const sent = { code: query.code ?? "", state: "" };
        for (const headers of [{}, world.naming(id)]) {
          const send = async (path: string) => {
            if (method === "GET") return browser.get(path, { query: sent, headers });
            const form = new URLSearchParams(sent).toString();
            const type = { "content-type": "application/x-www-form-urlencoded" };
            const posted = await browser.post(path, form, { headers: { ...headers, ...type } });
            expect(posted.location).toBe(`${BASE_URL}${path}?${form}`);
            return browser.get(posted.location ?? "", { headers });
          };
          const [ours, theirs] = [await send(CALLBACK), await send(PLATFORMS_CALLBACK)];
          await expectRefused(ours, "state_not_found");
          await expectRefused(theirs, "state_not_found");
          expect(ours.location).toBe(theirs.location);
        }
        // Control: the state that she has.
        expect((await browser.get(url)).location).toBe("/welcome");
      },
    );

    it("is refused by better-auth when it is one of two, and stays good", async () => {
      const { browser, url } = await onHerWay();
      const before = await signedIn();
      for (const twice of [`${url}&state=b`, url.replace("state=", "state=b&state=")]) {
        expectRefused(await browser.get(twice), 400, "VALIDATION_ERROR");
      }
      expect(await signedIn()).toEqual(before);
      expect((await browser.get(url)).location).toBe("/welcome");
    });
  });

  it("threat: token not consumed atomically: good once in 50, and never again", async () => {
    const { id, browser, url } = await onHerWay();
    // Whatever the provider takes. What is in a cookie alone, better-auth cannot take back.
    world.idp.rules.codesAreGoodOnce = stateStrategy === "cookie";
    const copies = Array.from({ length: 50 }, () => browser.fork());
    const answers = await Promise.all(copies.map((copy) => copy.get(url)));
    world.idp.rules.codesAreGoodOnce = true;
    const failed = answers.filter(({ location }) => location !== "/welcome");
    expect(failed).toHaveLength(answers.length - 1);
    for (const { location } of failed) expect(queryOf(location)).toHaveProperty("error");
    expect(await world.rowsIn(id, "user")).toHaveLength(1);
    expect(await world.rowsIn(id, "session")).toHaveLength(1);
    expect(queryOf((await browser.get(url)).location)).toHaveProperty("error");
  });

  describe("threat: fail-open on bad config, in mid flow", () => {
    const remove = (tenantId: string) =>
      world.api.deleteTenantOAuthConfig({ body: { tenantId, providerId: "gitlab" } });
    const removeTenant = (tenantId: string) => world.api.deleteTenant({ body: { tenantId } });
    const spoil = (id: string) => {
      const { quote, query } = world.database;
      const set = `update ${quote("tenantOauthConfig")} set ${quote("clientSecret")} = 'x'`;
      return query(`${set} where ${quote("tenantId")} = ?`, [id]);
    };
    const change = (config: object) => (id: string) => world.configure(id, config);

    const cases: [string, (id: string) => Promise<unknown>, config?: boolean, error?: string][] = [
      ["the config has another client id", change({ clientId: "another-client" })],
      ["it has another secret", change({ clientSecret: "new" })],
      ["it has another redirectURI", change({ redirectURI: "https://login.tenant.example/back" })],
      [
        "it has the usual one and a new secret",
        change({ redirectURI: `${BASE_URL}${CALLBACK}`, clientSecret: "new" }),
      ],
      ["it has other scopes", change({ scopes: ["api"] })],
      ["it has other options", change({ options: { prompt: "login" } })],
      ["it is disabled", change({ enabled: false })],
      ["it is deleted", remove],
      ["it cannot be decrypted any more", spoil],
      ["there is one, and was none", change({}), false, "state_mismatch"],
      ["the tenant is deleted, with its config", removeTenant],
      ["the tenant is deleted, which had none", removeTenant, false],
    ];
    const turn = STATE_STRATEGIES.indexOf(stateStrategy);
    it.each(turnOf(cases, 5, turn))(
      "is refused when %s",
      async (_, happens, config = true, error = "") => {
        const { id, browser, url, expectRefused } = await onHerWay({ config });
        await happens(id);
        await expectRefused(await browser.get(url), error || /./);
      },
    );
  });
});

describe("the label of a state", () => {
  it("names the tenant, in letters that every provider takes", () => {
    // Their base64 has every letter that is not safe.
    for (const tenantId of ["1", "acme", "Zürich ✓", "~~~???"]) {
      for (const signature of [undefined, "x".repeat(43)]) {
        const labelled = prefixState("the-state_1", tenantId, signature);
        expect(labelled).toMatch(/^[\w-]+$/);
        expect(readState(labelled)).toEqual({ state: "the-state_1", tenantId, signature });
      }
    }
  });

  it.each([undefined, null, "", "a-state", "004YWN", "004YWNt", "000the-state", "001!", "999YWNt"])(
    "is not read out of %j",
    (state) => expect(readState(state)).toBeUndefined(),
  );

  it("may name what fits into no header: the callback answers", async () => {
    const { at } = await createSocialWorld();
    const text = Buffer.from("\u65e5\u672c").toString("base64url");
    const label = `${String(text.length).padStart(3, "0")}${text}`;
    for (const query of ["state=y&tenant=\u65e5\u672c", `state=${label}${"s".repeat(32)}`]) {
      const answer = await at(null).get(`/tenant/callback/google?code=x&${query}`);
      expect(answer.status).toBe(302);
    }
  });
});

const { entries, storage } = mapStorage();

describe.each<Store>([
  { name: "the database" },
  { name: "a storage", storage: () => storage, session: { storeSessionInDatabase: true } },
])("threat: a callback as a shredder, with $name", (store) => {
  const world = shareSocialWorld({
    store,
    plugins: (send) => [emailOTP({ sendVerificationOTP: send("code") })],
  });

  /** Everything one-time there is, and the names that it is kept under. */
  async function kept() {
    if (!store.storage) {
      const rows = await world.database.query(`select * from "verification" order by id`);
      return { content: rows, names: rows.map(({ identifier }) => String(identifier)) };
    }
    const content = [...entries].filter(([key]) => key.includes("verification"));
    const names = content.flatMap(([key]) => [key, key.replace(/^.*?verification:/, "")]);
    return { content, names };
  }

  it("takes nothing away, whatever anything is called", async () => {
    // Somebody who has asked for a code and a reset link, in a tenant and on the platform.
    const email = "victim@example.com";
    const codes: Record<string, string> = {};
    for (const place of ["acme", "platform"]) {
      const victim = await world.signUp(place, email);
      await victim.post("/email-otp/send-verification-otp", { email, type: "sign-in" });
      codes[place] = world.lastMail("code").code;
      await victim.post("/request-password-reset", { email, redirectTo: "/page" });
    }
    const [alice, bob] = [world.at(null), world.at(null)];
    const back = await world.authorize(alice, "acme");
    const bobsBack = await world.authorize(bob, null, undefined, "bob");
    const { content, names } = await kept();
    expect(names.length).toBeGreaterThan(0);
    // Every name, in any form.
    const states = new Set(names.flatMap((name) => [name, name.replace(/^auth-state:/, "")]));
    for (const path of [CALLBACK, PLATFORMS_CALLBACK]) {
      const come = (state: string) =>
        world.at(null).get(path, { query: { state, code: "made-up" } });
      for (const state of [...states].filter(Boolean)) {
        const answer = await come(state);
        expect(answer.status, state).toBe(302);
        expect(queryOf(answer.location), state).toHaveProperty("error");
      }
      // It tells nobody which codes there are.
      const { location } = await come(`sign-in-otp-${email}`);
      expect(location).toBe((await come("sign-in-otp-nobody@example.com")).location);
    }
    expect((await kept()).content).toEqual(content);
    // Control: whoever they belong to comes through, and the codes are good, each in its place.
    expect((await alice.get(back)).location).toBe("/welcome");
    expect((await bob.get(bobsBack)).location).toBe("/welcome");
    for (const place of ["acme", "platform"] as const) {
      const browser = world.at(place);
      await browser.post("/sign-in/email-otp", { email, otp: codes[place] });
      expect(await world.whoIs(browser)).toMatchObject({ email, tenantId: world.ids[place] });
    }
  });
});

it("a database that fails on the way is told to the flow's page, and to the log by its code", async () => {
  const world = await createSocialWorld();
  const browser = world.at(null);
  const back = await world.authorize(browser, "acme");
  await world.database.query(`alter table "tenantOauthConfig" rename to "away"`);
  world.logs.length = 0;
  expect((await browser.get(back)).location).toBe("/failed?error=internal_server_error");
  const said = `error The OAuth callback of gitlab at tenant ${world.ids.acme} failed: SQLITE_ERROR`;
  expect(world.logs).toContain(said);
  expect((await world.start(browser, "acme")).status).toBe(500);
});

it("skipStateCookieCheck: a tenant's flow ends in a browser that has no cookie of it, once", async () => {
  const account = { skipStateCookieCheck: true };
  const world = await createSocialWorld({ auth: { account } });
  const back = await world.authorize(world.at(null), "acme");
  expect((await world.at(null).get(back)).location).toBe("/welcome");
  expect(queryOf((await world.at(null).get(back)).location)).toHaveProperty("error");
});

type Handler = Parameters<typeof createAuthMiddleware>[0];

/** What after-hooks do to the answer of a callback. */
const HOOKS: [what: string, handler: Handler][] = [
  [
    "takes the session cookie back",
    async ({ context: { responseHeaders, authCookies } }) => {
      const lines = responseHeaders?.getSetCookie() ?? [];
      responseHeaders?.delete("set-cookie");
      for (const line of lines.filter((line) => !line.startsWith(authCookies.sessionToken.name))) {
        responseHeaders?.append("set-cookie", line);
      }
    },
  ],
  [
    "deletes the session cookie and leads elsewhere, as for a second factor",
    async (ctx) => {
      ctx.setCookie(ctx.context.authCookies.sessionToken.name, "", { maxAge: 0, path: "/" });
      throw ctx.redirect("/second-factor");
    },
  ],
];

/** An answer of a callback, as far as it has to be the same in a tenant. */
const shapeOf = ({ status, location, headers }: Answer) => ({
  status,
  location,
  cookies: headers
    .getSetCookie()
    .map((line) => `${line.split("=")[0]} ${/max-age=0/i.test(line) ? "deleted" : "set"}`)
    .toSorted(),
});

describe.each(["application", "plugin"] as const)("an after-hook of the %s", (by) => {
  const hooked = { runs: 0, handler: (async () => {}) as Handler };
  const after = createAuthMiddleware(async (ctx) => {
    if (!ctx.path?.startsWith("/callback/")) return;
    hooked.runs++;
    return hooked.handler(ctx);
  });
  const hooks = { after: [{ matcher: () => true, handler: after }] };
  const world = shareSocialWorld(
    by === "plugin" ? { plugins: [{ id: "hooked", hooks }] } : { auth: { hooks: { after } } },
  );

  it.each(HOOKS)("that %s does the same in a tenant as on the platform", async (_, handler) => {
    Object.assign(hooked, { runs: 0, handler });
    const browser = world.at(null);
    const platform = shapeOf(await world.signInAtProvider(world.at(null), null));
    const tenant = shapeOf(await world.signInAtProvider(browser, "acme"));
    expect(tenant).toEqual(platform);
    expect(hooked.runs).toBe(2);
    expect(await world.whoIs(browser, "acme")).toBeNull();
  });
});

it("allowIdpInitiated: a code without a flow starts a new flow, which ends there", async () => {
  const idp = await startIdentityProvider();
  idp.registerClient("corp-client", "corp-secret");
  idp.addPerson("alice");
  const corp = {
    providerId: "corp",
    clientId: "corp-client",
    clientSecret: "corp-secret",
    authorizationUrl: `${idp.issuer}/oauth/authorize`,
    tokenUrl: `${idp.issuer}/oauth/token`,
    userInfoUrl: `${idp.issuer}/api/v4/user`,
    accountSubject: ({ profile }: { profile: Record<string, unknown> }) => String(profile.id),
    allowIdpInitiated: true,
  };
  const world = await createWorld({ plugins: [genericOAuth({ config: [corp] })] });
  const code = "from-the-portal";
  // Where nothing names a tenant nothing starts.
  const unnamed = await world.at(null).get("/tenant/callback/corp", { query: { code } });
  expect(queryOf(unnamed.location).error).toBe("state_not_found");
  expect([idp.requests, await world.rows("verification")]).toEqual([[], 0]);
  const browser = world.at(null);
  const query = { code, tenantId: world.ids.acme };
  const { location } = await browser.get("/tenant/callback/corp", { query });
  expect(location?.startsWith(`${idp.issuer}/oauth/authorize`)).toBe(true);
  // The code that came along is never taken.
  expect(idp.exchanges()).toEqual([]);
  const back = new URL(await idp.authorize(location ?? "", "alice"));
  expect(back.pathname).toBe("/api/auth/tenant/callback/corp");
  const answer = await world.touchesOnly("acme", () => browser.get(back.href));
  expect(queryOf(answer.location)).not.toHaveProperty("error");
  expect(await world.rowsIn("acme", "session")).toHaveLength(1);
});

it("R6: the signature of a state is good for all that it is bound to, and for nothing else", async () => {
  const context = (await createWorld()).context as unknown as AuthContext;
  const binding = { tenantId: "acme", providerId: "sso", credentials: "sso" };
  const returned = { state: "the-state", tenantId: "acme" };
  const signature = await sign(context, returned.state, binding);
  expect(await isSignedFor(context, { ...returned, signature }, binding)).toBe(true);
  expect(await isSignedFor(context, returned, binding)).toBe(false);
  const another = { ...returned, state: "another-state", signature };
  expect(await isSignedFor(context, another, binding)).toBe(false);
  for (const part of Object.keys(binding)) {
    const other = { ...binding, [part]: "other" };
    expect(await isSignedFor(context, { ...returned, signature }, other), part).toBe(false);
  }
});
