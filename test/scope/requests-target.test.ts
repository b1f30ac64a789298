import type { BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint } from "better-auth/api";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { getTenantId, type TenantManagementRequest } from "../../src/index";
import { createInstance } from "../support/instance";
import { createTriplets } from "./triplets";

describe("R7: management names a target", () => {
  it("R7: the operator stays on the platform whatever the request names", async () => {
    const instance = await createInstance();
    const a = (await instance.createTenant("aa")).id;
    const b = (await instance.createTenant("bb")).id;
    const { browser } = await instance.operator();
    const window = browser.fork({ "x-tenant-id": b });
    expect((await window.get<unknown[]>("/tenant/list")).data).toHaveLength(2);
    const updated = await window.post("/tenant/update", { tenantId: a, name: "Changed" });
    expect([updated.status, updated.data.id]).toEqual([200, a]);
    const registered = await window.post(
      "/tenant/oauth-config/register",
      { tenantId: a, providerId: "google", clientId: "i", clientSecret: "s" },
      { query: { tenantId: b } },
    );
    expect([registered.status, registered.data.tenantId]).toEqual([200, a]);
    expect(await instance.rows("tenant", "name = 'Changed'")).toBe(1);
    expect(await instance.rows("tenantOauthConfig", `"tenantId" = ?`, [b])).toBe(0);
    // Afterwards the operator is who they were.
    expect((await browser.get("/admin/list-users")).status).toBe(200);
  });

  it("R7: to name a tenant grants nothing, not even to its own people", async () => {
    const instance = await createInstance();
    const { id, slug } = await instance.createTenant();
    const { browser, user } = await instance.signUp(id);
    await instance.database.query(`update "user" set role = 'admin' where id = ?`, [user.id]);
    const operator = await instance.operator();
    const windows = [browser.fork(), browser.fork({ "x-tenant-id": id })];
    for (const window of windows) {
      const answer = await window.post("/tenant/update", { tenantId: id, name: "Mine" });
      expect([answer.status, answer.code]).toEqual([403, "TENANT_MANAGEMENT_NOT_ALLOWED"]);
      const get = await window.get("/tenant/get", { query: { slug } });
      expect([get.status, get.code]).toEqual([403, "TENANT_MANAGEMENT_NOT_ALLOWED"]);
    }
    const nobody = await instance
      .browser({ "x-tenant-id": id })
      .post("/tenant/delete", { tenantId: id });
    expect([nobody.status, nobody.code]).toEqual([401, "UNAUTHORIZED"]);
    expect(await instance.rows("tenant", "name = 'Mine'")).toBe(0);
    expect((await operator.browser.get("/tenant/list")).status).toBe(200);
  });

  it("R7: canManageTenants is asked in the caller's scope, about the target", async () => {
    const asked: unknown[] = [];
    const canManageTenants = (_: unknown, { tenantId, session }: TenantManagementRequest) => {
      asked.push([getTenantId(), tenantId, session?.user.id ?? null]);
      return true;
    };
    const instance = await createInstance({ tenant: { canManageTenants } });
    const a = (await instance.createTenant()).id;
    const b = (await instance.createTenant()).id;
    const manager = await instance.signUp(a);
    const operator = await instance.signUp(null);
    const body = { tenantId: b, name: "Changed" };
    for (const { browser } of [manager, operator]) {
      const answer = await browser.fork({ "x-tenant-id": b }).post("/tenant/update", body);
      expect([answer.status, answer.data.id]).toEqual([200, b]);
    }
    expect(asked).toEqual([
      [a, b, manager.user.id],
      [null, b, operator.user.id],
    ]);
  });
});

/** A plugin that gives a session to whomever it is told to: what a careless one amounts to. */
const careless = {
  id: "careless",
  endpoints: {
    careless: createAuthEndpoint(
      "/careless/session",
      { method: "POST", body: z.object({ userId: z.string(), tenantId: z.string().optional() }) },
      async (ctx) => {
        const { userId, tenantId } = ctx.body;
        const extra = { tenantId };
        return ctx.json(
          await ctx.context.internalAdapter.createSession(userId, false, extra, true),
        );
      },
    ),
  },
} satisfies BetterAuthPlugin;

describe("R8: no session for a user outside of the scope", () => {
  it("R8: whichever plugin asks for it", async () => {
    const { people, instance, a, b } = await createTriplets({ plugins: [careless] });
    const homes = { a, b, platform: null };
    for (const [place, tenantId] of Object.entries(homes)) {
      const browser = instance.browser(tenantId ? { "x-tenant-id": tenantId } : {});
      for (const [who, { user }] of Object.entries(people)) {
        const sessions = await instance.rows("session");
        const body = { userId: user.id, tenantId: user.tenantId ?? undefined };
        const answer = await browser.post("/careless/session", body);
        const label = `${who} in ${place}`;
        if (who === place) {
          expect([answer.status, answer.data.tenantId], label).toEqual([200, tenantId]);
          continue;
        }
        expect([answer.status, answer.code], label).toEqual([403, "USER_NOT_IN_TENANT"]);
        expect(await instance.rows("session"), label).toBe(sessions);
      }
    }
  });

  it("R8: nor does a session of one tenant help to make one of another", async () => {
    const { people, instance, b } = await createTriplets({ plugins: [careless] });
    const sessions = await instance.rows("session");
    for (const window of [people.a.browser.fork(), people.a.browser.fork({ "x-tenant-id": b })]) {
      const userId = window.headers["x-tenant-id"] ? people.a.user.id : people.b.user.id;
      const answer = await window.post("/careless/session", { userId, tenantId: b });
      expect([answer.status, answer.code]).toEqual([403, "USER_NOT_IN_TENANT"]);
    }
    expect(await instance.rows("session")).toBe(sessions);
  });
});
