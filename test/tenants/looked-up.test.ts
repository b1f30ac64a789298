import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createInstance, PASSWORD } from "../support/instance";

const person = { name: "Somebody", email: "somebody@example.com", password: PASSWORD };
const KEPT_MS = 10_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: new Date() });
});

afterEach(() => {
  vi.useRealTimers();
});

/** Two servers on one database, and a tenant that both have seen. */
async function createServers() {
  const here = await createInstance();
  const { database } = here;
  const elsewhere = await createInstance({ database, migrate: false });
  const { id: tenantId } = await here.createTenant();
  const headers = { "x-tenant-id": tenantId };
  const signIn = async (server: typeof here) =>
    (await server.browser(headers).post("/sign-in/email", person)).code;
  const signUp = (server: typeof here) => server.browser(headers).post("/sign-up/email", person);
  await signIn(here);
  await signIn(elsewhere);
  return { here, elsewhere, database, tenantId, headers, signIn, signUp };
}

const lookUps = ({ statements }: { statements: string[] }) =>
  statements.filter((sql) => /from\s+"tenant"/i.test(sql)).length;

describe("a tenant that was there a moment ago", () => {
  it("is not looked up again, until it is ten seconds later", async () => {
    const { here, database, signIn } = await createServers();
    database.statements.length = 0;
    await signIn(here);
    expect(lookUps(database)).toBe(0);
    vi.setSystemTime(Date.now() + KEPT_MS + 1);
    await signIn(here);
    expect(lookUps(database)).toBe(1);
    await signIn(here);
    expect(lookUps(database)).toBe(1);
  });

  it("is gone at once on the server that deletes it", async () => {
    const { here, tenantId, signIn, signUp } = await createServers();
    await here.api.deleteTenant({ body: { tenantId } });
    expect(await signIn(here)).toBe("TENANT_NOT_FOUND");
    const { status, code } = await signUp(here);
    expect([status, code]).toEqual([404, "TENANT_NOT_FOUND"]);
  });

  it("stays gone when it was being looked up while it was deleted", async () => {
    const { here, tenantId, signIn } = await createServers();
    vi.setSystemTime(Date.now() + KEPT_MS + 1);
    const { adapter } = here.context;
    const { findOne } = adapter;
    // The answer is known, and comes when the tenant is gone.
    adapter.findOne = async (input) => {
      const row = await findOne<never>(input);
      if (input.model !== "tenant") return row;
      adapter.findOne = findOne;
      await here.api.deleteTenant({ body: { tenantId } });
      return row;
    };
    await signIn(here);
    expect(await signIn(here)).toBe("TENANT_NOT_FOUND");
  });

  it("has nobody in it where it was deleted elsewhere, and nobody gets in", async () => {
    const { here, elsewhere, database, tenantId, headers, signIn, signUp } = await createServers();
    const member = here.browser(headers);
    await member.post("/sign-up/email", person);
    await elsewhere.api.deleteTenant({ body: { tenantId } });

    expect((await member.get("/get-session")).data).toBeNull();
    expect(await signIn(here)).toBe("INVALID_EMAIL_OR_PASSWORD");
    const { status, code, headers: answered } = await signUp(here);
    expect([status, code]).toEqual([404, "TENANT_NOT_FOUND"]);
    expect(answered.getSetCookie()).toEqual([]);
    for (const table of ["user", "account", "session"]) {
      expect(await database.query(`select * from "${table}"`), table).toEqual([]);
    }
    vi.setSystemTime(Date.now() + KEPT_MS + 1);
    expect(await signIn(here)).toBe("TENANT_NOT_FOUND");
  });

  it("says nothing of another one", async () => {
    const { here } = await createServers();
    const stranger = here.browser({ "x-tenant-id": "nobody" });
    const { code } = await stranger.post("/sign-in/email", person);
    expect(code).toBe("TENANT_NOT_FOUND");
  });

  it("can come back under the number of one that was deleted", async () => {
    const auth = { advanced: { database: { generateId: "serial" } } } as const;
    const { browser, createTenant, api } = await createInstance({ auth });
    const { id: tenantId } = await createTenant();
    const signUp = () => browser({ "x-tenant-id": tenantId }).post("/sign-up/email", person);
    expect((await signUp()).status).toBe(200);
    await api.deleteTenant({ body: { tenantId } });
    expect((await signUp()).code).toBe("TENANT_NOT_FOUND");
    expect((await createTenant()).id).toBe(tenantId);
    expect((await signUp()).status).toBe(200);
  });

  it("begins empty under a number of which somebody has left something", async () => {
    const auth = { advanced: { database: { generateId: "serial" } } } as const;
    const { browser, createTenant, database, rows } = await createInstance({ auth });
    const { id: tenantId } = await createTenant();
    const at = () => browser({ "x-tenant-id": tenantId });
    await at().post("/sign-up/email", person);
    await database.query(`delete from "tenant"`);
    expect((await createTenant()).id).toBe(tenantId);
    expect(await rows("user")).toBe(0);
    expect((await at().post("/sign-in/email", person)).code).toBe("INVALID_EMAIL_OR_PASSWORD");
  });
});
