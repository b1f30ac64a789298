import type { APIError } from "better-auth/api";
import { describe, expect, it } from "vitest";
import { createInstance, type Instance, PASSWORD } from "../support/instance";

interface Signed {
  user: { id: string; tenantId: string | null };
  session: { tenantId: string | null };
}

const SIGN_UP = "/tenant/sign-up/email";
const SIGN_IN = "/tenant/sign-in/email";
const ANN = { name: "Ann", email: "ann@example.com", password: PASSWORD };

const credentials = ({ email, password } = ANN) => ({ email, password });

async function expectNothingWritten(instance: Instance) {
  for (const table of ["user", "account", "session"]) expect(await instance.rows(table)).toBe(0);
}

describe("the tenant of a request", () => {
  const ways = [
    ["body", (tenantId: string) => ({ body: { tenantId } })],
    ["query", (tenantId: string) => ({ query: { tenantId } })],
    ["header", (tenantId: string) => ({ headers: { "x-tenant-id": tenantId } })],
  ] as const;

  it.each(ways)("R1: the %s names it", async (_, name) => {
    const instance = await createInstance();
    const { id } = await instance.createTenant();
    const { body = {}, ...rest } = { body: {}, ...name(id) };
    const up = await instance.browser().post<Signed>(SIGN_UP, { ...ANN, ...body }, rest);
    expect(up.status).toBe(200);
    expect(up.data.user.tenantId).toBe(id);
    const back = { ...credentials(), ...body };
    const signedIn = await instance.browser().post<Signed>(SIGN_IN, back, rest);
    expect(signedIn.status).toBe(200);
    expect(signedIn.data.session.tenantId).toBe(id);
    expect(signedIn.data.user.id).toBe(up.data.user.id);
  });

  it.each([
    ["resolver", { resolver: 0, body: 1, query: 2, header: 3 }],
    ["body", { body: 1, query: 2, header: 3 }],
    ["query", { query: 2, header: 3 }],
    ["header", { header: 3 }],
  ])("R1, threat: checked one id, acted on another: the %s wins", async (winner, named) => {
    const names: Partial<Record<string, number>> = named;
    const ids: string[] = [];
    const idOf = (place: string) => ids[names[place] ?? -1] ?? "";
    const instance = await createInstance({ tenant: { resolveTenantId: () => idOf("resolver") } });
    for (let n = 0; n < 4; n++) ids.push((await instance.createTenant()).id);
    const body = { ...ANN, tenantId: idOf("body") };
    const rest = {
      query: { tenantId: idOf("query") },
      headers: { "x-tenant-id": idOf("header") },
    };
    const up = await instance.browser().post<Signed>(SIGN_UP, body, rest);
    expect(up.status).toBe(200);
    expect(up.data.user.tenantId).toBe(idOf(winner));
    expect(up.data.session.tenantId).toBe(idOf(winner));
    expect(await instance.rows("user", `"tenantId" = ?`, [idOf(winner)])).toBe(1);
    const signedIn = await instance.browser().post<Signed>(SIGN_IN, body, rest);
    expect(signedIn.data.session.tenantId).toBe(idOf(winner));
  });

  it("R1: another header, when the application says so", async () => {
    const instance = await createInstance({ tenant: { tenantHeader: "x-org" } });
    const { id } = await instance.createTenant();
    const old = await instance.browser({ "x-tenant-id": id }).post(SIGN_UP, ANN);
    expect([old.status, old.code]).toEqual([400, "TENANT_ID_REQUIRED"]);
    const answer = await instance.browser({ "x-org": id }).post<Signed>(SIGN_UP, ANN);
    expect(answer.data.user.tenantId).toBe(id);
  });

  it("R1: a resolver that needs time is waited for, and reads the request", async () => {
    const instance = await createInstance({
      tenant: {
        resolveTenantId: async (ctx) => {
          await Promise.resolve();
          return ctx.headers?.get("x-forwarded-tenant");
        },
      },
    });
    const { id } = await instance.createTenant();
    const browser = instance.browser({ "x-forwarded-tenant": id });
    expect((await browser.post<Signed>(SIGN_UP, ANN)).data.user.tenantId).toBe(id);
  });

  it.each([SIGN_UP, SIGN_IN])("R2: %s without a tenant is 400", async (path) => {
    const instance = await createInstance();
    const answer = await instance.browser().post(path, ANN);
    expect([answer.status, answer.code]).toEqual([400, "TENANT_ID_REQUIRED"]);
    await expectNothingWritten(instance);
  });

  it.each([SIGN_UP, SIGN_IN])("R2: %s in a tenant that is not there is 404", async (path) => {
    const instance = await createInstance();
    await instance.createTenant();
    const answer = await instance.browser().post(path, { ...ANN, tenantId: "nobody" });
    expect([answer.status, answer.code]).toEqual([404, "TENANT_NOT_FOUND"]);
    await expectNothingWritten(instance);
  });

  it("R2: a slug is not an id", async () => {
    const instance = await createInstance();
    const { slug } = await instance.createTenant();
    const answer = await instance.browser().post(SIGN_UP, { ...ANN, tenantId: slug });
    expect([answer.status, answer.code]).toEqual([404, "TENANT_NOT_FOUND"]);
    await expectNothingWritten(instance);
  });

  it("R2: auth.api throws the same codes", async () => {
    const instance = await createInstance();
    const code = (error: unknown) => (error as APIError).body?.code;
    const without = await instance.api.signInEmailTenant({ body: credentials() }).catch(code);
    expect(without).toBe("TENANT_ID_REQUIRED");
    const body = { ...ANN, tenantId: "nobody" };
    const unknown = await instance.api.signUpEmailTenant({ body }).catch(code);
    expect(unknown).toBe("TENANT_NOT_FOUND");
    await expectNothingWritten(instance);
  });

  it("R1: auth.api takes it from the headers it is given, too", async () => {
    const instance = await createInstance();
    const { id } = await instance.createTenant();
    const headers = new Headers({ "x-tenant-id": id });
    const { user } = await instance.api.signUpEmailTenant({ body: ANN, headers });
    expect(user.tenantId).toBe(id);
  });
});
