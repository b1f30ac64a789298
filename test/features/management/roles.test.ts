import type { BetterAuthPlugin } from "better-auth";
import { createAuthMiddleware, getSessionFromCtx } from "better-auth/api";
import { admin, bearer } from "better-auth/plugins";
import { createAccessControl } from "better-auth/plugins/access";
import { adminAc, defaultStatements } from "better-auth/plugins/admin/access";
import { describe, expect, it } from "vitest";
import { MANAGEMENT_ACTIONS } from "../../../src/features/management/options";
import { runInTenant, type TenantAuthOptions } from "../../../src/index";
import type { Answer, Browser } from "../../support/browser";
import { ID_IS_REFUSED } from "../../support/differences";
import { newcomer as fresh } from "../../support/instance";
import { createStorage } from "../../support/stores";
import {
  createWorld,
  outcome,
  type Person,
  shareWorld,
  type WorldOptions,
} from "../../support/world";

const REFUSED = [403, "ROLE_NOT_ALLOWED"];
const NEW_PASSWORD = "a brand new password";
const tenantRoles: TenantAuthOptions["tenantRoles"] = {
  admin: ["tenant:get"],
  reader: ["tenant:get"],
  owner: ["tenant:get", "tenant:update", "policy:update"],
};
const tenant = { tenantRoles };
const address = () => `${crypto.randomUUID()}@example.com`;

/** Every way to give a role by an endpoint of the admin plugin. */
const GIVING: [
  what: string,
  give: (by: Browser, role: unknown, userId: string) => Promise<Asked>,
][] = [
  ["set-role", (by, role, userId) => by.post("/admin/set-role", { userId, role })],
  [
    "update-user",
    (by, role, userId) => by.post("/admin/update-user", { userId, data: { name: "X", role } }),
  ],
  ["create-user", (by, role) => by.post("/admin/create-user", { ...fresh(), role })],
  [
    "create-user by its data",
    (by, role) => by.post("/admin/create-user", { ...fresh(), data: { role } }),
  ],
];

type Asked = Answer<unknown>;

/** Every way to become another user, or to take their role away. */
const TAKING: [what: string, take: (by: Browser, userId: string) => Promise<Asked>][] = [
  [
    "set-user-password",
    (by, userId) => by.post("/admin/set-user-password", { userId, newPassword: NEW_PASSWORD }),
  ],
  ["impersonate-user", (by, userId) => by.post("/admin/impersonate-user", { userId })],
  ["list-user-sessions", (by, userId) => by.post("/admin/list-user-sessions", { userId })],
  [
    "update-user, its address",
    (by, userId) => by.post("/admin/update-user", { userId, data: { email: address() } }),
  ],
  ["set-role", (by, userId) => by.post("/admin/set-role", { userId, role: "user" })],
];

describe("in a tenant, a role that can do more than the caller's own", () => {
  const world = shareWorld({ tenant });

  describe.each(GIVING)("%s", (_, give) => {
    it("is not given to the caller or to another user, however it is spelled", async () => {
      const by = await world.as("admin", "acme");
      const { id } = await world.as("jane", "acme");
      for (const role of ["owner", "user,owner", "user, owner ", ["admin", "owner"], ["owner,"]]) {
        for (const userId of [id, by.id]) {
          const answer = await world.unchanged(() => give(by, role, userId));
          expect(outcome(answer), JSON.stringify(role)).toEqual(REFUSED);
        }
      }
      // Undescribed: only a user who has it gives it.
      expect(outcome(await world.unchanged(() => give(by, "boss", id)))).toEqual(REFUSED);
    });

    it("control: one that cannot is, and those who can do more give it", async () => {
      const by = await world.as("admin", "acme");
      const greater = await world.join("acme", "admin,owner");
      for (const [caller, role] of [
        [by, "user"],
        [by, ["user", "admin"]],
        [by, "reader"],
        [greater, "owner"],
        [await world.join("acme", "admin,boss"), "boss"],
      ] as const) {
        const { id } = await world.signUp("acme", address());
        const { status, data } = await give(caller, role, id);
        expect(status, JSON.stringify(data)).toBe(200);
        expect(JSON.stringify(data)).toContain(`"role":"${[role].flat().join()}"`);
      }
    });

    it("control: operators give it, visiting or not", async () => {
      for (const where of [null, "acme"]) {
        const operator = world.at(where, await world.operator());
        const { id } = await world.signUp("acme", address());
        expect((await give(operator, "owner", id)).status).toBe(200);
      }
    });
  });

  it.each(TAKING)("is not taken over by %s", async (_, take) => {
    const [by, owner] = [await world.as("admin", "acme"), await world.join("acme", "owner")];
    const answer = await world.unchanged(() => take(by.fork(), owner.id));
    expect(outcome(answer)).toEqual(REFUSED);
    expect(JSON.stringify(answer.data)).not.toContain(owner.token);
    expect((await world.signIn("acme", owner.email)).status).toBe(200);
  });

  it.each(TAKING)(
    "control: %s, of those who can do no more, and by an operator",
    async (_, take) => {
      const by = await world.as("admin", "acme");
      const greater = await world.join("acme", "admin,owner");
      const operator = await world.operator();
      for (const [caller, role] of [
        [by, "user"],
        [by, "reader"],
        [greater, "owner"],
        [operator, "owner"],
        [world.at("acme", operator), "owner"],
      ] as const) {
        const { id } = await world.join("acme", role);
        const { status, data } = await take(caller.fork(), id);
        expect(status, JSON.stringify(data)).toBe(200);
      }
      // And of oneself.
      const own = await world.join("acme", "admin");
      expect((await take(own.fork(), own.id)).code).not.toBe("ROLE_NOT_ALLOWED");
    },
  );

  it("is banned, signed out and removed all the same: that gives its rights to no one", async () => {
    const by = await world.as("admin", "acme");
    const { id: userId, token: sessionToken } = await world.join("acme", "owner");
    for (const path of ["revoke-user-session", "ban-user", "unban-user", "revoke-user-sessions"]) {
      const { status } = await by.post(`/admin/${path}`, { userId, sessionToken });
      expect([path, status]).toEqual([path, 200]);
    }
    expect((await by.post("/admin/remove-user", { userId })).status).toBe(200);
  });

  it("is not what a user says of themselves, who has the default one", async () => {
    const body = { ...fresh(), role: "owner" };
    const signedUp = await world.at("acme").post("/sign-up/email", body);
    expect(JSON.stringify(signedUp.data)).not.toContain("owner");
    const jane = await world.signUp("acme", address());
    const changed = await jane.post("/update-user", { role: "owner" });
    expect(changed.status).toBe(400);
    const users = await world.rowsIn("acme", "user");
    expect(users.find(({ id }) => id === jane.id)?.role).toBe("user");
  });

  it("is given by the server's own code, in a tenant", async () => {
    type Api = { createUser(input: { body: object }): Promise<{ user: { role: string } }> };
    const { createUser } = world.api as unknown as Api;
    const made = await runInTenant(world.ids.acme, () =>
      createUser({ body: { ...fresh(), role: "owner" } }),
    );
    expect(made.user.role).toBe("owner");
  });

  it("is not taken over by a first password either, where the user has none", async () => {
    const operator = world.at("acme", await world.operator());
    const body = { name: "New", email: address(), role: "owner" };
    const { data } = await operator.post<{ user: { id: string } }>("/admin/create-user", body);
    const by = await world.as("admin", "acme");
    const change = { userId: data.user.id, newPassword: NEW_PASSWORD };
    const answer = await world.unchanged(() => by.post("/admin/set-user-password", change));
    expect(outcome(answer)).toEqual(REFUSED);
    expect((await operator.post("/admin/set-user-password", change)).status).toBe(200);
    expect((await world.signIn("acme", body.email, NEW_PASSWORD)).status).toBe(200);
  });
});

it("the application's own hooks around an admin endpoint give every role", async () => {
  const given: string[] = [];
  let chosen = "";
  const giving = (name: string) =>
    createAuthMiddleware(async (ctx) => {
      await getSessionFromCtx(ctx);
      const role = `${name}-of-hook`;
      await ctx.context.internalAdapter.updateUser(chosen, { role });
      given.push(role);
    });
  const matcher = ({ path }: { path?: string }) => path === "/admin/set-user-password";
  const [before, after] = [giving("before"), giving("after")].map((handler) => ({
    matcher,
    handler,
  }));
  const hooks = { before: [before], after: [after] } as BetterAuthPlugin["hooks"];
  const world = await createWorld({ plugins: [{ id: "promoting", hooks }] });
  const [boss, jane] = [await world.join("acme", "admin"), await world.join("acme", "user")];
  chosen = (await world.join("acme", "user")).id;
  const change = { userId: jane.id, newPassword: NEW_PASSWORD };
  expect((await boss.post("/admin/set-user-password", change)).status).toBe(200);
  expect(given).toEqual(["before-of-hook", "after-of-hook"]);
});

it("the caller's role is the stored one, whatever the session says", async () => {
  const store = { name: "a storage", storage: () => createStorage() };
  const world = await createWorld({ tenant, store });
  const by = await world.join("acme", "admin,owner");
  const { id: userId } = await world.signUp("acme", address());
  const give = () => by.post("/admin/set-role", { userId, role: "owner" });
  expect((await give()).status).toBe(200);
  // Past better-auth, which would write it into the session as well.
  await world.setRole(by.id, "admin");
  expect(outcome(await give())).toEqual(REFUSED);
});

const ac = createAccessControl({ ...defaultStatements, project: ["create", "delete"] } as const);
const roles = {
  user: ac.newRole({ project: ["create"] }),
  support: ac.newRole({ user: ["create", "set-password", "set-role"] }),
  admin: ac.newRole({ ...adminAc.statements, project: ["create", "delete"] }),
};
const withRoles = (more: object = {}) =>
  admin({ ac, roles, ...more }) as unknown as BetterAuthPlugin;

it("what the admin plugin's roles can do counts; the default role is everyone's", async () => {
  const adminUserIds: string[] = [];
  const world = await createWorld({ plugins: [withRoles({ adminUserIds })] });
  const [support, boss] = [await world.join("acme", "support"), await world.join("acme", "admin")];
  const [jane, chosen] = [await world.join("acme", "user"), await world.join("acme", "user")];
  adminUserIds.push(chosen.id);
  const setRole = (by: Browser, { id }: Person, role: string) =>
    by.post("/admin/set-role", { userId: id, role });
  const setPassword = (by: Browser, { id }: Person) =>
    by.post("/admin/set-user-password", { userId: id, newPassword: NEW_PASSWORD });
  for (const answer of [
    await setRole(support, support, "admin"),
    await setPassword(support, boss),
    // To the admin plugin, this one may do everything.
    await setPassword(support, chosen),
  ]) {
    expect(outcome(answer)).toEqual(REFUSED);
  }
  for (const answer of [
    await setPassword(support, jane),
    await support.post("/admin/create-user", fresh()),
    await setRole(support, jane, "support"),
    await setPassword(boss, support),
    await setRole(chosen, jane, "admin"),
    await setPassword(chosen, boss),
  ]) {
    expect(answer.status, JSON.stringify(answer.data)).toBe(200);
  }
  // A user without the permission learns nothing about roles.
  const plain = await world.join("acme", "user");
  for (const target of [boss, plain]) {
    const { code } = await setPassword(plain, target);
    expect(code).toBe("YOU_ARE_NOT_ALLOWED_TO_SET_USERS_PASSWORD");
  }
});

it("the admin plugin's own role may be given where it is given no roles, and another may not", async () => {
  const world = await createWorld({ plugins: [admin({ defaultRole: "member" })] });
  const [boss, jane] = [await world.join("acme", "admin"), await world.join("acme", "member")];
  const give = (role: string) => boss.post("/admin/set-role", { userId: jane.id, role });
  expect(outcome(await give("owner"))).toEqual(REFUSED);
  for (const role of ["user", "member", "admin"]) expect((await give(role)).status, role).toBe(200);
});

it.each([
  ["the user is promoted", "jane", { role: "owner" }],
  ["the administrator is demoted", "admin", { role: "user" }],
  ["the administrator is banned", "admin", { banned: true }],
])("in a tenant, impersonation ends when %s", async (_, who, change) => {
  for (const auth of [{}, { session: { cookieCache: { enabled: true } } }]) {
    const world = await createWorld({ tenant, auth, plugins: [bearer()] });
    const people = {
      jane: await world.join("acme", "reader"),
      admin: await world.as("admin", "acme"),
    };
    const [acting, other] = [people.admin.fork(), (await world.join("acme", "admin")).fork()];
    for (const [by, { id: userId }] of [
      [acting, people.jane],
      [other, await world.as("bob", "acme")],
    ] as const) {
      expect((await by.post("/admin/impersonate-user", { userId })).status).toBe(200);
      expect(await world.whoIs(by)).toMatchObject({ id: userId });
    }
    await world.write("user", change, { id: people[who as "jane"].id });
    const renamed = await acting.fork().post("/update-user", { name: "Renamed" });
    expect(renamed.status).toBe(401);
    expect(await world.whoIs(acting)).toBe(null);
    expect(await world.whoIs(other)).not.toBe(null);
  }
});

describe("on the platform, an operator is safe from users who are none", () => {
  const platformRoles = { ...roles, operator: ac.newRole({ project: ["create"] }) };
  const options = (tenant: TenantAuthOptions): WorldOptions => ({
    plugins: [withRoles({ roles: platformRoles, allowImpersonatingAdmins: true }), bearer()],
    tenant,
  });
  const asking: TenantAuthOptions["canManageTenants"] = (_, { session }) => {
    const { tenantId, role = "" } = session?.user ?? {};
    return !tenantId && String(role).split(",").includes("operator");
  };

  it.each<[by: string, tenant: TenantAuthOptions]>([
    ["adminRoles", { adminRoles: ["operator"] }],
    ["canManageTenants", { canManageTenants: asking }],
  ])("by %s", async (_, tenant) => {
    const world = await createWorld(options(tenant));
    const boss = await world.join("platform", "admin");
    const operator = await world.join("platform", "operator");
    const { id } = await world.as("jane", "platform");
    for (const [what, take] of TAKING) {
      const answer = await world.unchanged(() => take(boss.fork(), operator.id));
      expect([what, ...outcome(answer)]).toEqual([what, ...REFUSED]);
    }
    for (const [what, give] of GIVING) {
      for (const role of ["operator", ["user", "operator"]]) {
        const answer = await world.unchanged(() => give(boss, role, id));
        expect([what, ...outcome(answer)]).toEqual([what, ...REFUSED]);
      }
    }
    const own = ID_IS_REFUSED ? {} : { id: "x" };
    const body = { userId: id, data: { role: "operator", tenantId: world.ids.acme, ...own } };
    expect(outcome(await boss.post("/admin/update-user", body))).toEqual(REFUSED);
    // Controls: among those who are none, and by an operator.
    const both = await world.join("platform", "admin,operator");
    for (const [what, take] of TAKING) {
      const target = await world.join("platform", "support");
      expect([what, (await take(boss.fork(), target.id)).status]).toEqual([what, 200]);
      const other = await world.join("platform", "operator");
      expect([what, (await take(both.fork(), other.id)).status]).toEqual([what, 200]);
    }
    for (const [what, give] of GIVING) {
      expect([what, (await give(boss, "support", id)).status]).toEqual([what, 200]);
      expect([what, (await give(both, "operator", id)).status]).toEqual([what, 200]);
      expect((await both.post("/admin/set-role", { userId: id, role: "user" })).status).toBe(200);
    }
    // A caller who acts as an operator is none.
    const acting = both.fork();
    const other = await world.join("platform", "admin,operator");
    const { id: userId } = other;
    expect((await acting.post("/admin/impersonate-user", { userId })).status).toBe(200);
    const given = await acting.post("/admin/set-role", { userId: id, role: "operator" });
    expect(outcome(given)).toEqual(REFUSED);
  });

  it("also from a user who impersonated them before", async () => {
    for (const rule of [{ adminRoles: ["operator"] }, { canManageTenants: asking }]) {
      const world = await createWorld(options(rule));
      const [boss, other] = [
        await world.join("platform", "admin"),
        await world.join("platform", "admin,operator"),
      ];
      const { id: userId } = await world.as("jane", "platform");
      const [acting, allowed] = [boss.fork(), other.fork()];
      for (const browser of [acting, allowed]) {
        expect((await browser.post("/admin/impersonate-user", { userId })).status).toBe(200);
      }
      expect(await world.whoIs(acting)).toMatchObject({ id: userId });
      await world.setRole(userId, "operator");
      expect(await world.whoIs(acting)).toBe(null);
      expect(await world.whoIs(allowed)).toMatchObject({ id: userId });
    }
  });

  it("also if canManageTenants allows them every action", async () => {
    let allowed: string = "";
    const canManageTenants: TenantAuthOptions["canManageTenants"] = (_, { action, session }) =>
      session?.user.role === "operator" && action === allowed;
    const world = await createWorld(options({ canManageTenants }));
    const boss = await world.join("platform", "admin");
    const operator = await world.join("platform", "operator");
    const newPassword = NEW_PASSWORD;
    const setPassword = (userId: string) =>
      boss.post("/admin/set-user-password", { userId, newPassword });
    const promote = () => boss.post("/admin/set-role", { userId: boss.id, role: "operator" });
    const { id } = await world.as("jane", "platform");
    for (allowed of MANAGEMENT_ACTIONS) {
      expect([allowed, ...outcome(await setPassword(operator.id))]).toEqual([allowed, ...REFUSED]);
      expect([allowed, ...outcome(await promote())]).toEqual([allowed, ...REFUSED]);
      expect([allowed, (await setPassword(id)).status]).toEqual([allowed, 200]);
    }
    // Control: where the role may do nothing, it is like any other.
    allowed = "";
    expect((await setPassword(operator.id)).status).toBe(200);
  });

  it("where canManageTenants fails for the user in question, it is taken for one", async () => {
    const canManageTenants: TenantAuthOptions["canManageTenants"] = ({ headers }) => {
      if (!headers?.has("cookie")) throw new Error("no cookie");
      return false;
    };
    const world = await createWorld(options({ canManageTenants }));
    const boss = await world.join("platform", "admin");
    const { id: userId } = await world.as("jane", "platform");
    const answer = await boss.post("/admin/list-user-sessions", { userId });
    expect(outcome(answer)).toEqual(REFUSED);
  });
});
