import type { BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint, dispatchAuthEndpoint, signInEmail } from "better-auth/api";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import type { TenantManagementRequest } from "../../src/index";
import { PASSWORD } from "../support/instance";
import { createWorld, EMAIL, shareWorld } from "../support/world";

/** Runs better-auth's sign-in with a context of its own, as plugins do that stand in for it. */
const cloning: BetterAuthPlugin = {
  id: "clones-the-context",
  endpoints: {
    signInByClone: createAuthEndpoint(
      "/sign-in/clone",
      { method: "POST", body: z.object({ email: z.string(), password: z.string() }) },
      async (ctx) => {
        const authCookies = structuredClone(ctx.context.authCookies);
        const context = { ...ctx.context, authCookies };
        const run = signInEmail() as unknown as Parameters<typeof dispatchAuthEndpoint>[0];
        const input = { ...ctx, context, asResponse: false, returnHeaders: true };
        const { headers } = (await dispatchAuthEndpoint(run, input)) as { headers: Headers };
        for (const line of headers.getSetCookie()) ctx.setHeader("set-cookie", line);
        return ctx.json({ status: true });
      },
    ),
  },
};

describe.each(["per-tenant", "shared"] as const)("%s session cookies", (sessionCookies) => {
  const asked: (string | undefined)[] = [];
  const world = shareWorld({
    plugins: [cloning],
    tenant: {
      sessionCookies,
      canManageTenants: (_: unknown, { session }: TenantManagementRequest) => {
        asked.push(session?.user.id);
        return true;
      },
    },
  });
  const own = sessionCookies === "per-tenant";

  it("a tenant's own admin can use /admin/* in its tenant", async () => {
    const admin = await world.as("admin", "acme");
    const { id } = await world.signUp("acme", "banned@example.com");
    const { data } = await admin.get<{ users: { id: string }[] }>("/admin/list-users");
    const stored = await world.rowsIn("acme", "user");
    expect(data.users.map((user) => user.id).sort()).toEqual(stored.map((user) => user.id).sort());
    expect((await admin.post("/admin/ban-user", { userId: id })).status).toBe(200);
  });

  it("canManageTenants sees the session of a tenant's admin", async () => {
    const admin = await world.as("admin", "acme");
    const tenantId = world.ids.acme;
    asked.length = 0;
    const answers = [
      await admin.get("/tenant/get", { query: { id: tenantId } }),
      await admin.post("/tenant/update", { tenantId, name: "Renamed" }),
      await admin.get("/tenant/oauth-config/list"),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(asked).toEqual(Array(3).fill(admin.id));
  });

  it("R7: without a name, a management call is the platform's", async () => {
    const admin = await world.as("admin", "acme");
    asked.length = 0;
    expect((await world.at("platform", admin).get("/tenant/list")).status).toBe(200);
    // A cookie that all tenants share is the tenant's session there too.
    expect(asked).toEqual([own ? undefined : admin.id]);
  });

  it("R5: the admin of Acme is nobody at Globex, with the cookies of both places", async () => {
    const both = world.at("globex", await world.as("admin", "acme"));
    expect((await both.get("/admin/list-users")).status).toBe(401);
    for (const [name, value] of (await world.as("jane", "globex")).cookies) {
      both.cookies.set(name, value);
    }
    expect((await both.get("/admin/list-users")).status).toBe(403);
  });

  it("cookies keep their name where a plugin clones the context", async () => {
    const { id } = await world.as("jane", "acme");
    const tab = world.at("acme");
    const answer = await tab.post("/sign-in/clone", { email: EMAIL, password: PASSWORD });
    expect(answer.status).toBe(200);
    const name = "better-auth.session_token";
    expect([...tab.cookies.keys()]).toEqual([own ? `${name}_${world.ids.acme}` : name]);
    expect(await world.whoIs(tab)).toMatchObject({ id });
  });
});

it("per-tenant cookies: an operator still visits Acme with the platform's cookie", async () => {
  const world = await createWorld({ tenant: { sessionCookies: "per-tenant" } });
  const { id } = await world.as("jane", "acme");
  const window = world.at("acme", await world.operator());
  const { data } = await window.get("/admin/list-users");
  expect(data.users).toMatchObject([{ id }]);
});
