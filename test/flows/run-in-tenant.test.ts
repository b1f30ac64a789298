import { describe, expect, it } from "vitest";
import { getTenantId, runInTenant } from "../../src/index";
import { queryOf } from "../support/social";
import { createPeople, EMAIL, PLACES, passwordOf } from "./people";

const NEW = { name: "New", email: "new@example.com", password: "another password" };

async function createTenants() {
  const people = await createPeople();
  const { a, b } = people.ids;
  if (a === null || b === null) throw new Error("no tenants");
  return { ...people, a, b, api: people.instance.api };
}

describe("runInTenant()", () => {
  it("auth.api.signUpEmail signs up there, and nowhere else", async () => {
    const { a, api, ids, touchesOnly, instance, signIn } = await createTenants();
    const { user } = await touchesOnly("a", () =>
      runInTenant(a, () => api.signUpEmail({ body: NEW })),
    );
    expect(user).toMatchObject({ email: NEW.email, tenantId: ids.a });
    expect(await instance.rows("user", "email = ?", [NEW.email])).toBe(1);
    expect((await signIn("a", NEW.password, NEW.email)).status).toBe(200);
    expect((await signIn("platform", NEW.password, NEW.email)).status).toBe(401);
  });

  it("auth.api.signInEmail knows the person there, by that password only", async () => {
    const { a, api, people } = await createTenants();
    const signIn = (password: string) =>
      runInTenant(a, () => api.signInEmail({ body: { email: EMAIL, password } }));
    expect((await signIn(passwordOf("a"))).user.id).toBe(people.a.id);
    for (const other of ["b", "platform"] as const) {
      await expect(signIn(passwordOf(other))).rejects.toMatchObject({
        body: { code: "INVALID_EMAIL_OR_PASSWORD" },
      });
    }
  });

  it("auth.api.requestPasswordReset mails the person there a link that leads back", async () => {
    const { a, api, people, lastMail, stranger, touchesOnly, expectSignsIn } =
      await createTenants();
    const body = { email: EMAIL, redirectTo: "/page" };
    await touchesOnly("a", async () => {
      await runInTenant(a, () => api.requestPasswordReset({ body }));
      const mail = lastMail("reset");
      expect(mail).toMatchObject({ userId: people.a.id, sentIn: a });
      const { token } = queryOf((await stranger("platform").get(mail.url)).location);
      const newPassword = "a brand new password";
      await stranger("platform").post("/reset-password", { token, newPassword });
    });
    await expectSignsIn("a", "a brand new password");
  });

  it("R3: the internal adapter sees that tenant only", async () => {
    const { a, b, people, instance, touchesOnly, rowsIn } = await createTenants();
    const { internalAdapter } = instance.context;
    await touchesOnly("a", async () => {
      await runInTenant(a, async () => {
        expect((await internalAdapter.findUserByEmail(EMAIL))?.user.id).toBe(people.a.id);
        expect(await internalAdapter.findUserById(people.b.id)).toBeNull();
        expect(await internalAdapter.findUserById(people.platform.id)).toBeNull();
        expect(await internalAdapter.listUsers()).toHaveLength(1);
        await internalAdapter.updateUserByEmail(EMAIL, { name: "Renamed" });
        await internalAdapter.deleteUserSessions(people.b.id);
        await internalAdapter.deleteUser(people.platform.id);
      });
    });
    expect(await rowsIn("a", "user")).toMatchObject([{ name: "Renamed" }]);
    const session = await runInTenant(b, () => internalAdapter.createSession(people.b.id));
    expect(session).toMatchObject({ userId: people.b.id, tenantId: b });
  });

  it("R8: gives no session to somebody of elsewhere", async () => {
    const { a, people, instance, changesNothing } = await createTenants();
    const { internalAdapter } = instance.context;
    for (const { id } of [people.b, people.platform]) {
      await changesNothing(async () => {
        await expect(runInTenant(a, () => internalAdapter.createSession(id))).rejects.toMatchObject(
          { body: { code: "USER_NOT_IN_TENANT" } },
        );
      });
    }
  });

  it("R5: a session of elsewhere is none there", async () => {
    const { a, b, people, api } = await createTenants();
    const headers = new Headers({ cookie: people.a.browser.cookieHeader() });
    const inA = await runInTenant(a, () => api.getSession({ headers }));
    expect(inA?.user.id).toBe(people.a.id);
    expect(await runInTenant(b, () => api.getSession({ headers }))).toBeNull();
  });

  it("answers what the function answers, and throws what it throws", async () => {
    const { a } = await createTenants();
    expect(await runInTenant(a, async () => getTenantId())).toBe(a);
    const boom = new Error("boom");
    const failing = runInTenant(a, async () => {
      throw boom;
    });
    await expect(failing).rejects.toBe(boom);
    expect(getTenantId()).toBeNull();
  });

  it("nested calls stay apart, and the outer one goes on where it was", async () => {
    const { a, b, people, instance } = await createTenants();
    const find = async () =>
      (await instance.context.internalAdapter.findUserByEmail(EMAIL))?.user.id;
    const seen = await runInTenant(a, async () => {
      const before = await find();
      const inner = await runInTenant(b, async () => [getTenantId(), await find()]);
      return [before, inner, getTenantId(), await find()];
    });
    expect(seen).toEqual([people.a.id, [b, people.b.id], a, people.a.id]);
  });

  it("parallel calls stay apart", async () => {
    const { a, b, people, api, instance } = await createTenants();
    const runs = Array.from({ length: 20 }, (_, index) => {
      const [place, tenantId] = index % 2 ? (["a", a] as const) : (["b", b] as const);
      return runInTenant(tenantId, async () => {
        const body = { email: EMAIL, password: passwordOf(place) };
        const { user } = await api.signInEmail({ body });
        await api.signUpEmail({ body: { ...NEW, email: `new-${index}@example.com` } });
        expect([getTenantId(), user.id]).toEqual([tenantId, people[place].id]);
      });
    });
    await Promise.all(runs);
    const tenantId = instance.database.quote("tenantId");
    for (const id of [a, b]) expect(await instance.rows("user", `${tenantId} = ?`, [id])).toBe(11);
    expect(await instance.rows("user", `${tenantId} = ''`)).toBe(1);
  });

  it("refuses a call that names another tenant", async () => {
    const { a, b, api, changesNothing } = await createTenants();
    const headers = new Headers({ "x-tenant-id": b });
    await changesNothing(async () => {
      await expect(
        runInTenant(a, () => api.signUpEmail({ body: NEW, headers })),
      ).rejects.toMatchObject({ body: { code: "TENANT_SCOPE_CONFLICT" } });
    });
  });

  it("server calls open the sealed token of a link, and enter its tenant", async () => {
    const { api, window, lastMail, touchesOnly, expectSignsIn, userAt } = await createTenants();
    const me = window("a", "its session alone");
    await me.post("/send-verification-email", { email: EMAIL });
    const { token } = lastMail("verification");
    await touchesOnly("a", () => api.verifyEmail({ query: { token } }));
    expect(Boolean((await userAt("a"))?.emailVerified)).toBe(true);
    await me.post("/request-password-reset", { email: EMAIL });
    const reset = { token: lastMail("reset").token, newPassword: "a brand new password" };
    await touchesOnly("a", () => api.resetPassword({ body: reset }));
    await expectSignsIn("a", reset.newPassword);
  });

  it("R6: a token of elsewhere is refused there", async () => {
    const { b, api, window, lastMail, changesNothing } = await createTenants();
    const tokens: string[] = [];
    for (const place of ["a", "platform"] as const) {
      await window(place, "its session alone").post("/send-verification-email", { email: EMAIL });
      tokens.push(lastMail("verification").token);
    }
    for (const token of tokens) {
      await changesNothing(async () => {
        await expect(
          runInTenant(b, () => api.verifyEmail({ query: { token } })),
        ).rejects.toMatchObject({ body: { code: "INVALID_TOKEN" } });
      });
    }
  });

  it("R2: leaves nothing behind in a tenant that does not exist", async () => {
    const { api, people, instance, changesNothing } = await createTenants();
    const { internalAdapter } = instance.context;
    const notFound = { body: { code: "TENANT_NOT_FOUND" } };
    await changesNothing(async () => {
      const signUp = runInTenant("nowhere", () => api.signUpEmail({ body: NEW }));
      await expect(signUp).rejects.toMatchObject(notFound);
      const create = runInTenant("nowhere", () =>
        internalAdapter.createUser(
          { name: "New", email: NEW.email, emailVerified: false },
          { method: "email-password" },
        ),
      );
      await expect(create).rejects.toMatchObject(notFound);
      const body = { email: EMAIL, password: passwordOf("platform") };
      const signIn = runInTenant("nowhere", () => api.signInEmail({ body }));
      await expect(signIn).rejects.toMatchObject({ statusCode: expect.any(Number) });
      for (const place of PLACES) {
        const { id } = people[place];
        expect(await runInTenant("nowhere", () => internalAdapter.findUserById(id))).toBeNull();
      }
    });
    const tenantId = instance.database.quote("tenantId");
    for (const table of ["user", "session", "account", "verification"]) {
      expect(await instance.rows(table, `${tenantId} = 'nowhere'`)).toBe(0);
    }
  });
});
