import { expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
import { createWorld, type Ground, type Row, type World } from "./store";

const MODELS = ["user", "session", "account", "verification", "tenantOauthConfig"];
const EMAIL = "same@example.com";

/** Somebody by password, Alice by her provider, a reset token, an OAuth state, a config. */
async function populate(app: World, side: string | null) {
  const { browser } = await app.signUp(side, EMAIL);
  const headers: Record<string, string> = side === null ? {} : { "x-tenant-id": side };
  await app.browser(headers).post("/request-password-reset", { email: EMAIL });
  if (side !== null) await app.configure(side);
  await app.signIn(app.browser(), side);
  await app.start(app.browser(), side);
  return browser;
}

export function deletesTenants(ground: Ground) {
  it("deletes everything of a tenant, and nothing of anybody else", async () => {
    const app = await createWorld(ground, { sendResetPassword: async () => {} });
    const { a, b, rowsOf, rows, api } = app;
    const leaver = await populate(app, a.id);
    const stayer = await populate(app, b.id);
    await populate(app, null);
    const all = async (side: string | null) => {
      const found: Record<string, Row[]> = {};
      for (const model of MODELS) found[model] = await rowsOf(model, side);
      return structuredClone(found);
    };
    const counts = async (side: string | null) =>
      Object.values(await all(side)).map((found) => found.length);
    expect(await counts(a.id)).toEqual([2, 2, 2, 2, 1]);
    expect(await counts(null)).toEqual([2, 2, 2, 2, 0]);
    const [ofB, ofPlatform] = [await all(b.id), await all(null)];

    expect(await api.deleteTenant({ body: { tenantId: a.id } })).toEqual({ success: true });
    expect(await counts(a.id)).toEqual([0, 0, 0, 0, 0]);
    expect([await all(b.id), await all(null)]).toEqual([ofB, ofPlatform]);
    expect((await rows("tenant")).map(({ id }) => String(id ?? ""))).toEqual([b.id]);
    expect(await app.whoIs(leaver, a.id)).toBeNull();
    expect(await app.whoIs(leaver, null)).toBeNull();
    expect((await app.whoIs(stayer, b.id))?.user.email).toBe(EMAIL);

    const body = { tenantId: a.id, email: EMAIL, password: PASSWORD };
    const late = await app.browser().post("/tenant/sign-in/email", body);
    expect([late.status, late.code]).toEqual([404, "TENANT_NOT_FOUND"]);
  });

  it("a new tenant of the old name has nothing of the old one", async () => {
    const { api, a, b, browser, signUp, whoIs } = await createWorld(ground);
    await signUp(a.id, EMAIL);
    const old = await signUp(b.id, EMAIL);
    await api.deleteTenant({ body: { tenantId: b.id } });
    const again = await api.createTenant({ body: { name: "Bolt", slug: "bolt" } });
    // Some count from what is left, and b was the youngest.
    if (!ground.reusesIds) expect([a.id, b.id]).not.toContain(again.id);
    expect(again.id).not.toBe(a.id);
    const body = { tenantId: again.id, email: EMAIL, password: PASSWORD };
    const answer = await browser().post("/tenant/sign-in/email", body);
    expect([answer.status, answer.code]).toEqual([401, "INVALID_EMAIL_OR_PASSWORD"]);
    await signUp(again.id, EMAIL);
    expect(await whoIs(old.browser, again.id)).toBeNull();
  });
}
