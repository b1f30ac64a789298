import { describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import {
  createWorld,
  ELSEWHERE,
  expectRefused,
  type Place,
  shareWorld,
  type Where,
} from "../support/world";

// The admin plugin is part of every instance.
const world = shareWorld();

const peopleOf = async (place: Place) => ({
  user: await world.as("jane", place),
  admin: await world.as("admin", place),
});

async function listed(browser: Browser) {
  const { data } = await browser.get<{ users: { id: string }[]; total: number }>(
    "/admin/list-users",
  );
  expect(data.total).toBe(data.users.length);
  return data.users.map(({ id }) => id).sort();
}

const usersOf = async (where: Where) =>
  (await world.rowsIn(where, "user")).map(({ id }) => String(id)).sort();

describe("an admin of a tenant", () => {
  it("R3: sees its tenant only, named or not", async () => {
    await world.janes();
    const { admin } = await peopleOf("acme");
    for (const browser of [admin, world.at("platform", admin)]) {
      expect(await listed(browser)).toEqual(await usersOf("acme"));
    }
  });

  it("works on its own people, whose tenant it cannot choose", async () => {
    const { admin } = await peopleOf("acme");
    const { id: userId } = await world.signUp("acme", "bob@example.com");
    const bob = async () => (await world.rowsIn("acme", "user")).find(({ id }) => id === userId);
    expect((await admin.post("/admin/ban-user", { userId })).status).toBe(200);
    expect(await bob()).toMatchObject({ banned: 1 });
    expect((await admin.post("/admin/unban-user", { userId })).status).toBe(200);
    const data = { tenantId: world.ids.globex };
    const body = { name: "New", email: "new@example.com", password: "a brand new password", data };
    const globex = await usersOf("globex");
    const created = await admin.post("/admin/create-user", body);
    expect(created.data).toMatchObject({ user: { tenantId: world.ids.acme } });
    await admin.post("/admin/update-user", { userId, data });
    expect(await usersOf("globex")).toEqual(globex);
    expect(await bob()).toBeDefined();
    const browser = world.at("acme", admin);
    expect((await browser.post("/admin/impersonate-user", { userId })).status).toBe(200);
    expect(await world.whoIs(browser)).toMatchObject({ id: userId, tenantId: world.ids.acme });
    expect((await browser.post("/admin/stop-impersonating")).status).toBe(200);
    expect(await world.whoIs(browser)).toMatchObject({ id: admin.id });
  });
});

describe("an admin of the platform", () => {
  it("sees all, or one tenant when it names one, also with a cookie for each", async () => {
    const perTenant = await createWorld({ tenant: { sessionCookies: "per-tenant" } });
    await perTenant.janes();
    const operator = await world.operator();
    expect(await listed(operator)).toHaveLength(await world.rows("user"));
    for (const place of ["acme", "globex"] as const) {
      expect(await listed(world.at(place, operator))).toEqual(await usersOf(place));
      // Impersonation requires shared cookies: docs/platform.md says so.
      const visitor = perTenant.at(place, await perTenant.operator());
      expect(await listed(visitor)).toHaveLength(1);
    }
  });

  it("visits only with the role: an ordinary user of the platform is nobody there", async () => {
    const { user } = await peopleOf("platform");
    const body = { userId: (await peopleOf("acme")).user.id };
    const visitor = world.at("acme", user);
    for (const [browser, status] of [
      [user, 403],
      [visitor, 401],
    ] as const) {
      expect((await browser.get("/admin/list-users")).status).toBe(status);
      const visit = () => browser.post("/admin/impersonate-user", body);
      expect((await world.unchanged(visit)).status).toBe(status);
    }
  });

  it("naming a tenant, it cannot reach a user of another or of the platform", async () => {
    const browser = world.at("acme", await world.operator());
    for (const place of ELSEWHERE) {
      const body = { userId: (await peopleOf(place)).user.id };
      for (const path of ["/admin/impersonate-user", "/admin/ban-user"]) {
        const refused = await world.unchanged(() => browser.post(path, body));
        expectRefused(refused, 404, "USER_NOT_FOUND");
      }
    }
  });
});
