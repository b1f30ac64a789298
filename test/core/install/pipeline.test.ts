import type { BetterAuthPlugin } from "better-auth";
import { APIError, createAuthEndpoint, createAuthMiddleware, isAPIError } from "better-auth/api";
import { twoFactor } from "better-auth/plugins";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { getTenantId } from "../../../src/index";
import { BASE_URL, PASSWORD } from "../../support/instance";
import { createWorld, EMAIL, type WorldOptions } from "../../support/world";

/** A plugin with an endpoint that answers this. */
const answering = (answer: () => Response) => ({
  id: "answering",
  endpoints: { answer: createAuthEndpoint("/answer", { method: "GET" }, async () => answer()) },
});

it("an unexpected error is answered with a code, unless a plugin makes its own answer of it", async () => {
  vi.spyOn(console, "error").mockImplementation(() => {});
  onTestFinished(() => void vi.restoreAllMocks());
  const failing = answering(() => {
    throw new Error("the database is away");
  });
  const onResponse: BetterAuthPlugin["onResponse"] = async ({ status, body }) => ({
    response: Response.json({ status, body }, { status }),
  });
  const known = { code: "INTERNAL_SERVER_ERROR", message: "Internal Server Error" };
  for (const [plugins, data] of [
    [[failing], known],
    [[failing, { id: "own", onResponse }], { status: 500, body: null }],
  ] as const) {
    const { at } = await createWorld({ plugins: [...plugins] });
    expect(await at("acme").get("/answer")).toMatchObject({ status: 500, data });
  }
});

describe("hooks of the application are its own to better-auth and to plugins, and run in the tenant", () => {
  /** What the application's hooks, and those of a plugin, have seen. */
  function watch() {
    const seen: string[] = [];
    const note = (who: string) =>
      createAuthMiddleware(async (ctx) => {
        const { hooks = {} } = ctx.context.options;
        seen.push(`${who} in ${getTenantId()}, with ${Object.keys(hooks)}`);
        ctx.setHeader(`x-${who.replaceAll(" ", "-")}`, "1");
        ctx.setCookie(who.replaceAll(" ", "-"), "1");
      });
    const always = () => true;
    const plugin: BetterAuthPlugin = {
      id: "watching",
      hooks: {
        before: [{ matcher: always, handler: note("plugin before") }],
        after: [{ matcher: always, handler: note("plugin after") }],
      },
    };
    return { seen, note, plugin };
  }

  it.each([[["before", "after"]], [["before"]], [["after"]]])("%j", async (names) => {
    const { seen, note, plugin } = watch();
    const hooks = Object.fromEntries(names.map((name) => [name, note(`application ${name}`)]));
    const world = await createWorld({ plugins: [plugin], auth: { hooks } });
    seen.length = 0;
    const { headers } = await world.at("acme").get("/get-session");
    const order = ["application before", "plugin before", "application after", "plugin after"];
    const isThere = (who: string) =>
      who.startsWith("plugin") || names.some((one) => who.endsWith(one));
    const ran = order.filter(isThere);
    const text = `in ${world.ids.acme}, with ${names}`;
    expect(seen).toEqual(ran.map((who) => `${who} ${text}`));
    const cookies = headers.getSetCookie().map((line) => line.split("=")[0]);
    // better-auth drops what a before-hook sets if the endpoint answers.
    const late = ran.filter((who) => who.endsWith("after")).map((who) => who.replace(" ", "-"));
    expect(cookies).toEqual(late);
    for (const who of late) expect(headers.get(`x-${who}`)).toBe("1");
  });

  it("R5: hands back the request without the session of another tenant", async () => {
    const before = createAuthMiddleware(async (ctx) => ({ context: { ...ctx } }));
    const seen: unknown[] = [];
    const noting: BetterAuthPlugin = {
      id: "noting",
      endpoints: {
        note: createAuthEndpoint("/note", { method: "GET" }, async ({ request, headers }) => {
          for (const sent of [request?.headers, headers]) seen.push(sent?.get("cookie"));
          return {};
        }),
      },
    };
    const world = await createWorld({ plugins: [noting], auth: { hooks: { before } } });
    const jane = await world.as("jane", "acme");
    await world.at("globex", jane).get("/note");
    expect(seen.join()).not.toContain(jane.token);
    seen.length = 0;
    await jane.get("/note");
    expect(seen.join()).toContain(encodeURIComponent(jane.token));
  });

  it("one that answers instead of the endpoint, or replaces its answer, does so", async () => {
    const before = createAuthMiddleware(async ({ path }) =>
      path === "/ok" ? { instead: "before" } : undefined,
    );
    const after = createAuthMiddleware(async ({ path }) =>
      path === "/error" ? { instead: "after" } : undefined,
    );
    const { at } = await createWorld({ auth: { hooks: { before, after } } });
    expect((await at("acme").get("/ok")).data).toEqual({ instead: "before" });
    expect((await at("acme").get("/error")).data).toEqual({ instead: "after" });
    const refused = createAuthMiddleware(async ({ path }) => {
      if (path === "/ok") throw new APIError("CONFLICT", { code: "NO" });
    });
    for (const hooks of [{ before: refused }, { after: refused }]) {
      const world = await createWorld({ auth: { hooks } });
      const answer = await world.at("acme").get("/ok");
      expect([answer.status, answer.code]).toEqual([409, "NO"]);
    }
  });

  it("an after-hook sees what ours have refused", async () => {
    const seen: unknown[] = [];
    const after = createAuthMiddleware(async ({ path, context: { returned } }) => {
      if (path === "/get-access-token") seen.push(isAPIError(returned) && returned.body?.code);
    });
    const socialProviders = { facebook: { clientId: "id", clientSecret: "secret" } };
    const world = await createWorld({ auth: { socialProviders, hooks: { after } } });
    const jane = await world.as("jane", "acme");
    await world.write("account", {
      userId: jane.id,
      tenantId: world.ids.acme,
      providerId: "facebook",
      accountId: "7",
      accessToken: "access",
    });
    const { data } = await jane.get<{ id: string; providerId: string }[]>("/list-accounts");
    const accountId = data.find(({ providerId }) => providerId === "facebook")?.id;
    const { code } = await jane.post("/get-access-token", { accountId });
    expect([code, ...seen]).toEqual(["TOKEN_OF_SHARED_CLIENT", "TOKEN_OF_SHARED_CLIENT"]);
  });
});

type IsFor = (path?: string) => boolean;

/** As better-auth teaches to change a call: the whole of it goes back, as the hook was given it. */
const handBack = (isFor: IsFor) =>
  createAuthMiddleware(async (ctx) =>
    isFor(ctx.path) ? { context: { ...ctx, body: ctx.body } } : undefined,
  );
const HANDING_BACK: [
  string,
  (isFor: IsFor) => Pick<WorldOptions, "auth"> & { others: BetterAuthPlugin[] },
][] = [
  ["the application", (isFor) => ({ auth: { hooks: { before: handBack(isFor) } }, others: [] })],
  [
    "a plugin",
    (isFor) => {
      const hook = {
        matcher: ({ path }: { path?: string }) => isFor(path),
        handler: handBack(isFor),
      };
      return { others: [{ id: "hands-back", hooks: { before: [hook] } }] };
    },
  ],
];

describe.each(HANDING_BACK)("a hook of %s that hands the whole call back", (_, handingBack) => {
  const { others: plugins, auth } = handingBack(() => true);

  it("R6: makes no link of the platform valid at Acme, for any user with that address", async () => {
    const world = await createWorld({ plugins, auth });
    const jane = await world.signUp("acme", EMAIL);
    // Mallory has claimed Jane's address on the platform, and her own mailbox gets the link.
    const mallory = await world.signUp("platform", EMAIL);
    await mallory.post("/change-email", { newEmail: "mallory@evil.example" });
    const query = { token: world.mails.at(-1)?.token ?? "" };
    const browser = world.at("acme");
    expect((await browser.get("/verify-email", { query })).code).toBe("INVALID_TOKEN");
    expect(await world.whoIs(browser)).toBe(null);
    expect(await world.whoIs(jane, "acme")).toMatchObject({ email: EMAIL });
  });

  it("leaves the links of tenants good", async () => {
    const world = await createWorld({ plugins, auth });
    await world.signUp("acme", EMAIL);
    await world.at("acme").post("/request-password-reset", { email: EMAIL, redirectTo: "/reset" });
    const { token } = world.mails.at(-1) ?? {};
    const body = { token, newPassword: "another long password" };
    expect((await world.at("platform").post("/reset-password", body)).status).toBe(200);
  });

  it("R12: takes no second factor away from the sign-in of tenants", async () => {
    const second = twoFactor({ skipVerificationOnEnable: true });
    const { others, auth } = handingBack((path) => path === "/sign-in/email");
    const world = await createWorld({ plugins: [second, ...others], auth });
    const jane = await world.signUp("acme", EMAIL);
    await jane.post("/two-factor/enable", { password: PASSWORD });
    const body = { email: EMAIL, password: PASSWORD };
    const { data } = await world.at("acme").post("/tenant/sign-in/email", body);
    expect(data).toMatchObject({ twoFactorRedirect: true, session: null });
  });
});

it.each<[string, BodyInit | null, ResponseInit]>([
  // A body behind this length would be read as the next answer of the connection.
  ["an empty 503", null, { status: 503, headers: { "content-length": "0", "retry-after": "5" } }],
  ["an empty 500", null, { status: 500, headers: { "x-mine": "yes" } }],
  ["a picture", "<svg/>", { statusText: "Mine", headers: { "content-type": "image/svg+xml" } }],
  ["a feed", "<rss/>", { headers: { "content-type": "application/rss+xml" } }],
])("%s that an endpoint answers on purpose stays as it is", async (_, body, init) => {
  const { auth } = await createWorld({ plugins: [answering(() => new Response(body, init))] });
  const answer = await auth.handler(new Request(`${BASE_URL}/answer`));
  const { status = 200, statusText = "", headers } = init;
  expect([answer.status, answer.statusText]).toEqual([status, statusText]);
  expect(Object.fromEntries(answer.headers)).toEqual(headers);
  expect(await answer.text()).toBe(body ?? "");
});
