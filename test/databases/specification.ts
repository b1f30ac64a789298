import { expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
import { queryOf } from "../support/social";
import { because, createWorld, type Ground } from "./store";

const EMAIL = "same@example.com";

/** The flows of the specification, once each: what differs between adapters is below them. */
export function followsTheSpecification(ground: Ground) {
  it("creates, gets, lists, updates and deletes tenants", async () => {
    const { api, a, b, count } = await createWorld(ground);
    expect(typeof a.id).toBe("string");
    expect(await api.getTenant({ query: { id: a.id } })).toEqual(a);
    expect(await api.getTenant({ query: { slug: "acme" } })).toEqual(a);
    const all = await api.listTenants();
    expect(all).toHaveLength(2);
    expect(all).toEqual(expect.arrayContaining([a, b]));

    const body = { tenantId: a.id, name: "Acme Inc", slug: "acme-inc" };
    const updated = await api.updateTenant({ body });
    expect(updated).toMatchObject({ id: a.id, name: "Acme Inc", slug: "acme-inc" });
    expect(await api.getTenant({ query: { id: a.id } })).toEqual(updated);
    expect(await api.getTenant({ query: { id: b.id } })).toEqual(b);

    const taken = { tenantId: a.id, slug: "bolt" };
    await expect(api.updateTenant({ body: taken })).rejects.toMatchObject({
      body: { code: "TENANT_ALREADY_EXISTS" },
    });
    expect(await api.deleteTenant({ body: { tenantId: a.id } })).toEqual({ success: true });
    await expect(api.getTenant({ query: { id: a.id } })).rejects.toMatchObject({
      body: { code: "TENANT_NOT_FOUND" },
    });
    expect(await count("tenant")).toBe(1);
  });

  it("knows no tenant by an id that is no id, and does not stumble over it", async () => {
    const { browser, signUp, a } = await createWorld(ground);
    await signUp(a.id, EMAIL);
    const strange = ["0", "-1", "1.0", "01", " 1", "99999999999", "abc", "%", "tenant", "null"];
    const similar = [`${a.id} `, `0${a.id}`, `${a.id}.0`];
    const uuid = "00000000-0000-4000-8000-000000000000";
    for (const tenantId of [...strange, ...similar, uuid, "x".repeat(300), "a\u0000b"]) {
      const body = { tenantId, email: EMAIL, password: PASSWORD };
      const answer = await browser().post("/tenant/sign-in/email", body);
      expect([tenantId, answer.status, answer.code]).toEqual([tenantId, 404, "TENANT_NOT_FOUND"]);
    }
  });

  it("signs up and in with one e-mail in two tenants and on the platform", async () => {
    const { signUp, whoIs, browser, a, b, rows } = await createWorld(ground);
    const sides = [a.id, b.id, null];
    const users = new Set<string>();
    for (const side of sides) {
      const person = await signUp(side, EMAIL);
      expect(person.user.tenantId).toBe(side);
      expect(typeof person.user.id).toBe("string");
      users.add(person.user.id);
      const body = { email: EMAIL, password: PASSWORD, ...(side && { tenantId: side }) };
      const returning = browser();
      const path = side ? "/tenant/sign-in/email" : "/sign-in/email";
      const answer = await returning.post<{ user: unknown }>(path, body);
      expect([answer.status, answer.data.user]).toEqual([
        200,
        expect.objectContaining(person.user),
      ]);
      expect(await whoIs(returning, side)).toMatchObject({
        user: { id: person.user.id, tenantId: side },
        session: { userId: person.user.id, tenantId: side },
      });
    }
    expect(users.size).toBe(3);
    expect(await rows("user")).toHaveLength(3);
    expect(await rows("account")).toHaveLength(3);
    expect(await rows("session")).toHaveLength(6);
  });

  it("refuses an e-mail that is taken in the tenant, and a wrong password", async () => {
    const { signUp, browser, a, count } = await createWorld(ground);
    await signUp(a.id, EMAIL);
    const person = { tenantId: a.id, name: "Somebody", email: EMAIL, password: PASSWORD };
    const again = await browser().post("/tenant/sign-up/email", person);
    expect([again.status, again.code]).toEqual([422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL"]);
    const wrong = { ...person, password: "not this one" };
    const signIn = await browser().post("/tenant/sign-in/email", wrong);
    expect([signIn.status, signIn.code]).toEqual([401, "INVALID_EMAIL_OR_PASSWORD"]);
    expect(await count("user")).toBe(1);
  });

  const taken = "refuses with 422 what is unique over all tenants and taken in another";
  it.skipIf(ground.noUniqueValues)(because(taken, ground.noUniqueValues), async () => {
    const { browser, a, b, count } = await createWorld(ground);
    const person = { name: "Somebody", password: PASSWORD, username: "somebody" };
    const signUp = (tenantId: string) =>
      browser().post("/tenant/sign-up/email", { ...person, tenantId, email: EMAIL });
    expect((await signUp(a.id)).status).toBe(200);
    const answer = await signUp(b.id);
    expect([answer.status, answer.code]).toEqual([422, "VALUE_TAKEN"]);
    expect([await count("user"), await count("account"), await count("session")]).toEqual([
      1, 1, 1,
    ]);
  });

  it("resets a password in its tenant only, once", async () => {
    const sent: string[] = [];
    const sendResetPassword = async ({ token }: { token: string }) => void sent.push(token);
    const { signUp, browser, a, b } = await createWorld(ground, { sendResetPassword });
    for (const side of [a.id, b.id, null]) await signUp(side, EMAIL);
    const inA = browser({ "x-tenant-id": a.id });
    expect((await inA.post("/request-password-reset", { email: EMAIL })).status).toBe(200);
    expect(sent).toHaveLength(1);
    const reset = { token: sent[0], newPassword: "another long password" };
    const elsewhere = browser({ "x-tenant-id": b.id });
    expect((await elsewhere.post("/reset-password", reset)).status).toBe(400);
    expect((await inA.post("/reset-password", reset)).status).toBe(200);
    expect((await inA.post("/reset-password", reset)).status).toBe(400);

    const statuses = async (password: string) => {
      const found: number[] = [];
      for (const side of [a.id, b.id, null]) {
        const path = side ? "/tenant/sign-in/email" : "/sign-in/email";
        const body = { email: EMAIL, password, ...(side && { tenantId: side }) };
        found.push((await browser().post(path, body)).status);
      }
      return found;
    };
    expect(await statuses("another long password")).toEqual([200, 401, 401]);
    expect(await statuses(PASSWORD)).toEqual([401, 200, 200]);
  });

  it("signs in through the tenant's own provider, and through the global one without", async () => {
    const app = await createWorld(ground);
    const { a, b } = app;
    const config = await app.configure(a.id, { scopes: ["read_user", "email"] });
    const people = [];
    for (const side of [a.id, b.id, null]) {
      const visitor = app.browser();
      const started = await app.start(visitor, side);
      expect(queryOf(started.data.url)).toMatchObject({
        client_id: side === a.id ? config.clientId : "global-client",
      });
      const back = await app.signIn(visitor, side);
      expect([back.status, back.location]).toEqual([302, "/welcome"]);
      const who = await app.whoIs(visitor, side);
      expect(who).toMatchObject({
        user: { email: "alice@example.com", tenantId: side },
        session: { tenantId: side },
      });
      people.push(who?.user.id);
      // Coming back is the same person, not another one.
      await app.signIn(visitor, side);
      expect((await app.whoIs(visitor, side))?.user.id).toBe(who?.user.id);
    }
    expect(new Set(people).size).toBe(3);
    expect(await app.count("user")).toBe(3);
    expect(await app.count("account")).toBe(3);
    await app.configure(a.id, { enabled: false });
    const off = await app.start(app.browser(), a.id);
    expect(queryOf(off.data.url).client_id).toBe("global-client");
  });

  it("accepts an OAuth state once, and in the tenant it was made for", async () => {
    const app = await createWorld(ground);
    await app.configure(app.a.id);
    const visitor = app.browser();
    const back = await app.authorize(visitor, app.a.id);
    const thief = app.browser();
    const stolen = await thief.get(back);
    expect(queryOf(stolen.location).error).toBeDefined();
    expect(await app.count("user")).toBe(0);
    const again = await app.signIn(visitor, app.a.id);
    expect(again.location).toBe("/welcome");
    expect(await app.count("session")).toBe(1);
  });
}
