import type { BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint, createAuthMiddleware } from "better-auth/api";
import { twoFactor } from "better-auth/plugins";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { BASE_URL, PASSWORD } from "../support/instance";
import { createWorld, EMAIL, type WorldOptions } from "../support/world";

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
