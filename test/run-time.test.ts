import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { APIError, createAuthEndpoint, createAuthMiddleware } from "better-auth/api";
import { twoFactor } from "better-auth/plugins";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { BASE_URL, createInstance, PASSWORD } from "./support/instance";
import { createWorld, EMAIL, type WorldOptions } from "./support/world";

/** A plugin with an endpoint that answers this. */
const answering = (answer: () => Response) => ({
  id: "answering",
  endpoints: { answer: createAuthEndpoint("/answer", { method: "GET" }, async () => answer()) },
});

it("what nobody expected is answered with a code, unless a plugin makes its own answer of it", async () => {
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

it("a plugin may be an instance of a class, with a guard for every request", async () => {
  class Guard {
    readonly #closed = "/closed";
    id = "guard";
    hooks = { before: [{ matcher: () => false, handler: createAuthMiddleware(async () => {}) }] };
    async onRequest({ url }: Request) {
      const response = new Response(null, { status: 451 });
      return url.endsWith(this.#closed) ? { response } : undefined;
    }
  }
  const { at } = await createWorld({ plugins: [new Guard() as BetterAuthPlugin] });
  expect([(await at("acme").get("/closed")).status, (await at("acme").get("/ok")).status]).toEqual([
    451, 200,
  ]);
});

it("options may be instances of classes, and say something else at run time", async () => {
  class People {
    get changeEmail() {
      return { enabled: true };
    }
    get additionalFields() {
      return { plan: { type: "string", required: false } as const };
    }
  }
  const mails: string[] = [];
  let sendOnSignUp = false;
  const emailVerification = {
    get sendOnSignUp() {
      return sendOnSignUp;
    },
    sendVerificationEmail: async ({ user }: { user: { email: string } }) =>
      void mails.push(user.email),
  };
  const { createTenant, browser } = await createInstance({
    auth: { user: new People(), emailVerification },
  });
  const { id: tenantId } = await createTenant();
  for (const email of ["first@example.com", "second@example.com"]) {
    const body = { name: "S", email, password: PASSWORD, plan: "pro", tenantId };
    const { data } = await browser().post("/tenant/sign-up/email", body);
    expect(data).toMatchObject({ user: { email, plan: "pro" } });
    sendOnSignUp = true;
  }
  expect(mails).toEqual(["second@example.com"]);
});

const refuse = createAuthMiddleware(async () => {
  throw new APIError("FORBIDDEN");
});
const refuseSignIn = createAuthMiddleware(async ({ path }) => {
  if (path === "/sign-in/email") throw new APIError("FORBIDDEN");
});
const passing = createAuthMiddleware(async () => {});
const guard = { matcher: () => true, handler: refuse };
const pass = { matcher: () => false, handler: refuse };

/** Guards that better-auth alone asks as soon as they are there. */
const GUARDS: [string, (plugin: BetterAuthPlugin, hooks: AppHooks, written: AppHooks) => void][] = [
  ["in a plugin's list", ({ hooks }) => void hooks?.before?.push(guard)],
  [
    "in a plugin's new list",
    (plugin) => void Object.assign(plugin, { hooks: { before: [guard] } }),
  ],
  [
    "in a plugin's onRequest",
    (plugin) => {
      plugin.onRequest = async () => ({ response: new Response(null, { status: 403 }) });
    },
  ],
  ["of the application", (_, hooks) => void Object.assign(hooks, { before: refuse })],
  ["written to the context", (_, __, written) => void Object.assign(written, { before: refuse })],
];
type AppHooks = NonNullable<BetterAuthOptions["hooks"]>;

it.each(GUARDS)("R12: a guard that comes at run time counts: %s", async (_, come) => {
  const plugin: BetterAuthPlugin = { id: "late", hooks: { before: [pass] } };
  const hooks: AppHooks = {};
  const { auth, at } = await createWorld({ plugins: [plugin], auth: { hooks } });
  come(plugin, hooks, (await auth.$context).options.hooks ?? {});
  for (const path of ["/sign-in/email", "/tenant/sign-in/email"]) {
    const body = { email: EMAIL, password: PASSWORD };
    expect((await at("acme").post(path, body)).status, path).toBe(403);
  }
});

it.each<[string, (written: BetterAuthOptions) => void]>([
  [
    "with those that it shows",
    (written) => {
      written.hooks = { ...written.hooks, after: passing };
    },
  ],
  [
    "around the one that it shows",
    (written) => {
      const { before } = written.hooks ?? {};
      const around = createAuthMiddleware(async (ctx) => before?.(ctx));
      Object.assign(written.hooks ?? {}, { before: around });
    },
  ],
])("R12: no guard is gone because hooks are written to the context, %s", async (_, write) => {
  const { auth, at } = await createWorld({ auth: { hooks: { before: refuseSignIn } } });
  write((await auth.$context).options);
  const body = { email: EMAIL, password: PASSWORD };
  expect((await at("acme").post("/sign-in/email", body)).status).toBe(403);
});

it("hooks that are written may be of a class, come later, and go again", async () => {
  const { auth, at } = await createWorld();
  const { options } = await auth.$context;
  const status = async () => (await at("acme").get("/ok")).status;
  const written: AppHooks = {};
  options.hooks = written;
  Object.assign(written, { before: refuse });
  expect(await status()).toBe(403);
  options.hooks = new (class {
    get before() {
      return refuse;
    }
  })();
  expect(await status()).toBe(403);
  options.hooks = undefined as never;
  expect(await status()).toBe(200);
});

it("options that are written back in a tenant's request say nothing of its policy", async () => {
  const before = createAuthMiddleware(async ({ context: { options } }) => {
    options.emailAndPassword = { ...options.emailAndPassword, minPasswordLength: 9 } as never;
  });
  const world = await createWorld({ auth: { hooks: { before } } });
  const { options } = await world.auth.$context;
  await world.change("acme", { policy: { emailDomains: ["acme.example"] } });
  const body = { name: "A", password: PASSWORD };
  await world.at("acme").post("/sign-up/email", { ...body, email: "a@acme.example" });
  const { data } = await world.at("platform").post("/sign-up/email", { ...body, email: EMAIL });
  expect(data).toMatchObject({ token: expect.any(String) });
  expect(options.emailAndPassword).toMatchObject({ minPasswordLength: 9 });
});

it("a plugin may have no hooks in more ways than one", async () => {
  const plugin = { id: "none", hooks: { before: null, after: [] } } as unknown as BetterAuthPlugin;
  const { at } = await createWorld({ plugins: [plugin] });
  expect((await at("acme").get("/ok")).status).toBe(200);
  Object.assign(plugin, { hooks: null });
  expect((await at("acme").get("/ok")).status).toBe(200);
});

it("options that are written back as they were read stay as short to read", async () => {
  let reads = 0;
  const changeEmail = {
    get enabled() {
      reads += 1;
      return true;
    },
  };
  const { auth } = await createInstance({ auth: { user: { changeEmail } } });
  const { options } = await auth.$context;
  const readOnce = () => {
    reads = 0;
    return [options.user?.changeEmail?.enabled, reads];
  };
  const before = readOnce();
  for (let count = 0; count < 10; count++) options.user = { ...options.user };
  expect([before[0], readOnce()]).toEqual([true, before]);
});

it("a plugin's methods have what is written to the plugin", async () => {
  const plugin = {
    id: "closing",
    closed: false,
    hooks: { before: [pass] },
    async onRequest() {
      return this.closed ? { response: new Response(null, { status: 503 }) } : undefined;
    },
  };
  const { at } = await createWorld({ plugins: [plugin] });
  expect((await at("acme").get("/ok")).status).toBe(200);
  plugin.closed = true;
  expect((await at("acme").get("/ok")).status).toBe(503);
});

it("an address may be changed once that is switched on", async () => {
  const changeEmail = { enabled: false };
  const user = {
    get changeEmail() {
      return { ...changeEmail };
    },
  };
  const instance = await createInstance({ auth: { user } });
  const { id } = await instance.createTenant();
  const jane = await instance.signUp(id, EMAIL);
  const ask = () => jane.browser.post("/change-email", { newEmail: "new@example.com" });
  expect((await ask()).code).toBe("CHANGE_EMAIL_DISABLED");
  changeEmail.enabled = true;
  expect((await ask()).code).not.toBe("CHANGE_EMAIL_DISABLED");
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

  it("R6: makes no link of the platform's good at Acme, whoever has the address there", async () => {
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

  it("R12: takes no second factor away from the sign-in that stands for better-auth's", async () => {
    const second = twoFactor({ skipVerificationOnEnable: true });
    const { others, auth } = handingBack((path) => path === "/tenant/sign-in/email");
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
