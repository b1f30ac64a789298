import { bearer, magicLink, organization } from "better-auth/plugins";
import { describe, expect, it, vi } from "vitest";
import { checkIsolation, cleanUp, type IsolationOptions } from "../../src/testing/index";
import { createInstance, createPlainInstance, PASSWORD } from "../support/instance";
import { oneOf } from "./configurations";

async function ordinary() {
  const sendMagicLink = vi.fn(async () => {});
  const sendResetPassword = vi.fn(async () => {});
  const instance = await createInstance({
    plugins: [organization(), bearer(), magicLink({ sendMagicLink })],
    tenant: { scopedModels: ["organization", "member", "invitation"] },
    auth: { emailAndPassword: { enabled: true, sendResetPassword } },
  });
  return { ...instance, sendMagicLink, sendResetPassword };
}

const LONG = { timeout: 600_000 };
const few: IsolationOptions = { extent: { paths: ["/get-session", "/magic-link"] } };

describe("checkIsolation", () => {
  it(
    "tries all of an ordinary application, and leaves nothing behind or changed",
    LONG,
    async () => {
      const { auth, rows, browser, context, sendMagicLink, sendResetPassword } = await ordinary();
      const { fetch } = globalThis;
      const { hash } = context.password;
      const report = await checkIsolation(auth, { extent: oneOf(60, 1) });
      expect([report.leaks, report.failures, report.untried]).toEqual([[], [], []]);
      expect(report.counts.endpoints).toBeGreaterThan(80);
      expect(String(report)).toMatch(/^Tenants are isolated\.\n {2}endpoints +\d+\n/);
      expect(report.toMarkdown()).toContain("### Tenants are isolated.");
      for (const table of Object.values(context.tables))
        expect(await rows(table.modelName)).toBe(0);
      expect(globalThis.fetch).toBe(fetch);
      expect(context.password.hash).toBe(hash);
      expect(sendMagicLink).not.toHaveBeenCalled();
      const person = { name: "S", email: "s@example.com", password: PASSWORD };
      expect((await browser().post("/sign-up/email", person)).status).toBe(200);
      await browser().post("/request-password-reset", { email: person.email });
      await browser().post("/sign-in/magic-link", { email: person.email });
      expect(sendResetPassword).toHaveBeenCalledOnce();
      expect(sendMagicLink).toHaveBeenCalledOnce();
    },
  );

  it("leaves nothing behind when it fails midway", async () => {
    const { auth, rows } = await ordinary();
    const routes = [async () => Promise.reject(new Error("the route is not there"))];
    await expect(checkIsolation(auth, { ...few, routes })).rejects.toThrow("is not there");
    for (const table of ["tenant", "user", "session", "account", "organization"]) {
      expect(await rows(table)).toBe(0);
    }
  });

  it("refuses a database that has tenants, unless it is told otherwise", async () => {
    const { auth, createTenant, signUp, rows } = await ordinary();
    const { id } = await createTenant("there-already");
    await signUp(id);
    await expect(checkIsolation(auth)).rejects.toThrow("allowExistingTenants: true");
    const report = await checkIsolation(auth, { ...few, allowExistingTenants: true });
    expect(report.leaks).toEqual([]);
    expect([await rows("tenant"), await rows("user"), await rows("session")]).toEqual([1, 1, 1]);
  });

  it("refuses an instance without the plugin", async () => {
    const { database } = await createInstance();
    const { auth } = await createPlainInstance(database);
    await expect(checkIsolation(auth)).rejects.toThrow("tenantAuth() is not among the plugins");
  });

  it("finds an instance at the root of its host", async () => {
    const { auth } = await createInstance({ auth: { basePath: "/" } });
    const report = await checkIsolation(auth, few);
    expect([report.leaks, report.untried]).toEqual([[], []]);
  });

  it.each<[string, () => Response]>([
    ["nothing", () => new Response("Not Found", { status: 404 })],
    ["that it is elsewhere", () => Response.redirect("http://localhost:3000/", 308)],
    ["that nobody is there", () => Response.json({ code: "UNAUTHORIZED" }, { status: 401 })],
    ["a page", () => new Response("<html/>", { headers: { "content-type": "text/html" } })],
  ])("refuses to report on an instance that answers %s", async (_, answer) => {
    const { auth, rows } = await ordinary();
    const report = checkIsolation({ ...auth, handler: async () => answer() }, few);
    await expect(report).rejects.toThrow("answers: http://localhost:3000/api/auth?");
    expect([await rows("tenant"), await rows("user")]).toEqual([0, 0]);
  });

  it("says what could not be tried and what to give, and keeps everything if it is told to", async () => {
    const { auth, rows } = await ordinary();
    const report = await checkIsolation(auth, {
      extent: { paths: ["/organization/update"] },
      endpoints: { "/organization/update": { body: { organizationId: "of nobody" } } },
      keep: true,
    });
    expect(report.untried.map(({ what }) => what)).toEqual(["POST /organization/update"]);
    expect(report.untried[0]?.reason).toMatch(/^it does nothing at home either: 400 /);
    expect(report.untried[0]?.give).toContain('endpoints: { "/organization/update"');
    expect(report.toMarkdown()).toContain("| POST /organization/update |");
    expect(await rows("tenant")).toBe(2);
    expect(await rows("user")).toBeGreaterThan(6);
  });

  it("accepts what is allowed, and says when it does not happen any more", async () => {
    const everybody = async () => Response.json(await context.adapter.findMany({ model: "user" }));
    const { auth, context } = await ordinary();
    const reason = "public by design";
    const options = { ...few, routes: [everybody] };
    const open = await checkIsolation(auth, options);
    expect(() => open.assert()).toThrow("signed in at tenant A, everybody returned a user of");
    const allow = { everybody: reason, "GET /gone": "it was public once" };
    const report = await checkIsolation(auth, { ...options, allow });
    expect(report.leaks).toEqual([]);
    expect(report.accepted).toMatchObject([{ endpoint: "everybody", reason }]);
    expect(report.stale).toEqual(["GET /gone"]);
    expect(() => report.assert()).toThrow('allow: "GET /gone" does not happen any more');
    expect(String(report)).toContain(`everybody: ${reason}`);
  });

  it("ignores other users who sign up or change something during a run", async () => {
    const { auth, createTenant, signUp, database, context } = await ordinary();
    await createTenant("there-already");
    const { user } = await signUp(null, "before@example.com");
    // As another process would do it, past this instance.
    const columns =
      '("id", "name", "email", "emailVerified", "createdAt", "updatedAt", "tenantId")';
    let isDone = false;
    const meanwhile = async () => {
      if (!isDone) {
        const values = ["stranger-1", "Stranger", "meanwhile@example.com", 0, "2026", "2026", ""];
        const marks = values.map(() => "?").join(", ");
        await database.query(`insert into "user" ${columns} values (${marks})`, values);
        await database.query('update "user" set "name" = ? where "id" = ?', ["Changed", user.id]);
      }
      isDone = true;
      return Response.json(await context.adapter.findMany({ model: "tenant", limit: 1 }));
    };
    const options = { routes: [meanwhile], allowExistingTenants: true, ...few };
    const report = await checkIsolation(auth, options);
    expect([isDone, report.left]).toEqual([true, []]);
    const left = await database.query('select "name" from "user" order by "name"');
    expect(left).toEqual([{ name: "Changed" }, { name: "Stranger" }]);
  });

  it("says what an interrupted run has left, and removes it and nothing else", async () => {
    const { auth, signUp, rows } = await ordinary();
    await signUp(null, "before@example.com");
    await checkIsolation(auth, { ...few, keep: true });
    expect(await rows("user")).toBeGreaterThan(6);
    await expect(checkIsolation(auth)).rejects.toThrow(
      /interrupted left 2 tenants .*cleanUp\(auth\)/,
    );
    expect((await cleanUp(auth)).tenants).toBe(2);
    expect([await rows("tenant"), await rows("user"), await rows("session")]).toEqual([0, 1, 1]);
  });

  it("says that tables are missing, or that the instance cannot start", async () => {
    const { auth, database } = await ordinary();
    await database.query('drop table "tenantOauthConfig"');
    await database.query('drop table "tenant"');
    await expect(checkIsolation(auth)).rejects.toThrow("Has this database been migrated?");
    const broken = { ...auth, $context: Promise.reject(new Error("no DATABASE_URL")) };
    await expect(checkIsolation(broken)).rejects.toThrow(/no DATABASE_URL.*environment variables/);
  });
});
