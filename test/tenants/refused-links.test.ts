import { magicLink } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { runInTenant, type TenantPolicy } from "../../src/index";
import { createInstance, PASSWORD } from "../support/instance";

async function start() {
  const urls: string[] = [];
  const send = async ({ url }: { url: string }) => void urls.push(url);
  const instance = await createInstance({
    plugins: [magicLink({ sendMagicLink: send })],
    tenant: { resolveTenantId: ({ request }) => request?.headers.get("x-resolved") },
    auth: {
      user: { changeEmail: { enabled: true } },
      emailVerification: { sendVerificationEmail: send, autoSignInAfterVerification: true },
      trustedOrigins: ["https://pages.example.com"],
    },
  });
  const { id: tenantId } = await instance.createTenant();
  const { browser, email, user } = await instance.signUp(tenantId);
  const update = (change: { policy?: TenantPolicy | null; status?: "suspended" | "active" }) =>
    instance.api.updateTenant({ body: { tenantId, ...change } });
  /** The link that somebody gets, who is there already. */
  const magic = async (pages: object) => {
    await instance.browser({ "x-tenant-id": tenantId }).post("/sign-in/magic-link", {
      email,
      ...pages,
    });
    return urls.at(-1) ?? "";
  };
  return { instance, tenantId, browser, email, user, urls, update, magic };
}

describe("a link that was mailed, and is refused when somebody follows it", () => {
  it("by a policy that was set meanwhile, tells the page that it names", async () => {
    const { instance, magic, update, user } = await start();
    const links = [
      [await magic({ callbackURL: "/in", errorCallbackURL: "/failed" }), "/failed"],
      [await magic({ callbackURL: "/in" }), "/in"],
      [
        await magic({ callbackURL: "https://pages.example.com/in" }),
        "https://pages.example.com/in",
      ],
    ] as const;
    const plain = await magic({ callbackURL: "/in" });
    await update({ policy: { methods: ["password"] } });
    for (const [link, page] of links) {
      const { status, location } = await instance.browser().get(link);
      expect([status, location]).toEqual([302, `${page}?error=SIGN_IN_METHOD_NOT_ALLOWED`]);
    }
    // A program that asks without a page gets an answer.
    const { status, code } = await instance.browser().get(plain.replace(/&callbackURL=[^&]*/, ""));
    expect([status, code]).toEqual([403, "SIGN_IN_METHOD_NOT_ALLOWED"]);
    // better-auth ends what was there before an address was proven; nothing comes in its place.
    expect(await instance.rows("session", '"userId" = ?', [user.id])).toBe(0);
    await update({ policy: null });
    const allowed = await instance.browser().get(await magic({ callbackURL: "/in" }));
    expect([allowed.status, new URL(allowed.location ?? "").pathname]).toEqual([302, "/in"]);
  });

  it("a changed address, too", async () => {
    const { instance, tenantId, browser, user, urls, update } = await start();
    await runInTenant(tenantId, () =>
      instance.context.internalAdapter.updateUser(user.id, { emailVerified: true }),
    );
    await browser.post("/change-email", { newEmail: "x@elsewhere.com", callbackURL: "/settings" });
    await update({ policy: { emailDomains: ["example.com"] } });
    const { status, location } = await browser.get(urls.at(-1) ?? "");
    expect([status, location]).toEqual([302, "/settings?error=EMAIL_DOMAIN_NOT_ALLOWED"]);
  });

  it("because its tenant is suspended, at the tenant's own host or elsewhere", async () => {
    const { instance, tenantId, magic, update } = await start();
    const link = await magic({ callbackURL: "/in", errorCallbackURL: "/failed" });
    const foreign = link.replace("%2Ffailed", encodeURIComponent("https://evil.example.com/"));
    await update({ status: "suspended" });
    for (const headers of [{}, { "x-resolved": tenantId }, { "x-tenant-id": tenantId }]) {
      const browser = instance.browser(headers as Record<string, string>);
      const { status, location } = await browser.get(link);
      expect([status, location]).toEqual([302, "/failed?error=TENANT_SUSPENDED"]);
      // Never to a page that is not trusted.
      const elsewhere = await browser.get(foreign);
      expect([elsewhere.status, elsewhere.location]).toEqual([403, null]);
    }
    const body = { tenantId, email: "x@example.com", password: PASSWORD, callbackURL: "/in" };
    const answer = await instance.browser().post("/tenant/sign-in/email", body);
    expect([answer.status, answer.code]).toEqual([403, "TENANT_SUSPENDED"]);
    await update({ status: "active" });
    const again = await instance.browser().get(link);
    expect([again.status, new URL(again.location ?? "").pathname]).toEqual([302, "/in"]);
  });
});

it("a provider's form at the host of a suspended tenant goes on as a GET, and to an error page", async () => {
  const { instance, tenantId, update } = await start();
  await update({ status: "suspended" });
  const host = instance.browser({ "x-resolved": tenantId });
  const posted = await host.send("/tenant/callback/apple", {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: "state=unknown&code=code",
  });
  expect([posted.status, posted.location]).toEqual([
    302,
    "http://localhost:3000/api/auth/tenant/callback/apple?code=code&state=unknown",
  ]);
  const followed = await host.get(posted.location ?? "");
  expect(followed.status).toBe(302);
  expect(new URL(followed.location ?? "").searchParams.get("error")).toBeTruthy();
});
