import { createAuthMiddleware } from "better-auth/api";
import { describe, expect, it } from "vitest";
import { createInstance, type Instance } from "../support/instance";
import { createWitness, person } from "./witness";

/** What `auth.api.*` calls inside a hook came to. */
type Nested = (instance: Instance) => Promise<unknown>;

/** An instance whose hook runs a function around the sign-up of `outer@example.com`. */
async function createNesting(side: "before" | "after") {
  const nested: { run?: Nested; error?: unknown } = {};
  const hook = createAuthMiddleware(async ({ path, body }) => {
    if (path !== "/sign-up/email" || body?.email !== "outer@example.com" || !nested.run) return;
    await nested.run(instance).catch((error: unknown) => {
      nested.error = error;
    });
  });
  const instance: Instance = await createInstance({ auth: { hooks: { [side]: hook } } });
  const a = (await instance.createTenant("aa")).id;
  const b = (await instance.createTenant("bb")).id;
  const signUpOuter = (tenantId: string | null) => {
    const browser = instance.browser(tenantId ? { "x-tenant-id": tenantId } : {});
    return browser.post<{ user: { tenantId: string | null } }>(
      "/sign-up/email",
      person("outer@example.com"),
    );
  };
  const emailsIn = async (tenantId: string | null) => {
    const rows = await instance.database.query(
      `select email from "user" where "tenantId" = ? order by email`,
      [tenantId ?? ""],
    );
    return rows.map(({ email }) => email);
  };
  return { nested, instance, a, b, signUpOuter, emailsIn };
}

const inner = { body: person("inner@example.com") };
const naming = (tenantId: string) => ({ headers: new Headers({ "x-tenant-id": tenantId }) });

describe.each(["before", "after"] as const)("auth.api.* inside hooks.%s", (side) => {
  it("inherits the tenant of its request", async () => {
    const { nested, a, b, signUpOuter, emailsIn } = await createNesting(side);
    nested.run = ({ api }) => api.signUpEmail(inner);
    for (const tenantId of [a, b, null]) {
      expect((await signUpOuter(tenantId)).data.user.tenantId).toBe(tenantId);
      expect(nested.error).toBeUndefined();
      expect(await emailsIn(tenantId)).toEqual(["inner@example.com", "outer@example.com"]);
    }
  });

  it("may name the tenant that it runs in anyway", async () => {
    const { nested, a, signUpOuter, emailsIn } = await createNesting(side);
    nested.run = ({ api }) => api.signUpEmail({ ...inner, ...naming(a) });
    expect((await signUpOuter(a)).status).toBe(200);
    expect(nested.error).toBeUndefined();
    expect(await emailsIn(a)).toEqual(["inner@example.com", "outer@example.com"]);
  });

  it("is refused when it names another tenant", async () => {
    const { nested, a, b, signUpOuter, emailsIn } = await createNesting(side);
    const attempts: Nested[] = [
      ({ api }) => api.signUpEmail({ ...inner, ...naming(b) }),
      ({ api }) => api.signInEmail({ body: inner.body, ...naming(b) }),
      ({ api }) => api.getSession(naming(b)),
      ({ api }) => api.listSessions(naming("no-such-tenant")),
    ];
    for (const [index, run] of attempts.entries()) {
      nested.run = run;
      nested.error = undefined;
      const answer = await signUpOuter(a);
      expect(nested.error, `attempt ${index}`).toMatchObject({
        statusCode: 409,
        body: { code: "TENANT_SCOPE_CONFLICT" },
      });
      // The first of these sign-ups made the user; the request itself went on in its tenant.
      expect(answer.status).toBe(index === 0 ? 200 : 422);
    }
    expect(await emailsIn(a)).toEqual(["outer@example.com"]);
    expect(await emailsIn(b)).toEqual([]);
  });

  it.each<[string, (tenantId: string) => Nested]>([
    [
      "getSession",
      (tenantId) =>
        ({ api }) =>
          api.getSession(naming(tenantId)),
    ],
    [
      "signUpEmail",
      (tenantId) =>
        ({ api }) =>
          api.signUpEmail({ ...inner, ...naming(tenantId) }),
    ],
  ])("of the platform, a %s that names a tenant does not move its request", async (_, attempt) => {
    const { nested, a, signUpOuter, emailsIn } = await createNesting(side);
    nested.run = attempt(a);
    expect((await signUpOuter(null)).data.user.tenantId).toBeNull();
    expect(await emailsIn(null)).toEqual(["outer@example.com"]);
    expect(await emailsIn(a)).not.toContain("outer@example.com");
  });

  it("of one tenant, a /tenant/* call for another leaves both apart", async () => {
    const { nested, a, b, signUpOuter, emailsIn } = await createNesting(side);
    nested.run = ({ api }) => api.signUpEmailTenant({ body: { ...inner.body, tenantId: b } });
    expect((await signUpOuter(a)).data.user.tenantId).toBe(a);
    expect(await emailsIn(a)).toEqual(["outer@example.com"]);
    expect(await emailsIn(b)).not.toContain("outer@example.com");
  });
});

describe("requests side by side", () => {
  const TIMES = 50;

  /** How many of the e-mails of each kind there are in each tenant. */
  async function expectApart(instance: Instance, kinds: Record<string, string | null>) {
    for (const [kind, tenantId] of Object.entries(kinds)) {
      const where = `email like ? and "tenantId" = ?`;
      expect(await instance.rows("user", where, [`${kind}-%`, tenantId ?? ""])).toBe(TIMES);
      expect(await instance.rows("user", "email like ?", [`${kind}-%`])).toBe(TIMES);
    }
    for (const table of ["session", "account"]) {
      const wrong = `"tenantId" <> (select u."tenantId" from "user" u where u.id = "userId")`;
      expect(await instance.rows(table, wrong)).toBe(0);
      expect(await instance.rows(table)).toBe(TIMES * Object.keys(kinds).length);
    }
  }

  const times = <T>(run: (n: number) => T) => Array.from({ length: TIMES }, (_, n) => run(n));

  it("server calls for two tenants and the platform stay apart, 50 each", {
    timeout: 60_000,
  }, async () => {
    const { seen, auth } = createWitness();
    const instance = await createInstance({ auth });
    const a = (await instance.createTenant("aa")).id;
    const b = (await instance.createTenant("bb")).id;
    const { api } = instance;
    const answers = await Promise.all(
      times((n) => [
        api.signUpEmailTenant({ body: { ...person(`a-${n}@example.com`), tenantId: a } }),
        api.signUpEmailTenant({ body: { ...person(`b-${n}@example.com`), tenantId: b } }),
        api.signUpEmail({ body: person(`p-${n}@example.com`) }),
      ]).flat(),
    );
    expect(answers).toHaveLength(3 * TIMES);
    await expectApart(instance, { a, b, p: null });
    const inHooks = (tenantId: string | null) =>
      seen.filter(([where, tenant]) => where === "after user" && tenant === tenantId).length;
    expect([inHooks(a), inHooks(b), inHooks(null)]).toEqual([TIMES, TIMES, TIMES]);
  });

  it("HTTP requests for two tenants and the platform stay apart, 50 each", {
    timeout: 60_000,
  }, async () => {
    const instance = await createInstance();
    const a = (await instance.createTenant("aa")).id;
    const b = (await instance.createTenant("bb")).id;
    const signUp = (kind: string, n: number, headers = {}) =>
      instance.browser(headers).post("/sign-up/email", person(`${kind}-${n}@example.com`));
    const answers = await Promise.all(
      times((n) => [
        signUp("a", n, { "x-tenant-id": a }),
        signUp("b", n, { "x-tenant-id": b }),
        signUp("p", n),
      ]).flat(),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    await expectApart(instance, { a, b, p: null });
  });
});
