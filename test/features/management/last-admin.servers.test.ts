import { APIError, createAuthEndpoint } from "better-auth/api";
import { describe, expect, it } from "vitest";
import { runInTenant } from "../../../src/index";
import type { Browser } from "../../support/browser";
import { PASSWORD } from "../../support/instance";
import { createWorld, outcome, type Person, type WorldOptions } from "../../support/world";

const LAST = [409, "LAST_ADMIN"];
const tenant: WorldOptions["tenant"] = { tenantRoles: { admin: ["tenant:get"], owner: [] } };

async function start(options: WorldOptions = {}) {
  const world = await createWorld({ tenant, ...options });
  const roleOf = async (id: string) =>
    (await world.rowsIn("acme", "user")).find((user) => user.id === id)?.role;
  return { ...world, roleOf };
}

const demote = (by: Browser, { id }: Person) =>
  by.post("/admin/set-role", { userId: id, role: "user" });
const deleteOneself = (by: Browser) => by.post("/delete-user", { password: PASSWORD });

describe("the last administrator of a tenant", () => {
  it("cannot demote, ban or remove themselves away, by no endpoint", async () => {
    const { join, roleOf, whoIs, signIn } = await start();
    const admin = await join("acme", "user,admin");
    await join("globex", "admin");
    await join("acme", "user");
    const userId = admin.id;
    const kept = { userId, role: ["user", "admin"] };
    expect((await admin.post("/admin/set-role", kept)).status).toBe(200);
    const answers = [
      await demote(admin, admin),
      await admin.post("/admin/update-user", { userId, data: { role: "user", name: "X" } }),
      await deleteOneself(admin),
    ];
    expect(answers.map(outcome)).toEqual(answers.map(() => LAST));
    // Nothing is gone: sessions, accounts, the row.
    expect(await roleOf(userId)).toBe("user,admin");
    expect(await whoIs(admin)).toMatchObject({ id: userId });
    expect((await signIn("acme", admin.email)).status).toBe(200);
  });

  it("can as soon as there is another, who can sign in", async () => {
    const { join, roleOf } = await start();
    const first = await join("acme", "admin");
    const { id: userId } = await join("acme", "owner,admin");
    const ban = await first.post("/admin/ban-user", { userId, banReason: "gone" });
    expect(ban.status).toBe(200);
    expect(outcome(await demote(first, first))).toEqual(LAST);
    await first.post("/admin/unban-user", { userId });
    expect((await demote(first, first)).status).toBe(200);
    expect(await roleOf(first.id)).toBe("user");
  });

  it("operators, the server and the tenant's end take them all the same", async () => {
    const world = await start();
    const admin = await world.join("acme", "admin");
    expect((await demote(await world.operator(), admin)).status).toBe(200);
    expect(await world.roleOf(admin.id)).toBe("user");
    const { id } = await world.join("acme", "admin");
    const { acme: tenantId } = world.ids;
    await runInTenant(tenantId, () => world.context.internalAdapter.deleteUser(id));
    expect(await world.rows("user", "id = ?", [id])).toBe(0);
    await world.join("acme", "admin");
    await world.api.deleteTenant({ body: { tenantId } });
    expect(await world.rowsIn("acme", "user")).toEqual([]);
  });
});

it("holds inside of a transaction of a plugin's own, which is rolled back as a whole", async () => {
  const demoter = {
    id: "demoter",
    endpoints: {
      demote: createAuthEndpoint("/demoter/demote", { method: "POST" }, async (ctx) => {
        const { id, fails, how, bans } = ctx.query as Record<string, string> & { how: "update" };
        const where = [{ field: "id", value: id ?? "" }];
        const update = bans ? { banned: true } : { role: "user" };
        await ctx.context.adapter.transaction(async (inner) => {
          const call = { model: "user", where, update, set: update, increment: {} };
          await inner[how](call);
          if (fails) throw new APIError("CONFLICT", { code: "CHANGED_MY_MIND" });
        });
        return ctx.json({ ok: true });
      }),
    },
  };
  const { join, roleOf } = await start({ plugins: [demoter] });
  const [first, second] = [await join("acme", "admin"), await join("acme", "admin")];
  // Without a name: the session says which tenant it is, and is first asked for inside.
  const ask = (id: string, fails = "", how = "update") =>
    first.fork({}).post(`/demoter/demote?id=${id}&fails=${fails}&how=${how}`);
  expect((await ask(second.id, "yes")).code).toBe("CHANGED_MY_MIND");
  expect(await roleOf(second.id)).toBe("admin");
  expect((await ask(second.id)).status).toBe(200);
  for (const how of "update update&bans=1 updateMany incrementOne delete deleteMany consumeOne".split(
    " ",
  )) {
    expect([how, ...outcome(await ask(first.id, "", how))]).toEqual([how, ...LAST]);
  }
  expect([await roleOf(first.id), await roleOf(second.id)]).toEqual(["admin", "user"]);
});

it("nothing is held back where the application names no roles", async () => {
  const { join, roleOf } = await start({ tenant: {} });
  const admin = await join("acme", "admin");
  expect((await demote(admin, admin)).status).toBe(200);
  expect(await roleOf(admin.id)).toBe("user");
});
