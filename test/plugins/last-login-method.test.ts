import { lastLoginMethod, magicLink } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
import { createSocialInstance } from "../support/social";
import { createPlaces, EMAIL } from "./places";

const COOKIE = "better-auth.last_used_login_method";

describe("lastLoginMethod", () => {
  it("remembers the e-mail sign-in of a tenant, by either path", async () => {
    const { signUp, at, ids, rows } = await createPlaces([
      lastLoginMethod({ storeInDatabase: true }),
    ]);
    const { user } = await signUp("a");
    await signUp("b");
    const own = at("a");
    await own.post("/tenant/sign-in/email", { email: EMAIL, password: PASSWORD });
    expect(own.cookies.get(COOKIE)).toBe("email");
    const core = at("a");
    await core.post("/sign-in/email", { email: EMAIL, password: PASSWORD });
    expect(core.cookies.get(COOKIE)).toBe("email");
    const stored = '"lastLoginMethod" = \'email\' and id = ? and "tenantId" = ?';
    expect(await rows("user", stored, [user.id, ids.a])).toBe(1);
  });

  it("stores it for the tenant's user only", async () => {
    const links: string[] = [];
    const { signUp, at, instance, rows } = await createPlaces([
      lastLoginMethod({ storeInDatabase: true }),
      magicLink({ sendMagicLink: (mail) => void links.push(mail.url) }),
    ]);
    await signUp("a");
    await signUp("b");
    await at("a").post("/sign-in/magic-link", { email: EMAIL });
    await instance.browser().get(links[0] ?? "");
    expect(await rows("user", "\"lastLoginMethod\" = 'magic-link'")).toBe(1);
  });

  it("remembers the provider after the tenant's callback", async () => {
    const app = await createSocialInstance({ plugins: [lastLoginMethod()] });
    const tenant = await app.createTenant();
    const browser = app.browser();
    await browser.get(await app.authorize(browser, tenant.id));
    expect((await app.whoIs(browser, tenant.id))?.session.tenantId).toBe(tenant.id);
    expect(browser.cookies.get(COOKIE)).toBe("gitlab");
  });
});
