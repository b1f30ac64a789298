import { magicLink } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { runInTenant } from "../../src/index";
import { createWorld, EMAIL, outcome, queryOf } from "../support/world";

async function start() {
  const world = await createWorld({
    plugins: (send) => [magicLink({ sendMagicLink: send("link") })],
    tenant: { resolveTenantId: ({ request }) => request?.headers.get("x-resolved") },
    auth: {
      user: { changeEmail: { enabled: true, sendChangeEmailConfirmation: undefined as never } },
      trustedOrigins: ["https://pages.example.com"],
    },
  });
  const jane = await world.as("jane", "acme");
  /** The link that somebody gets, who is there already. */
  const magic = async (pages: object) => {
    await world.at("acme").post("/sign-in/magic-link", { email: EMAIL, ...pages });
    return world.lastMail("link").url;
  };
  const follow = async (url: string, headers = {}) => {
    const { status, location } = await world.browser(headers).get(url);
    return [status, location];
  };
  return { ...world, jane, magic, follow };
}

const IN = [302, "http://localhost:3000/in"];

describe("a link that was mailed, and is refused when somebody follows it", () => {
  it("by a policy that was set meanwhile, tells the page that it names", async () => {
    const { browser, magic, follow, change, jane, rows } = await start();
    const page = "https://pages.example.com/in";
    const links = [
      [await magic({ callbackURL: "/in", errorCallbackURL: "/failed" }), "/failed"],
      [await magic({ callbackURL: "/in" }), "/in"],
      [await magic({ callbackURL: page }), page],
    ] as const;
    const plain = await magic({ callbackURL: "/in" });
    await change("acme", { policy: { methods: ["password"] } });
    for (const [link, page] of links) {
      expect(await follow(link)).toEqual([302, `${page}?error=SIGN_IN_METHOD_NOT_ALLOWED`]);
    }
    // A program that asks without a page gets an answer.
    const answer = await browser().get(plain.replace(/&callbackURL=[^&]*/, ""));
    expect(outcome(answer)).toEqual([403, "SIGN_IN_METHOD_NOT_ALLOWED"]);
    // better-auth ends what was there before an address was proven; nothing comes in its place.
    expect(await rows("session", '"userId" = ?', [jane.id])).toBe(0);
    await change("acme", { policy: null });
    expect(await follow(await magic({ callbackURL: "/in" }))).toEqual(IN);
  });

  it("a changed address, too", async () => {
    const { ids, context, jane, change, lastMail } = await start();
    await runInTenant(ids.acme, () =>
      context.internalAdapter.updateUser(jane.id, { emailVerified: true }),
    );
    await jane.post("/change-email", { newEmail: "x@elsewhere.com", callbackURL: "/settings" });
    await change("acme", { policy: { emailDomains: ["example.com"] } });
    const { status, location } = await jane.get(lastMail("verification").url);
    expect([status, location]).toEqual([302, "/settings?error=EMAIL_DOMAIN_NOT_ALLOWED"]);
  });

  it("because its tenant is suspended, at the tenant's own host or elsewhere", async () => {
    const { ids, naming, magic, follow, change } = await start();
    const link = await magic({ callbackURL: "/in", errorCallbackURL: "/failed" });
    const bare = await magic({});
    const foreign = link.replace("%2Ffailed", encodeURIComponent("https://evil.example.com/"));
    await change("acme", { status: "suspended" });
    for (const headers of [{}, { "x-resolved": ids.acme }, naming("acme")]) {
      expect(await follow(link, headers)).toEqual([302, "/failed?error=TENANT_SUSPENDED"]);
      // Never to a page that is not trusted.
      expect(await follow(foreign, headers)).toEqual([403, null]);
    }
    expect(await follow(bare)).toEqual([302, "/?error=TENANT_SUSPENDED"]);
    await change("acme", { status: "active" });
    expect(await follow(link)).toEqual(IN);
  });
});

it("what no link asked for is an answer, whichever page it names", async () => {
  const { at, change } = await start();
  await change("acme", { status: "suspended" });
  const body = { email: EMAIL, password: "x", callbackURL: "/in" };
  const answer = await at("acme").post("/tenant/sign-in/email", body);
  expect(outcome(answer)).toEqual([403, "TENANT_SUSPENDED"]);
});

it("a provider's form at the host of a suspended tenant goes on as a GET, and to an error page", async () => {
  const { ids, browser, change } = await start();
  await change("acme", { status: "suspended" });
  const host = browser({ "x-resolved": ids.acme });
  const posted = await host.send("/tenant/callback/apple", {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: "state=unknown&code=code",
  });
  const page = "http://localhost:3000/api/auth/tenant/callback/apple?code=code&state=unknown";
  expect([posted.status, posted.location]).toEqual([302, page]);
  const followed = await host.get(page);
  expect(followed.status).toBe(302);
  expect(queryOf(followed.location).error).toBeTruthy();
});
