import { describe, expect, it } from "vitest";
import type { TenantAuthOptions } from "../../src/index";
import { createPlaces, expectRefused, type PLACES, type SessionAnswer } from "./places";

interface UserList {
  users: { id: string; tenantId: string | null }[];
  total: number;
}

/** In each place a user and an admin. The admin plugin is part of every test instance. */
async function createAdminPlaces(tenant: TenantAuthOptions = {}) {
  const places = await createPlaces([], { tenant });
  const settle = async (place: (typeof PLACES)[number]) => {
    const user = await places.signUp(place, "user@example.com");
    const admin = await places.signUp(place, "admin@example.com");
    await places.setRole(admin.user.id, "admin");
    return { user, admin };
  };
  const people = { a: await settle("a"), b: await settle("b"), platform: await settle("platform") };
  return { ...places, people };
}

const idsOf = ({ users }: UserList) => users.map(({ id }) => id).sort();

describe("an admin of a tenant", () => {
  it("R3: sees its tenant only, named or not", async () => {
    const { people } = await createAdminPlaces();
    const { user, admin } = people.a;
    for (const browser of [admin.browser, admin.browser.fork({})]) {
      const { data } = await browser.get<UserList>("/admin/list-users");
      expect(idsOf(data)).toEqual([user.user.id, admin.user.id].sort());
      expect(data.total).toBe(2);
    }
  });

  it("R5: is nobody at B", async () => {
    const { people, naming, unchanged } = await createAdminPlaces();
    const browser = people.a.admin.browser.fork(naming("b"));
    expectRefused(await browser.get("/admin/list-users"), 401);
    const body = { userId: people.b.user.user.id };
    expectRefused(await unchanged(() => browser.post("/admin/ban-user", body)), 401);
    expectRefused(await unchanged(() => browser.post("/admin/impersonate-user", body)), 401);
  });

  it.each(["b", "platform"] as const)("R3: touches nobody on %s by id", async (place) => {
    const { people, unchanged } = await createAdminPlaces();
    const userId = people[place].user.user.id;
    const { token } = people[place].user;
    const calls: [string, Record<string, unknown>][] = [
      ["/admin/ban-user", { userId }],
      ["/admin/unban-user", { userId }],
      ["/admin/impersonate-user", { userId }],
      ["/admin/remove-user", { userId }],
      ["/admin/set-role", { userId, role: "admin" }],
      ["/admin/set-user-password", { userId, newPassword: "a brand new password" }],
      ["/admin/update-user", { userId, data: { name: "Changed" } }],
      ["/admin/revoke-user-sessions", { userId }],
      ["/admin/revoke-user-session", { sessionToken: token }],
      ["/admin/list-user-sessions", { userId }],
    ];
    for (const named of [true, false]) {
      const { browser } = people.a.admin;
      const caller = named ? browser : browser.fork({});
      for (const [path, body] of calls) {
        const answer = await unchanged(() => caller.post(path, body));
        expect(JSON.stringify(answer.data), path).not.toContain("@example.com");
        expect(JSON.stringify(answer.data), path).not.toContain(token);
        if (!/session/.test(path)) expect(answer.status, path).toBe(404);
      }
      const got = await caller.get("/admin/get-user", { query: { id: userId } });
      expectRefused(got, 404, "USER_NOT_FOUND");
    }
  });

  it("works on its own people", async () => {
    const { people, rows, ids, whoIs } = await createAdminPlaces();
    const { browser } = people.a.admin;
    const userId = people.a.user.user.id;
    expect((await browser.post("/admin/ban-user", { userId })).status).toBe(200);
    expect(await rows("user", "banned = 1 and id = ?", [userId])).toBe(1);
    expect((await browser.post("/admin/unban-user", { userId })).status).toBe(200);
    const created = await browser.post("/admin/create-user", {
      name: "New",
      email: "new@example.com",
      password: "a brand new password",
    });
    expect(created.data).toMatchObject({ user: { tenantId: ids.a } });
    expect((await browser.post("/admin/impersonate-user", { userId })).status).toBe(200);
    expect(await whoIs(browser, "a")).toMatchObject({ id: userId, tenantId: ids.a });
    expect((await browser.post("/admin/stop-impersonating")).status).toBe(200);
    expect(await whoIs(browser, "a")).toMatchObject({ id: people.a.admin.user.id });
  });

  it("R3: cannot give away a tenantId with the user that it creates or updates", async () => {
    const { people, ids, rows } = await createAdminPlaces();
    const { browser } = people.a.admin;
    await browser.post("/admin/create-user", {
      name: "New",
      email: "new@example.com",
      password: "a brand new password",
      data: { tenantId: ids.b },
    });
    expect(await rows("user", '"tenantId" = ?', [ids.b])).toBe(2);
    const userId = people.a.user.user.id;
    await browser.post("/admin/update-user", { userId, data: { tenantId: ids.b } });
    expect(await rows("user", 'id = ? and "tenantId" = ?', [userId, ids.a])).toBe(1);
  });
});

describe("an admin of the platform", () => {
  it("sees all, or one tenant when it names one", async () => {
    const { people, naming } = await createAdminPlaces();
    const { browser } = people.platform.admin;
    expect((await browser.get<UserList>("/admin/list-users")).data.total).toBe(6);
    for (const place of ["a", "b"] as const) {
      const { data } = await browser.fork(naming(place)).get<UserList>("/admin/list-users");
      expect(idsOf(data)).toEqual([people[place].user.user.id, people[place].admin.user.id].sort());
    }
  });

  it("visits only with the role: an ordinary user of the platform is nobody there", async () => {
    const { people, naming, unchanged } = await createAdminPlaces();
    const { browser } = people.platform.user;
    const body = { userId: people.a.user.user.id };
    expect((await browser.get("/admin/list-users")).status).toBe(403);
    const refused = await unchanged(() => browser.post("/admin/impersonate-user", body));
    expectRefused(refused, 403, "YOU_ARE_NOT_ALLOWED_TO_IMPERSONATE_USERS");
    const visitor = browser.fork(naming("a"));
    expect((await visitor.get("/admin/list-users")).status).toBe(401);
    const visit = await unchanged(() => visitor.post("/admin/impersonate-user", body));
    expect(visit.status).toBe(401);
  });

  it("naming A, it cannot reach a user of B or of the platform", async () => {
    const { people, naming, unchanged } = await createAdminPlaces();
    const browser = people.platform.admin.browser.fork(naming("a"));
    for (const place of ["b", "platform"] as const) {
      const body = { userId: people[place].user.user.id };
      const refused = await unchanged(() => browser.post("/admin/impersonate-user", body));
      expectRefused(refused, 404, "USER_NOT_FOUND");
      expect((await unchanged(() => browser.post("/admin/ban-user", body))).status).toBe(404);
    }
  });

  it.each(["named", "unnamed"])("impersonates a user of A, with A %s", async (how) => {
    const { people, naming, whoIs, ids } = await createAdminPlaces();
    const { browser: signedIn, user: admin } = people.platform.admin;
    const userId = people.a.user.user.id;
    const browser = how === "named" ? signedIn.fork(naming("a")) : signedIn.fork({});
    const answer = await browser.post<SessionAnswer>("/admin/impersonate-user", { userId });
    expect(answer.status).toBe(200);
    expect(answer.data.session).toMatchObject({ userId, tenantId: ids.a });
    // R4: unnamed it is A's as well; R5: elsewhere it is none.
    expect(await whoIs(browser, "a")).toMatchObject({ id: userId, tenantId: ids.a });
    expect(await whoIs(browser, "platform")).toMatchObject({ id: userId, tenantId: ids.a });
    expect(await whoIs(browser, "b")).toBe(null);
    expectRefused(await browser.fork(naming("b")).get("/list-sessions"), 401, "UNAUTHORIZED");
    // The border of a session that is A's: no admin of anything.
    expect((await browser.get("/admin/list-users")).status).toBe(403);

    const stopped = await browser.post("/admin/stop-impersonating");
    expect(stopped.status).toBe(200);
    expect(await whoIs(browser, "platform")).toMatchObject({ id: admin.id, tenantId: null });
    expect(await whoIs(browser, "a")).toBe(null);
  });

  it("stops impersonating from a browser that names nothing, or A", async () => {
    const { people, naming, whoIs, rows } = await createAdminPlaces();
    for (const place of ["a", "platform"] as const) {
      const browser = people.platform.admin.browser.fork({});
      const body = { userId: people.a.user.user.id };
      await browser.post("/admin/impersonate-user", body);
      const back = browser.fork(naming(place));
      expect((await back.post("/admin/stop-impersonating")).status).toBe(200);
      expect(await whoIs(back, "platform")).toMatchObject({ id: people.platform.admin.user.id });
      expect(await rows("session", '"impersonatedBy" is not null')).toBe(0);
    }
  });

  // Impersonation requires shared cookies: docs/platform.md says so.
  it("visits A with a cookie for each tenant as well", async () => {
    const { people, naming } = await createAdminPlaces({ sessionCookies: "per-tenant" });
    const browser = people.platform.admin.browser.fork(naming("a"));
    const { data, status } = await browser.get<UserList>("/admin/list-users");
    expect(status).toBe(200);
    expect(data.total).toBe(2);
  });
});
