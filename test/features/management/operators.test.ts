import type { BetterAuthPlugin, GenericEndpointContext } from "better-auth";
import { getAuthoritativeSessionFromCtx } from "better-auth/api";
import { admin } from "better-auth/plugins";
import { createAccessControl } from "better-auth/plugins/access";
import { adminAc, defaultStatements, userAc } from "better-auth/plugins/admin/access";
import { describe, expect, it } from "vitest";
import {
  getTenantId,
  type TenantAuthOptions,
  type TenantManagementRequest,
} from "../../../src/index";
import type { Browser } from "../../support/browser";
import { PASSWORD } from "../../support/instance";
import { createStorage, type Store } from "../../support/stores";
import {
  createWorld,
  expectRefused,
  outcome,
  type Person,
  type World,
  type WorldOptions,
} from "../../support/world";

const ac = createAccessControl(defaultStatements);
/** The admin plugin lets all but users do everything, or a part of it; one of them is an operator. */
const roles = {
  user: userAc,
  admin: adminAc,
  operator: ac.newRole(adminAc.statements),
  helpdesk: ac.newRole({ user: ["list", "set-password"] }),
};
const plugins = () => [admin({ ac, roles }) as unknown as BetterAuthPlugin];
const NEW_PASSWORD = "a brand new password";

type Target = { userId: string; sessionToken: string };

/** Everything that an admin endpoint does to a user. */
const ACTS: [path: string, more?: object][] = [
  ["list-user-sessions"],
  ["set-user-password", { newPassword: NEW_PASSWORD }],
  ["set-role", { role: "admin" }],
  ["update-user", { data: { name: "Changed" } }],
  ["ban-user"],
  ["unban-user"],
  ["revoke-user-session"],
  ["revoke-user-sessions"],
  ["impersonate-user"],
  ["remove-user"],
];

const targetOf = ({ id, token }: Person): Target => ({ userId: id, sessionToken: token });
const act = (by: Browser, [path, more]: (typeof ACTS)[number], target: Target) =>
  by.post(`/admin/${path}`, { ...target, ...more });
const listed = async (by: Browser) => {
  const { data } = await by.get<{ users: { tenantId: string | null }[] }>("/admin/list-users");
  return [...new Set(data?.users?.map(({ tenantId }) => tenantId))];
};

const NEW = { name: "New", email: "new@example.com", password: PASSWORD };

/** All that a platform user could try at Acme changes nothing there, and shows nothing. */
async function expectPlatformOnly(world: World, caller: Person) {
  const victim = await world.as("jane", "acme");
  const there = world.at("acme", caller);
  await world.unchanged(async () => {
    for (const one of ACTS) {
      for (const by of [caller.fork(), there]) {
        const { data } = await act(by, one, targetOf(victim));
        expect(JSON.stringify(data), one[0]).not.toContain(victim.token);
      }
    }
    expect((await caller.get("/admin/get-user", { query: { id: victim.id } })).status).not.toBe(
      200,
    );
    expect(outcome(await there.post("/admin/create-user", NEW))).toEqual([401, undefined]);
    expect((await there.get("/admin/list-users")).status).toBe(401);
  });
  expect(await listed(caller)).toEqual([null]);
  expect(await world.whoIs(victim)).toMatchObject({ id: victim.id });
}

const storage = () => createStorage();
const STORES: Store[] = [
  { name: "the database" },
  { name: "a storage", storage },
  { name: "a cookie", session: { cookieCache: { enabled: true, maxAge: 300 } } },
];

describe.each(STORES)("adminRoles: sessions in $name", (store) => {
  it("a permission of the admin plugin is for the platform, and an operator's for all tenants", async () => {
    const tenant = { adminRoles: ["operator"] };
    const world = await createWorld({ plugins: plugins(), store, tenant });
    const plain = await world.as("jane", "platform");
    for (const role of ["helpdesk", "admin", "user,helpdesk,admin"]) {
      await expectPlatformOnly(world, await world.join("platform", role));
    }
    // Controls: what they may do at home, and what an operator may do.
    const helpdesk = await world.join("platform", "helpdesk");
    const password = ["set-user-password", { newPassword: NEW_PASSWORD }] as (typeof ACTS)[number];
    expect((await act(helpdesk, password, targetOf(plain))).status).toBe(200);
    const operator = await world.join("platform", "operator");
    expect(await listed(operator)).toEqual(expect.arrayContaining([null, world.ids.acme]));
    for (const one of ACTS) {
      for (const [index, where] of [null, "acme"].entries()) {
        const email = `${one[0]}-${index}@example.com`;
        const target = targetOf(await world.signUp("acme", email));
        const { status } = await act(world.at(where, operator), one, target);
        expect([one[0], where, status]).toEqual([one[0], where, 200]);
      }
    }
  });

  it("a role that was taken away counts no more, whatever the session says", async () => {
    const world = await createWorld({ plugins: plugins(), store });
    const operator = await world.operator();
    await world.as("jane", "acme");
    expect(await listed(operator)).toContain(world.ids.acme);
    // Past better-auth, which would write it into the session as well.
    await world.setRole(operator.id, "helpdesk");
    expect(await listed(operator)).not.toContain(world.ids.acme);
    expect((await world.at("acme", operator).get("/admin/list-users")).status).toBe(401);
    // Nor does one who is banned.
    await world.setRole(operator.id, "admin");
    expect(await listed(operator)).toContain(world.ids.acme);
    const { query, quote } = world.database;
    await query(`update ${quote("user")} set banned = ? where id = ?`, [1, operator.id]);
    expect(await listed(operator)).not.toContain(world.ids.acme);
  });
});

it("nor does one in the admin plugin's own adminUserIds or adminRoles; adminUserIds of ours do", async () => {
  const adminUserIds: string[] = [];
  const own: string[] = [];
  const options = { ac, roles, adminUserIds, adminRoles: ["helpdesk"] };
  const world = await createWorld({
    plugins: [admin(options) as unknown as BetterAuthPlugin],
    tenant: { adminUserIds: own },
  });
  const jane = await world.as("jane", "platform");
  adminUserIds.push(jane.id);
  await expectPlatformOnly(world, jane);
  await expectPlatformOnly(world, await world.join("platform", "helpdesk"));
  own.push(jane.id);
  expect(await listed(jane)).toContain(world.ids.acme);
});

type CanManage = NonNullable<TenantAuthOptions["canManageTenants"]>;
type Asked = TenantManagementRequest & { scope: string | null; headers: Headers | undefined };

async function createAsking(
  answer: (...call: Parameters<CanManage>) => unknown,
  more: WorldOptions = {},
) {
  const asked: Asked[] = [];
  const canManageTenants: CanManage = async (ctx, request) => {
    asked.push({ ...request, scope: getTenantId(), headers: ctx.headers });
    return (await answer(ctx, request)) as boolean;
  };
  const world = await createWorld({
    plugins: plugins(),
    ...more,
    tenant: { canManageTenants },
  });
  return Object.assign(world, { asked });
}

describe("canManageTenants decides about user:manage", () => {
  it.each(STORES)("once for a request, with the tenant and the session: $name", async (store) => {
    const world = await createAsking(() => true, { store });
    const { asked } = world;
    // A role with permissions, which adminRoles do not know.
    const caller = await world.join("platform", "operator");
    const jane = await world.as("jane", "acme");
    const list = ["list-user-sessions"] as (typeof ACTS)[number];
    const there = world.at("acme", caller);
    for (const [run, tenantId] of [
      [() => caller.get("/admin/list-users"), undefined],
      [() => there.get("/admin/list-users"), world.ids.acme],
      [() => there.post("/admin/create-user", NEW), world.ids.acme],
      [() => act(caller, list, targetOf(jane)), world.ids.acme],
      [() => act(there, list, targetOf(jane)), world.ids.acme],
      [() => act(caller, ["revoke-user-session"], targetOf(jane)), world.ids.acme],
    ] as const) {
      asked.length = 0;
      const { status, data } = await run();
      expect(status, JSON.stringify(data)).toBe(200);
      expect(asked).toHaveLength(1);
      expect(asked[0]).toMatchObject({
        action: "user:manage",
        tenantId,
        scope: null,
        session: {
          session: { token: caller.token, userId: caller.id, tenantId: null },
          user: { id: caller.id, email: caller.email, role: "operator", tenantId: null },
        },
      });
      expect(asked[0]?.session?.session.expiresAt).toBeInstanceOf(Date);
      expect(asked[0]?.headers?.get("cookie")).toContain(caller.token);
    }
  });

  it("is not asked about a tenant's own users, about oneself, or without a session", async () => {
    const world = await createAsking(() => true);
    const caller = await world.join("platform", "operator");
    const own = await world.as("admin", "acme");
    const jane = await world.as("jane", "acme");
    const permissions = { user: ["list"] };
    for (const run of [
      () => own.get("/admin/list-users"),
      () => act(own, ["set-user-password", { newPassword: NEW_PASSWORD }], targetOf(jane)),
      () => caller.post("/admin/has-permission", { permissions }),
      () => act(caller, ["ban-user"], { userId: "nobody", sessionToken: "" }),
      () => world.at("acme").get("/admin/list-users"),
      () => caller.get("/list-sessions"),
    ]) {
      await run();
      expect(world.asked).toEqual([]);
    }
  });

  it.each<[what: string, answer: (...call: Parameters<CanManage>) => unknown]>([
    ["false", () => false],
    ["another action", (_, { action }) => action === "tenant:list"],
    ["something else than true", () => ({ allowed: true })],
    ["an error", () => Promise.reject(new Error("the policy server is down"))],
    [
      "an error at once",
      () => {
        throw new Error("the policy server is down");
      },
    ],
  ])("%s leaves the platform, whatever adminRoles say", async (what, answer) => {
    const world = await createAsking(answer);
    const caller = await world.operator();
    await expectPlatformOnly(world, caller);
    const isLogged = world.logs.join().includes("canManageTenants failed");
    expect(isLogged).toBe(what.startsWith("an error"));
  });

  it("one tenant and no other, by the tenant that it is asked about", async () => {
    const world: World = await createAsking((_, { tenantId }) => tenantId === world.ids.acme);
    const caller = await world.join("platform", "operator");
    const [acme, globex] = [await world.as("jane", "acme"), await world.as("jane", "globex")];
    const name = ["update-user", { data: { name: "Changed" } }] as (typeof ACTS)[number];
    expect((await act(caller, name, targetOf(acme))).status).toBe(200);
    const refused = await world.unchanged(() => act(caller, name, targetOf(globex)));
    expectRefused(refused, 404, "USER_NOT_FOUND");
    expect(await listed(caller)).toEqual([null]);
    expect(await listed(world.at("acme", caller))).toEqual([world.ids.acme]);
  });

  it("may ask for the session itself, in every way, and look at the platform", async () => {
    const seen: unknown[] = [];
    const world: World = await createAsking(async (ctx, { session }) => {
      seen.push((await getAuthoritativeSessionFromCtx(ctx as GenericEndpointContext))?.user.id);
      const { headers } = ctx;
      seen.push((await world.api.getSession({ headers: new Headers(headers) }))?.user.id);
      seen.push(await ctx.context.adapter.count({ model: "user" }));
      return session?.user.role === "operator";
    });
    const caller = await world.join("platform", "operator");
    await world.as("jane", "acme");
    expect((await caller.get<{ total: number }>("/admin/list-users")).data.total).toBe(2);
    expect(seen).toEqual([caller.id, caller.id, 1]);
  });
});
