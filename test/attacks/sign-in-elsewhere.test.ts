import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { createAuthMiddleware, getSessionFromCtx } from "better-auth/api";
import { anonymous } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { CACHES } from "../configurations/checks";
import { createStorage } from "../configurations/storages";
import { createPlaces } from "../plugins/places";
import { PASSWORD } from "../support/instance";
import { createSocialInstance } from "../support/social";

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

const PLUGINS: [name: string, plugins: () => BetterAuthPlugin[]][] = [
  ["nothing else (control)", () => []],
  ["anonymous()", () => [anonymous()]],
  ["an after hook that asks who is there", () => [asks]],
];

const STORES: [name: string, auth: () => Partial<BetterAuthOptions>][] = [
  ["the database", () => ({})],
  ["a storage", () => ({ secondaryStorage: createStorage({}) })],
  ["a cached cookie", () => ({ session: CACHES[0]?.[1] })],
];

describe.each(PLUGINS)("R5: signing in at B in a browser of elsewhere, with %s", (_, plugins) => {
  describe.each(STORES)("sessions in %s", (_, auth) => {
    it.each(["a", "platform"] as const)("somebody of %s is there afterwards", async (home) => {
      const { signUp, naming, whoIs } = await createPlaces(plugins(), { auth: auth() });
      await signUp("b", "bob@example.com");
      const al = await signUp(home, "al@example.com");
      const tab = al.browser.fork(naming("b"));
      const body = { email: "bob@example.com", password: PASSWORD };
      expect((await tab.post("/sign-in/email", body)).status).toBe(200);
      expect(await whoIs(tab, "b")).toMatchObject({ email: "bob@example.com" });
    });
  });

  it("by a provider, somebody of A is there afterwards", async () => {
    const app = await createSocialInstance({ plugins: plugins() });
    const { id: a } = await app.createTenant();
    const { id: b } = await app.createTenant();
    await app.configure(b);
    const { browser } = await app.signUp(a, "al@example.com");
    expect((await app.signIn(browser, b)).location).toBe("/welcome");
    expect((await app.whoIs(browser, b))?.session.tenantId).toBe(b);
  });
});
