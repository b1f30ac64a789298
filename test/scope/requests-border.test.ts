import { bearer } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { createInstance, type Instance, PASSWORD } from "../support/instance";
import { createMailbox } from "./mailbox";
import { createTriplets, EMAIL, type Triplets } from "./triplets";

async function nameOf({ instance }: Triplets, userId: string) {
  const [row] = await instance.database.query(`select name from "user" where id = ?`, [userId]);
  return row?.name;
}

type Listing = { users: { id: string }[]; total: number };

const ADMIN_ACTIONS = ["/admin/ban-user", "/admin/remove-user", "/admin/impersonate-user"];

/** Still there, not banned, and with no session but their own. */
async function expectUntouched(instance: Instance, userId: string) {
  const notBanned = "id = ? and (banned is null or banned = 0)";
  expect(await instance.rows("user", notBanned, [userId])).toBe(1);
  expect(await instance.rows("session", `"userId" = ?`, [userId])).toBe(1);
}

async function expireSessions(instance: Instance, userId: string) {
  const past = new Date(Date.now() - 1000).toISOString();
  await instance.database.query(`update "session" set "expiresAt" = ? where "userId" = ?`, [
    past,
    userId,
  ]);
}

describe("R3, R4: what a request sees", () => {
  it("R3: the platform does not know the people of tenants by e-mail", async () => {
    const { mails, auth } = createMailbox();
    const instance = await createInstance({ auth });
    const { id } = await instance.createTenant();
    const { email } = await instance.signUp(id);
    const sessions = await instance.rows("session");
    const browser = instance.browser();
    const signIn = await browser.post("/sign-in/email", { email, password: PASSWORD });
    expect([signIn.status, signIn.code]).toEqual([401, "INVALID_EMAIL_OR_PASSWORD"]);
    expect((await browser.post("/request-password-reset", { email })).status).toBe(200);
    expect((await browser.post("/send-verification-email", { email })).status).toBe(200);
    expect(mails).toEqual([]);
    expect(await instance.rows("session")).toBe(sessions);
    expect(await instance.rows("verification")).toBe(0);
    // Whoever takes the address on the platform becomes somebody else.
    const { user } = await instance.signUp(null, email);
    expect(user.tenantId).toBeNull();
    expect(await instance.rows("user", "email = ?", [email])).toBe(2);
  });

  it("R3: a tenant knows neither the platform's people nor those of another", async () => {
    const { mails, auth } = createMailbox();
    const instance = await createInstance({ auth });
    const a = (await instance.createTenant()).id;
    const b = (await instance.createTenant()).id;
    const strangers = [await instance.signUp(b), await instance.signUp(null)];
    const browser = instance.browser({ "x-tenant-id": a });
    for (const { email } of strangers) {
      for (const path of ["/sign-in/email", "/tenant/sign-in/email"]) {
        const answer = await browser.post(path, { email, password: PASSWORD });
        expect([answer.status, answer.code]).toEqual([401, "INVALID_EMAIL_OR_PASSWORD"]);
      }
      expect((await browser.post("/request-password-reset", { email })).status).toBe(200);
    }
    expect(mails).toEqual([]);
    expect(await instance.rows("session")).toBe(2);
  });

  it("an admin of the platform sees everybody, or the people of the tenant that it names", async () => {
    const { instance, people, a } = await createTriplets();
    const operator = await instance.operator();
    const listed = async (headers = {}) =>
      (await operator.browser.get<Listing>("/admin/list-users", { headers })).data.users.map(
        ({ id }) => id,
      );
    const everybody = [people.a, people.b, people.platform, operator].map(({ user }) => user.id);
    expect((await listed()).sort()).toEqual(everybody.sort());
    expect(await listed({ "x-tenant-id": a })).toEqual([people.a.user.id]);
    // Elsewhere the same session is no session in the tenant.
    const visit = await operator.browser.get("/list-sessions", { headers: { "x-tenant-id": a } });
    expect([visit.status, visit.code]).toEqual([401, "UNAUTHORIZED"]);
  });

  it("R3: an admin of a tenant lists its people, and reaches no others", async () => {
    const { instance, people, b } = await createTriplets();
    const { browser, user } = people.a;
    await instance.database.query(`update "user" set role = 'admin' where id = ?`, [user.id]);
    const list = await browser.get<Listing>("/admin/list-users");
    expect(list.data.users.map((listed) => listed.id)).toEqual([user.id]);
    expect(list.data.total).toBe(1);
    const elsewhere = browser.fork({ "x-tenant-id": b });
    for (const stranger of [people.b, people.platform]) {
      for (const path of ADMIN_ACTIONS) {
        const body = { userId: stranger.user.id };
        expect([path, (await browser.post(path, body)).status]).toEqual([path, 404]);
        expect([path, (await elsewhere.post(path, body)).status]).toEqual([path, 401]);
      }
      await expectUntouched(instance, stranger.user.id);
    }
    expect((await elsewhere.get("/admin/list-users")).status).toBe(401);
  });

  it("R4: somebody of the platform without the admin role gets nothing from /admin/*", async () => {
    const { instance, people, a } = await createTriplets();
    for (const window of [
      people.platform.browser.fork(),
      people.platform.browser.fork({ "x-tenant-id": a }),
    ]) {
      expect([401, 403]).toContain((await window.get("/admin/list-users")).status);
      for (const path of ADMIN_ACTIONS) {
        const answer = await window.post(path, { userId: people.a.user.id });
        expect([401, 403], path).toContain(answer.status);
      }
    }
    await expectUntouched(instance, people.a.user.id);
  });

  it("R4: a session takes its request into its tenant where the session is read first", async () => {
    const world = await createTriplets();
    for (const [who, { browser, user, token }] of Object.entries(world.people)) {
      const sessions = await browser.get<{ token: string }[]>("/list-sessions");
      expect(sessions.data.map((session) => session.token)).toEqual([token]);
      const update = await browser.post("/update-user", { name: `I am ${who}` });
      expect(update.status).toBe(200);
      expect(await nameOf(world, user.id)).toBe(`I am ${who}`);
    }
    for (const [who, { user }] of Object.entries(world.people)) {
      expect(await nameOf(world, user.id)).toBe(`I am ${who}`);
    }
  });

  it("R4: and where it is not: a reset mail goes to the tenant's person", async () => {
    const { mails, people } = await createTriplets();
    for (const { browser, user } of Object.values(people)) {
      const answer = await browser.post("/request-password-reset", { email: EMAIL });
      expect(answer.status).toBe(200);
      expect(mails.splice(0)).toMatchObject([
        { kind: "reset", userId: user.id, ofTenant: user.tenantId, sentIn: user.tenantId },
      ]);
    }
  });

  it("R4: and when somebody who is signed in signs in or up again", async () => {
    const { people, instance } = await createTriplets();
    for (const { browser, user } of Object.values(people)) {
      type SignedIn = { user: { id: string; tenantId: string | null } };
      const again = await browser
        .fork()
        .post<SignedIn>("/sign-in/email", { email: EMAIL, password: PASSWORD });
      expect(again.data.user).toMatchObject({ id: user.id, tenantId: user.tenantId });
      const other = await browser.fork().post<SignedIn>("/sign-up/email", {
        name: "Other",
        email: "other@example.com",
        password: PASSWORD,
      });
      expect(other.data.user.tenantId).toBe(user.tenantId);
    }
    expect(await instance.rows("user", "email = 'other@example.com'")).toBe(3);
  });

  it("R4: a session that comes as a bearer token counts as well", async () => {
    const { mails, people, instance } = await createTriplets({ plugins: [bearer()] });
    for (const { user, token } of Object.values(people)) {
      const browser = instance.browser({ authorization: `Bearer ${token}` });
      await browser.post("/request-password-reset", { email: EMAIL });
      expect(mails.splice(0)).toMatchObject([{ userId: user.id, sentIn: user.tenantId }]);
      const fresh = instance.browser({ authorization: `Bearer ${token}` });
      const { data } = await fresh.get<{ user: { id: string } }>("/get-session");
      expect(data.user.id).toBe(user.id);
    }
  });

  it("R4: a name in the request comes before its session, which is none there", async () => {
    const { people, a, b, mails } = await createTriplets();
    const elsewhere = [
      people.a.browser.fork({ "x-tenant-id": b }),
      people.platform.browser.fork({ "x-tenant-id": b }),
    ];
    for (const window of elsewhere) {
      for (const path of ["/list-sessions", "/list-accounts"]) {
        expect((await window.get(path)).status).toBe(401);
      }
      expect((await window.post("/update-user", { name: "Intruder" })).status).toBe(401);
      await window.post("/request-password-reset", { email: EMAIL });
      expect(mails.splice(0)).toMatchObject([{ userId: people.b.user.id, sentIn: b }]);
    }
    expect((await people.a.browser.fork({ "x-tenant-id": a }).get("/list-sessions")).status).toBe(
      200,
    );
  });

  it("R4: an expired session takes nobody anywhere", async () => {
    const { people, mails, instance } = await createTriplets();
    await expireSessions(instance, people.a.user.id);
    const { browser } = people.a;
    await browser.fork().post("/request-password-reset", { email: EMAIL });
    expect(mails).toMatchObject([{ userId: people.platform.user.id, sentIn: null }]);
    expect((await browser.fork().get("/list-sessions")).status).toBe(401);
  });

  it("R4: get-session cleans up an expired session, in a tenant as on the platform", async () => {
    const { people, instance } = await createTriplets();
    for (const { browser, user } of Object.values(people)) {
      await expireSessions(instance, user.id);
      const answer = await browser.get("/get-session");
      expect([answer.status, answer.data]).toEqual([200, null]);
      expect(await instance.rows("session", `"userId" = ?`, [user.id])).toBe(0);
      expect(browser.cookieHeader()).toBe("");
    }
  });

  it("R4: a session that was revoked takes nobody anywhere", async () => {
    const { people, mails } = await createTriplets();
    const stolen = people.a.browser.fork();
    expect((await people.a.browser.post("/sign-out")).status).toBe(200);
    await stolen.post("/request-password-reset", { email: EMAIL });
    expect(mails).toMatchObject([{ userId: people.platform.user.id, sentIn: null }]);
  });
});
