import { describe, expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
import { type Person, PLACES, type SessionAnswer, shareWorld } from "../support/world";

const world = shareWorld();

const expireSessions = ({ id }: Person) =>
  world.database.query(`update "session" set "expiresAt" = ? where "userId" = ?`, [
    new Date(Date.now() - 1000).toISOString(),
    id,
  ]);

describe("R4: a session takes its request into its tenant", () => {
  it("where it is read first, and where it is not", async () => {
    const people = await world.strangers();
    for (const place of PLACES) {
      const { id, email, token } = people[place];
      const tenantId = world.ids[place];
      const window = () => world.at("platform", people[place]);
      const { data } = await window().get<{ token: string }[]>("/list-sessions");
      expect(data.map((session) => session.token)).toEqual([token]);
      expect((await window().post("/update-user", { name: place })).status).toBe(200);
      const [row] = await world.database.query(`select name from "user" where id = ?`, [id]);
      expect(row?.name).toBe(place);
      await window().post("/request-password-reset", { email });
      expect(world.mails.splice(0)).toMatchObject([
        { kind: "reset", userId: id, sentIn: tenantId },
      ]);
      // Also when somebody who is signed in signs in or up again.
      const again = await window().post("/sign-in/email", { email, password: PASSWORD });
      expect(again.data.user).toMatchObject({ id, tenantId });
      const other = { name: "Other", email: `other-${email}`, password: PASSWORD };
      const made = await window().post("/sign-up/email", other);
      expect(made.data.user).toMatchObject({ tenantId });
    }
  });

  it("unless the request names another, where the session is none", async () => {
    const people = await world.strangers();
    const { globex } = people;
    for (const home of ["acme", "platform"] as const) {
      const window = world.at("globex", people[home]);
      for (const path of ["/list-sessions", "/list-accounts"]) {
        expect((await window.get(path)).status).toBe(401);
      }
      expect((await window.post("/update-user", { name: "Intruder" })).status).toBe(401);
      await window.post("/request-password-reset", { email: globex.email });
      expect(world.mails.splice(0)).toMatchObject([
        { userId: globex.id, sentIn: world.ids.globex },
      ]);
    }
    expect((await people.acme.get("/list-sessions")).status).toBe(200);
  });

  it.each([
    ["that has expired", expireSessions],
    ["that was revoked", (person: Person) => world.at("acme", person).post("/sign-out")],
  ])("one %s takes nobody anywhere", async (_, end) => {
    const { acme, platform } = await world.strangers();
    await end(acme);
    const window = () => world.at("platform", acme);
    await window().post("/request-password-reset", { email: acme.email });
    expect(world.mails).toMatchObject([{ userId: platform.id, sentIn: null }]);
    expect((await window().get("/list-sessions")).status).toBe(401);
  });

  it("get-session cleans up an expired one, in a tenant as on the platform", async () => {
    for (const person of Object.values(await world.strangers())) {
      await expireSessions(person);
      const window = world.at("platform", person);
      const answer = await window.get("/get-session");
      expect([answer.status, answer.data]).toEqual([200, null]);
      expect(await world.rows("session", `"userId" = ?`, [person.id])).toBe(0);
      expect(window.cookieHeader()).toBe("");
    }
  });

  it("threat: unsigned cookie trusted: one that claims a tenant is not heard", async () => {
    const { acme, platform } = await world.strangers();
    const { email } = acme;
    const id = world.ids.acme;
    const name = "better-auth.session_token";
    const value = acme.cookies.get(name) ?? "";
    const token = decodeURIComponent(value).split(".")[0];
    expect(token).toBe(acme.token);
    const session = { session: { tenantId: id, token }, user: { tenantId: id } };
    const forged = [
      `tenantId=${id}; x-tenant-id=${id}; tenant=${id}; tenant_id=${id}`,
      `better-auth.tenant=${id}; better-auth.tenantId=${id}; better-auth.tenant_id=${id}`,
      `${name}=${token}`,
      `${name}=${token}.`,
      `${name}=${encodeURIComponent(`${token}.${"A".repeat(43)}=`)}`,
      `${name}=${token}; better-auth.session_data=${btoa(JSON.stringify({ session }))}`,
    ];
    const reset = async (cookie: string) => {
      await world.browser({ cookie }).post("/request-password-reset", { email });
      return world.mails.splice(0);
    };
    for (const cookie of forged) {
      const window = world.browser({ cookie });
      const { status, data } = await window.get<SessionAnswer | null>("/get-session");
      expect([status, data], cookie).toEqual([200, null]);
      expect((await window.get("/list-sessions")).status, cookie).toBe(401);
      expect(await reset(cookie), cookie).toMatchObject([{ userId: platform.id, sentIn: null }]);
    }
    // The same with the signature: the test would notice if none of these were cookies at all.
    expect(await reset(`${name}=${value}`)).toMatchObject([{ userId: acme.id, sentIn: id }]);
  });
});
