import { memoryAdapter } from "better-auth/adapters/memory";
import { APIError, createAuthEndpoint } from "better-auth/api";
import { describe, expect, it } from "vitest";
import { runInTenant } from "../../src/index";
import { mapStorage } from "../sessions/stores";
import { createInstance, type InstanceOptions, PASSWORD } from "../support/instance";

const STORES = ["the database", "secondary storage"] as const;

async function createWorld(store: (typeof STORES)[number], options: InstanceOptions = {}) {
  const instance = await createInstance({
    tenant: { tenantRoles: { admin: ["tenant:get"], owner: [] } },
    ...options,
    auth: {
      user: { deleteUser: { enabled: true } },
      ...(store === "secondary storage" && { secondaryStorage: mapStorage().storage }),
      ...options.auth,
    },
  });
  const tenant = await instance.createTenant();
  const join = async (role: string, tenantId = tenant.id) => {
    const { email, user } = await instance.signUp(tenantId);
    await runInTenant(tenantId, () =>
      instance.context.internalAdapter.updateUser(user.id, { role }),
    );
    // A session that is kept outside the database knows the role from when it was made.
    const browser = instance.browser({ "x-tenant-id": tenantId });
    await browser.post("/sign-in/email", { email, password: PASSWORD });
    return { email, id: user.id, browser };
  };
  const roleOf = async (id: string) =>
    (await instance.database.query('select role from "user" where id = ?', [id]))[0]?.role;
  return { instance, tenant, join, roleOf };
}

describe.each(STORES)("the last administrator of a tenant; sessions in %s", (store) => {
  it("cannot demote, ban or remove themselves away, by no endpoint", async () => {
    const { instance, join, roleOf } = await createWorld(store);
    const admin = await join("user,admin");
    const other = await instance.createTenant();
    await join("admin", other.id);
    await join("user");
    const calls: [string, object][] = [
      ["/admin/set-role", { userId: admin.id, role: "user" }],
      ["/admin/update-user", { userId: admin.id, data: { role: "user" } }],
      ["/admin/update-user", { userId: admin.id, data: { role: "user", name: "X" } }],
      ["/delete-user", { password: PASSWORD }],
    ];
    for (const [path, body] of calls) {
      const answer = await admin.browser.post(path, body);
      expect([path, answer.status, answer.code]).toEqual([path, 409, "LAST_ADMIN"]);
    }
    expect(await roleOf(admin.id)).toBe("user,admin");
    // Nothing is gone: sessions, accounts, the row.
    expect((await admin.browser.get("/get-session")).data).not.toBeNull();
    const again = instance.browser({ "x-tenant-id": await tenantOf(admin) });
    const signIn = await again.post("/sign-in/email", { email: admin.email, password: PASSWORD });
    expect(signIn.status).toBe(200);

    async function tenantOf({ id }: { id: string }): Promise<string> {
      const [row] = await instance.database.query('select "tenantId" from "user" where id = ?', [
        id,
      ]);
      return String(row?.tenantId);
    }
  });

  it("can as soon as there is another, who can sign in", async () => {
    const { join, roleOf } = await createWorld(store);
    const first = await join("admin");
    const second = await join("owner,admin");
    const ban = { userId: second.id, banReason: "gone" };
    expect((await first.browser.post("/admin/ban-user", ban)).status).toBe(200);
    const demote = { userId: first.id, role: "user" };
    const refused = await first.browser.post("/admin/set-role", demote);
    expect([refused.status, refused.code]).toEqual([409, "LAST_ADMIN"]);
    await first.browser.post("/admin/unban-user", { userId: second.id });
    expect((await first.browser.post("/admin/set-role", demote)).status).toBe(200);
    expect(await roleOf(first.id)).toBe("user");
  });

  it("two who demote, ban or remove each other at once leave one", async () => {
    for (const path of ["set-role", "ban-user", "remove-user"]) {
      const { instance, tenant, join } = await createWorld(store);
      const [a, b] = [await join("admin"), await join("admin")];
      const take = (from: typeof a, whom: typeof a) =>
        from.browser.post(`/admin/${path}`, { userId: whom.id, role: "user" });
      const answers = await Promise.all([take(a, b), take(b, a)]);
      expect([path, answers.filter(({ status }) => status === 200).length]).toEqual([path, 1]);
      const left = `role = 'admin' and coalesce(banned, 0) = 0 and "tenantId" = ?`;
      expect([path, await instance.rows("user", left, [tenant.id])]).toEqual([path, 1]);
    }
  });

  it("two who delete themselves at once leave one, with an account", async () => {
    const { instance, tenant, join } = await createWorld(store);
    const people = [await join("admin"), await join("admin"), await join("admin")];
    const answers = await Promise.all(
      people.map(({ browser }) => browser.post("/delete-user", { password: PASSWORD })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 409]);
    const left = '"tenantId" = ?';
    expect(await instance.rows("user", left, [tenant.id])).toBe(1);
    expect(await instance.rows("account", left, [tenant.id])).toBe(1);
  });

  it("operators, the server and the tenant's end take them all the same", async () => {
    const { instance, tenant, join, roleOf } = await createWorld(store);
    const admin = await join("admin");
    const operator = instance.browser();
    const { email } = await instance.operator();
    await operator.post("/sign-in/email", { email, password: PASSWORD });
    const demote = { userId: admin.id, role: "user" };
    expect((await operator.post("/admin/set-role", demote)).status).toBe(200);
    expect(await roleOf(admin.id)).toBe("user");
    const next = await join("admin");
    await runInTenant(tenant.id, () => instance.context.internalAdapter.deleteUser(next.id));
    expect(await instance.rows("user", "id = ?", [next.id])).toBe(0);
    await join("admin");
    await instance.api.deleteTenant({ body: { tenantId: tenant.id } });
    expect(await instance.rows("user", '"tenantId" = ?', [tenant.id])).toBe(0);
  });
});

it("holds inside of a transaction of a plugin's own, which is rolled back as a whole", async () => {
  const demoter = {
    id: "demoter",
    endpoints: {
      demote: createAuthEndpoint("/demoter/demote", { method: "POST" }, async (ctx) => {
        const { id, fails } = ctx.query as { id: string; fails?: string };
        const where = [{ field: "id", value: id }];
        await ctx.context.adapter.transaction(async (inner) => {
          await inner.update({ model: "user", where, update: { role: "user" } });
          if (fails) throw new APIError("CONFLICT", { code: "CHANGED_MY_MIND" });
        });
        return ctx.json({ ok: true });
      }),
    },
  };
  const { join, roleOf } = await createWorld("the database", { plugins: [demoter] });
  const [first, second] = [await join("admin"), await join("admin")];
  // Without a name: the session says which tenant it is, and is first asked for inside.
  const browser = first.browser.fork({});
  const demote = (id: string, fails = "") =>
    browser.post(`/demoter/demote?id=${id}&fails=${fails}`);
  expect((await demote(second.id, "yes")).code).toBe("CHANGED_MY_MIND");
  expect(await roleOf(second.id)).toBe("admin");
  expect((await demote(second.id)).status).toBe(200);
  const refused = await demote(first.id);
  expect([refused.status, refused.code]).toEqual([409, "LAST_ADMIN"]);
  expect([await roleOf(first.id), await roleOf(second.id)]).toEqual(["admin", "user"]);
});

it("nothing is held back where the application names no roles", async () => {
  const { join, roleOf } = await createWorld("the database", { tenant: {} });
  const admin = await join("admin");
  const demote = { userId: admin.id, role: "user" };
  expect((await admin.browser.post("/admin/set-role", demote)).status).toBe(200);
  expect(await roleOf(admin.id)).toBe("user");
});

it("holds in a database without transactions, in one process", async () => {
  const tables: Record<string, Record<string, unknown>[]> = {};
  for (const name of ["user", "session", "account", "verification", "tenant"]) tables[name] = [];
  tables.tenantOauthConfig = [];
  const { join } = await createWorld("the database", {
    migrate: false,
    auth: { user: { deleteUser: { enabled: true } }, database: memoryAdapter(tables) },
  });
  const [a, b] = [await join("admin"), await join("admin")];
  const take = (from: typeof a, whom: typeof a) =>
    from.browser.post("/admin/set-role", { userId: whom.id, role: "user" });
  const answers = await Promise.all([take(a, b), take(b, a)]);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  expect(tables.user?.filter(({ role }) => role === "admin")).toHaveLength(1);
});
