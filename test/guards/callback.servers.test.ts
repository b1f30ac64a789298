import type { BetterAuthPlugin } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { emailOTP } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { mapStorage } from "../sessions/stores";
import type { Answer } from "../support/browser";
import { createSocialInstance, GLOBAL, queryOf, type SocialOptions } from "../support/social";

const STORES = ["the database", "secondary storage"] as const;
type Store = (typeof STORES)[number];

/** A tenant with codes, links and a flow under way, and a look at all that is kept for them. */
async function createKept(store: Store) {
  const { storage, entries } = mapStorage();
  const codes = new Map<string, string>();
  const app = await createSocialInstance({
    socialProviders: { github: GLOBAL },
    auth: {
      emailAndPassword: { enabled: true, sendResetPassword: async () => {} },
      ...(store === "secondary storage" && {
        secondaryStorage: storage,
        session: { storeSessionInDatabase: true },
      }),
    },
    plugins: [
      emailOTP({ sendVerificationOTP: async ({ email, otp }) => void codes.set(email, otp) }),
    ],
  });
  const { id: a } = await app.createTenant();
  const email = "victim@example.com";
  for (const place of [a, null]) {
    await app.signUp(place, email);
    const browser = app.browser(place === null ? {} : { "x-tenant-id": place });
    await browser.post("/email-otp/send-verification-otp", { email, type: "sign-in" });
    await browser.post("/request-password-reset", { email, redirectTo: "/page" });
  }

  /** Everything one-time there is, and the names that it is kept under. */
  async function kept() {
    const inDatabase = store === "the database";
    const rows = inDatabase
      ? await app.database.query(`select * from "verification" order by id`)
      : [];
    const stored = [...entries].filter(([key]) => key.includes("verification"));
    const names = [
      ...rows.map(({ identifier }) => String(identifier)),
      ...stored.map(([key]) => key),
      ...stored.map(([key]) => key.replace(/^.*?verification:/, "")),
    ];
    return { rows, stored, names };
  }
  return { app, a, email, codes, kept };
}

/** What a stranger could send for a state: every name that something is kept under, in any form. */
const asStates = (names: string[]) =>
  [...new Set(names.flatMap((name) => [name, name.replace(/^auth-state:/, "")]))].filter(Boolean);

describe.each(STORES)("root 13: a callback of a stranger takes nothing away, from %s", (store) => {
  it.each(["/tenant/callback/gitlab", "/tenant/callback/github", "/callback/gitlab"])(
    "%s with whatever anything is called",
    async (path) => {
      const { app, a, kept } = await createKept(store);
      const alice = app.browser();
      const back = await app.authorize(alice, a);
      const bob = app.browser();
      const bobsBack = await app.authorize(bob, null, undefined, "bob");
      const { names, ...before } = await kept();
      expect(names.length).toBeGreaterThan(0);
      for (const state of asStates(names)) {
        const answer = await app.browser().get(path, { query: { state, code: "made-up" } });
        expect(answer.status, state).toBe(302);
        expect(queryOf(answer.location), state).toHaveProperty("error");
        const { names: _, ...after } = await kept();
        expect(after, state).toEqual(before);
      }
      // Control: whoever they belong to comes through.
      expect((await alice.get(back)).location).toBe("/welcome");
      expect((await bob.get(bobsBack)).location).toBe("/welcome");
    },
  );

  it("somebody with a flow of their own takes nobody else's", async () => {
    const { app, a, kept } = await createKept(store);
    const { id: b } = await app.createTenant();
    const alice = app.browser();
    const back = await app.authorize(alice, a);
    const mallory = app.browser();
    await app.authorize(mallory, b, undefined, "bob");
    const { names: _, ...before } = await kept();
    const stolen = await mallory.get(back);
    expect(queryOf(stolen.location)).toHaveProperty("error");
    const { names: __, ...after } = await kept();
    expect(after).toEqual(before);
    expect((await alice.get(back)).location).toBe("/welcome");
    expect((await app.whoIs(alice, a))?.user.email).toBe("alice@example.com");
  });

  it("tells nobody which codes there are", async () => {
    const { app, email } = await createKept(store);
    const ask = async (state: string) => {
      const query = { state, code: "made-up" };
      const answer = await app.browser().get("/tenant/callback/gitlab", { query });
      return [answer.status, answer.location];
    };
    const unknown = await ask("sign-in-otp-nobody@example.com");
    expect(await ask(`sign-in-otp-${email}`)).toEqual(unknown);
  });

  it("control: the one-time codes are still good afterwards, each in its place", async () => {
    const { app, a, email, codes } = await createKept(store);
    for (const place of [a, null]) {
      const headers: Record<string, string> = place === null ? {} : { "x-tenant-id": place };
      const browser = app.browser(headers);
      await browser.post("/email-otp/send-verification-otp", { email, type: "sign-in" });
      await app.browser().get("/tenant/callback/gitlab", {
        query: { state: `sign-in-otp-${email}`, code: "made-up" },
      });
      const body = { email, otp: codes.get(email) };
      const { status, data } = await browser.post("/sign-in/email-otp", body);
      expect([status, (data.user as { tenantId?: unknown })?.tenantId]).toEqual([200, place]);
    }
  });

  it("control: a callback that belongs here is good once in 50, whatever the provider takes", async () => {
    const { app, a } = await createKept(store);
    app.idp.rules.codesAreGoodOnce = false;
    const alice = app.browser();
    const back = await app.authorize(alice, a);
    const before = await app.rows("session");
    const answers = await Promise.all(Array.from({ length: 50 }, () => alice.fork().get(back)));
    expect(answers.filter(({ location }) => location === "/welcome")).toHaveLength(1);
    expect(await app.rows("session")).toBe(before + 1);
  });
});

type Handler = Parameters<typeof createAuthMiddleware>[0];

/** What after-hooks do to the answer of a callback. */
const HOOKS: [what: string, handler: Handler][] = [
  [
    "takes the session cookie back",
    async ({ context: { responseHeaders, authCookies } }) => {
      const kept = responseHeaders
        ?.getSetCookie()
        .filter((line) => !line.startsWith(authCookies.sessionToken.name));
      responseHeaders?.delete("set-cookie");
      for (const line of kept ?? []) responseHeaders?.append("set-cookie", line);
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

async function createHooked(handler: Handler, as: "application" | "plugin", more?: SocialOptions) {
  let runs = 0;
  const hook = createAuthMiddleware(async (ctx) => {
    if (!ctx.path?.startsWith("/callback/")) return;
    runs++;
    return handler(ctx);
  });
  const plugin: BetterAuthPlugin = {
    id: "hooked",
    hooks: { after: [{ matcher: () => true, handler: hook }] },
  };
  const app = await createSocialInstance({
    ...more,
    ...(as === "plugin" && { plugins: [plugin] }),
    auth: { ...more?.auth, ...(as === "application" && { hooks: { after: hook } }) },
  });
  const { id } = await app.createTenant();
  await app.configure(id);
  return { app, id, runs: () => runs };
}

describe.each(["application", "plugin"] as const)("root 14: an after-hook of the %s", (as) => {
  it.each(HOOKS)("that %s does the same in a tenant as on the platform", async (_, handler) => {
    const { app, id, runs } = await createHooked(handler, as);
    const platform = shapeOf(await app.signIn(app.browser(), null));
    expect(runs()).toBe(1);
    const tenant = shapeOf(await app.signIn(app.browser(), id));
    expect(tenant).toEqual(platform);
    expect(runs()).toBe(2);
  });

  it.each(HOOKS)("that %s leaves a refusal as it leaves the platform's", async (_, handler) => {
    const { app, id } = await createHooked(handler, as);
    const refuse = async (place: string | null) => {
      const browser = app.browser();
      const { data } = await app.start(browser, place);
      const { state = "" } = queryOf(data.url);
      const path = place === null ? "/callback/gitlab" : "/tenant/callback/gitlab";
      return shapeOf(await browser.get(path, { query: { state, error: "access_denied" } }));
    };
    expect(await refuse(id)).toEqual(await refuse(null));
  });
});

describe("root 14: the answer of a callback", () => {
  it.each(["database", "cookie", "secondary storage"] as const)(
    "carries each cookie once, and the same as on the platform, state in the %s",
    async (stateStrategy) => {
      const { app, id } = await createHooked(async () => {}, "application", { stateStrategy });
      const platform = shapeOf(await app.signIn(app.browser(), null));
      const tenant = shapeOf(await app.signIn(app.browser(), id));
      expect(new Set(tenant.cookies).size).toBe(tenant.cookies.length);
      expect(tenant).toEqual(platform);
    },
  );

  it("who has no session cookie is nobody, after a hook took it back", async () => {
    const [, takesBack] = HOOKS[0] ?? [];
    const { app, id } = await createHooked(takesBack ?? (async () => {}), "plugin");
    const browser = app.browser();
    const back = await app.signIn(browser, id);
    expect(back.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
    expect(await app.whoIs(browser, id)).toBeNull();
  });
});
