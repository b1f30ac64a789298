import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createAuthMiddleware } from "better-auth/api";
import { toNodeHandler } from "better-auth/node";
import { emailOTP, genericOAuth } from "better-auth/plugins";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Answer } from "../support/browser";
import { startIdentityProvider } from "../support/identity-provider";
import {
  createSocialWorld,
  GLOBAL,
  queryOf,
  STATE_STRATEGIES,
  shareSocialWorld,
} from "../support/social";
import { mapStorage, type Store } from "../support/stores";
import { createWorld, type Hosts, SUBDOMAINS, shareWorld } from "../support/world";

const { entries, storage } = mapStorage();
const KEPT_IN: [string, Store][] = [
  ["the database", { name: "the database" }],
  [
    "a storage",
    { name: "a storage", storage: () => storage, session: { storeSessionInDatabase: true } },
  ],
];

describe.each(KEPT_IN)(
  "root 13: a callback of a stranger takes nothing away, from %s",
  (where, store) => {
    const world = shareSocialWorld({
      store,
      socialProviders: { github: GLOBAL },
      plugins: (send) => [emailOTP({ sendVerificationOTP: send("code") })],
    });
    let count = 0;

    /** Somebody who has asked for a code and a reset link, in a tenant and on the platform. */
    async function createVictim() {
      const email = `victim-${++count}@example.com`;
      const codes: Record<string, string> = {};
      for (const place of ["acme", "platform"]) {
        const victim = await world.signUp(place, email);
        await victim.post("/email-otp/send-verification-otp", { email, type: "sign-in" });
        codes[place] = world.lastMail("code").code;
        await victim.post("/request-password-reset", { email, redirectTo: "/page" });
      }
      return { email, codes };
    }

    /** Everything one-time there is, and the names that it is kept under. */
    async function kept() {
      if (where === "the database") {
        const rows = await world.database.query(`select * from "verification" order by id`);
        return { content: rows, names: rows.map(({ identifier }) => String(identifier)) };
      }
      const content = [...entries].filter(([key]) => key.includes("verification"));
      const names = content.flatMap(([key]) => [key, key.replace(/^.*?verification:/, "")]);
      return { content, names };
    }

    it.each(["/tenant/callback/gitlab", "/tenant/callback/github", "/callback/gitlab"])(
      "%s with whatever anything is called",
      async (path) => {
        const { email, codes } = await createVictim();
        const [alice, bob] = [world.at(null), world.at(null)];
        const back = await world.authorize(alice, "acme");
        const bobsBack = await world.authorize(bob, null, undefined, "bob");
        const { content, names } = await kept();
        expect(names.length).toBeGreaterThan(0);
        // Every name, in any form.
        const states = new Set(names.flatMap((name) => [name, name.replace(/^auth-state:/, "")]));
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
        expect((await kept()).content).toEqual(content);
        // Control: whoever they belong to comes through, and the codes are good, each in its place.
        expect((await alice.get(back)).location).toBe("/welcome");
        expect((await bob.get(bobsBack)).location).toBe("/welcome");
        for (const place of ["acme", "platform"] as const) {
          const browser = world.at(place);
          await browser.post("/sign-in/email-otp", { email, otp: codes[place] });
          expect(await world.whoIs(browser)).toMatchObject({ email, tenantId: world.ids[place] });
        }
      },
    );

    it("somebody with a flow of their own takes nobody else's", async () => {
      const [alice, mallory] = [world.at(null), world.at(null)];
      const back = await world.authorize(alice, "acme");
      await world.authorize(mallory, "globex", undefined, "bob");
      const { content } = await kept();
      expect(queryOf((await mallory.get(back)).location)).toHaveProperty("error");
      expect((await kept()).content).toEqual(content);
      expect((await alice.get(back)).location).toBe("/welcome");
      expect(await world.whoIs(alice, "acme")).toMatchObject({ email: "alice@example.com" });
    });

    it("control: one that belongs here is good once in 50, whatever the provider takes", async () => {
      world.idp.rules.codesAreGoodOnce = false;
      const alice = world.at(null);
      const back = await world.authorize(alice, "acme");
      const before = await world.rows("session");
      const answers = await Promise.all(Array.from({ length: 50 }, () => alice.fork().get(back)));
      world.idp.rules.codesAreGoodOnce = true;
      expect(answers.filter(({ location }) => location === "/welcome")).toHaveLength(1);
      expect(await world.rows("session")).toBe(before + 1);
    });
  },
);

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
    "takes all cookies back",
    async ({ context: { responseHeaders } }) => void responseHeaders?.delete("set-cookie"),
  ],
  [
    "deletes the session cookie, as for a second factor",
    async (ctx) => {
      ctx.setCookie(ctx.context.authCookies.sessionToken.name, "", { maxAge: 0, path: "/" });
      ctx.setCookie("second-factor", "asked", { path: "/" });
    },
  ],
  ["leads elsewhere", async (ctx) => void ctx.setHeader("location", "/elsewhere")],
  [
    "leads elsewhere by a redirect of its own",
    async (ctx) => {
      throw ctx.redirect("/second-factor");
    },
  ],
  ["sets a header", async (ctx) => void ctx.setHeader("x-hook", "seen")],
  ["sets a cookie", async (ctx) => void ctx.setCookie("hook", "seen", { path: "/" })],
  [
    "puts the cookies into the address, as for an app",
    async (ctx) => {
      const { responseHeaders } = ctx.context;
      const location = new URL(responseHeaders?.get("location") ?? "", "http://localhost:3000");
      const names = responseHeaders?.getSetCookie().map((line) => line.split("=")[0]) ?? [];
      location.searchParams.set("cookies", names.toSorted().join());
      ctx.setHeader("location", `myapp://home${location.search}`);
    },
  ],
  [
    "answers a page in place of the redirect",
    async (ctx) => {
      const headers = { "content-type": "text/html" };
      ctx.context.returned = new Response("<p>done</p>", { status: 200, headers });
    },
  ],
];

/** An answer of a callback, as far as it has to be the same in a tenant. */
const shapeOf = ({ status, location, headers, data }: Answer) => ({
  status,
  location,
  text: (data as { text?: string } | null)?.text,
  hook: headers.get("x-hook"),
  cookies: headers
    .getSetCookie()
    .map((line) => `${line.split("=")[0]} ${/max-age=0/i.test(line) ? "deleted" : "set"}`)
    .toSorted(),
});

describe.each(["application", "plugin"] as const)("root 14: an after-hook of the %s", (by) => {
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

  it.each(HOOKS)("that %s does the same in a tenant as on the platform", async (what, handler) => {
    await world.configure("acme");
    Object.assign(hooked, { runs: 0, handler });
    const browser = world.at(null);
    const platform = shapeOf(await world.signInAtProvider(world.at(null), null));
    const tenant = shapeOf(await world.signInAtProvider(browser, "acme"));
    expect(tenant).toEqual(platform);
    expect(hooked.runs).toBe(2);
    if (what.startsWith("takes")) expect(await world.whoIs(browser, "acme")).toBeNull();

    const refuse = async (place: string | null) => {
      const refused = world.at(null);
      const { state = "" } = queryOf((await world.start(refused, place)).data.url);
      const path = place === null ? "/callback/gitlab" : "/tenant/callback/gitlab";
      return shapeOf(await refused.get(path, { query: { state, error: "access_denied" } }));
    };
    expect(await refuse("acme")).toEqual(await refuse(null));
  });
});

describe.each(STATE_STRATEGIES)(
  "a tenant with an id beyond latin-1, state in %s",
  (stateStrategy) => {
    it("R4: finishes a callback, with each cookie once, as on the platform (root 14)", async () => {
      const generateId = ({ model }: { model: string }) =>
        `${model === "tenant" ? "\u65e5\u672c-" : ""}${crypto.randomUUID()}`;
      const advanced = { disableOriginCheck: false, database: { generateId } };
      const world = await createSocialWorld({ stateStrategy, auth: { advanced } });
      const { acme: tenantId } = world.ids;
      expect(tenantId).toContain("\u65e5\u672c");
      const platform = shapeOf(await world.signInAtProvider(world.at(null), null));
      const browser = world.at(null);
      const tenant = shapeOf(await world.signInAtProvider(browser, "acme"));
      expect(tenant).toEqual(platform);
      expect(tenant.location).toBe("/welcome");
      expect(new Set(tenant.cookies).size).toBe(tenant.cookies.length);
      const { data } = await browser.get("/get-session", { query: { tenantId } });
      expect(data).toMatchObject({ user: { email: "alice@example.com", tenantId } });
    });
  },
);

/** A state of the form of ours, which nobody has made. */
function stateNaming(tenantId: string): string {
  const text = Buffer.from(tenantId).toString("base64url");
  return `${"A".repeat(43)}${String(text.length).padStart(3, "0")}${text}${"s".repeat(32)}`;
}

describe("a callback that names what fits into no header", () => {
  const world = shareWorld();
  const CALLBACK = "/tenant/callback/google";

  it.each(["a", "\u00e9", "\u65e5\u672c"])("is answered, with %s", async (tenant) => {
    for (const query of [`state=y&tenant=${tenant}`, `state=${stateNaming(tenant)}`]) {
      const answer = await world.at(null).get(`${CALLBACK}?code=x&${query}`);
      expect(answer.status).toBe(302);
    }
  });

  // A rejection that nobody handles ends a process that is no test.
  it("leaves an instance behind node's http server alive", async () => {
    const rejections: unknown[] = [];
    const see = (reason: unknown) => void rejections.push(reason);
    process.on("unhandledRejection", see);
    const server = createServer(toNodeHandler(world.auth));
    await new Promise<void>((resolve) => server.listen(0, resolve));
    onTestFinished(async () => {
      process.off("unhandledRejection", see);
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    const base = `http://localhost:${(server.address() as AddressInfo).port}/api/auth`;
    const query = new URLSearchParams({ code: "x", state: "y", tenant: "\u65e5\u672c" });
    const signal = AbortSignal.timeout(10_000);
    const answer = await fetch(`${base}${CALLBACK}?${query}`, { redirect: "manual", signal });
    expect(answer.status).toBe(302);
    expect((await fetch(`${base}/ok`, { signal })).status).toBe(200);
    expect(rejections).toEqual([]);
  });
});

/** A company's own provider, from whose portal people come with a code that nobody asked for. */
async function createPortal(hosts?: Hosts) {
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
  const plugins = [genericOAuth({ config: [corp] })];
  return { idp, world: await createWorld({ plugins, ...(hosts && { hosts }) }) };
}

describe("allowIdpInitiated", () => {
  it.each([
    ["the query", undefined],
    ["its host", SUBDOMAINS],
  ])("in a tenant named by %s starts a flow of its own, which ends there", async (_, hosts) => {
    const { idp, world } = await createPortal(hosts);
    for (const [place, path] of [
      ["acme", "/tenant/callback/corp"],
      ["platform", "/callback/corp"],
    ] as const) {
      const query = {
        code: "from-the-portal",
        ...(place === "acme" && !hosts && { tenantId: world.ids.acme }),
      };
      const browser = world.at(hosts ? place : null);
      const exchanged = idp.exchanges().length;
      const started = await browser.get(path, { query });
      expect(started.location?.startsWith(`${idp.issuer}/oauth/authorize`)).toBe(true);
      // The code that came along is never taken.
      expect(idp.exchanges()).toHaveLength(exchanged);
      const back = new URL(await idp.authorize(started.location ?? "", "alice"));
      expect(back.pathname).toBe(`/api/auth${path}`);
      const answer = await world.touchesOnly(place, () => browser.get(back.href));
      expect(queryOf(answer.location)).not.toHaveProperty("error");
      expect(await world.rowsIn(place, "session")).toHaveLength(1);
      expect(await world.rowsIn(place, "user")).toHaveLength(1);
    }
  });

  it("where nothing names a tenant is an error at the tenants' callback, and starts nothing", async () => {
    const { idp, world } = await createPortal();
    const answer = await world.at(null).get("/tenant/callback/corp", { query: { code: "x" } });
    const error = answer.status === 302 ? queryOf(answer.location).error : answer.status;
    expect(error).toBeDefined();
    expect(idp.requests).toEqual([]);
    expect(await world.rows("verification")).toBe(0);
  });
});
