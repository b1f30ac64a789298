import { beforeAll, describe, expect, test, vi } from "vitest";
import type { TenantAuthClientOptions } from "../src/client";
import { bySlug } from "../src/index";
import { asOperator, connect, somebody } from "./support/client";
import { PASSWORD } from "./support/instance";
import { createWorld, EMAIL, shareWorld } from "./support/world";

const jane = { email: EMAIL, password: PASSWORD };
const nobody = { code: "INVALID_EMAIL_OR_PASSWORD", status: 401 };

describe("the tenant on every request", () => {
  const world = shareWorld();
  const ids = { acme: "", globex: "" };
  // Jane is somebody at Acme only.
  beforeAll(async () => {
    const { acme, globex } = world.ids;
    Object.assign(ids, { acme, globex });
    await world.as("jane", "acme");
  });

  const at = (tenantId: TenantAuthClientOptions["tenantId"]) =>
    connect(world, { tenant: { tenantId } });

  test("no option, no header", async () => {
    const { authClient, sent } = connect(world);
    await authClient.getSession();
    await authClient.tenant.list();
    expect(sent.map(({ headers }) => headers.get("x-tenant-id"))).toEqual([null, null]);
  });

  test("a string: better-auth's own endpoints run inside the tenant", async () => {
    const [inAcme, inGlobex] = [at(ids.acme), at(ids.globex)];
    expect((await inGlobex.authClient.signIn.email(jane)).error).toMatchObject(nobody);
    const { data } = await inAcme.authClient.signIn.email(jane);
    expect(data?.user.tenantId).toBe(ids.acme);
    expect((await inAcme.authClient.getSession()).data?.session.tenantId).toBe(ids.acme);
    await inAcme.authClient.tenant.list();
    await inAcme.authClient.$fetch("/ok");
    const paths = ["/sign-in/email", "/get-session", "/tenant/list", "/ok"];
    const sent = inAcme.sent.map(({ path, headers }) => [path, headers.get("x-tenant-id")]);
    expect(sent).toEqual(paths.map((path) => [path, ids.acme]));
    // R5: a session of elsewhere is none here, and stays alive where it belongs.
    const { browser } = inAcme;
    const elsewhere = connect(world, { browser, tenant: { tenantId: ids.globex } });
    expect(await elsewhere.authClient.getSession()).toMatchObject({ data: null, error: null });
    expect((await inAcme.authClient.getSession()).data?.session.token).toBe(data?.token);
  });

  test("signUp and signIn need no tenant in the body then", async () => {
    const { signUp, signIn } = at(ids.acme).authClient.tenant;
    const signedUp = await signUp.email(somebody("bo@example.com"));
    expect(signedUp.data?.user.tenantId).toBe(ids.acme);
    expect((await signIn.email(jane)).data?.session?.tenantId).toBe(ids.acme);
  });

  test("a function is asked before every request", async () => {
    let here = ids.acme;
    const tenantId = vi.fn(() => here);
    const { authClient, sent } = at(tenantId);
    expect(tenantId).not.toHaveBeenCalled();
    expect((await authClient.tenant.signIn.email(jane)).error).toBeNull();
    here = ids.globex;
    expect((await authClient.tenant.signIn.email(jane)).error).toMatchObject(nobody);
    expect(sent.map(({ headers }) => headers.get("x-tenant-id"))).toEqual(Object.values(ids));
    expect(tenantId).toHaveBeenCalledTimes(2);
  });

  test.each([
    ["null", () => null],
    ["undefined", () => undefined],
    ["an empty string", () => ""],
    ["an empty string, not from a function", ""],
  ])("no header for %s", async (_, tenantId) => {
    const { authClient, last } = at(tenantId);
    const { error } = await authClient.tenant.signIn.email(jane);
    expect(last().headers.has("x-tenant-id")).toBe(false);
    expect(error).toMatchObject({ code: "TENANT_ID_REQUIRED", status: 400 });
  });

  test("tenantHeader: another header, on both sides", async () => {
    const other = await createWorld({ tenant: { tenantHeader: "x-organisation" } });
    const tenantId = String(other.ids.acme);
    const tenant = { tenantId, tenantHeader: "X-Organisation" };
    const { authClient, last } = connect(other, { tenant });
    const { data } = await authClient.tenant.signUp.email(somebody(EMAIL));
    expect(data?.user.tenantId).toBe(tenantId);
    expect(last().headers.get("x-organisation")).toBe(tenantId);
    expect(last().headers.has("x-tenant-id")).toBe(false);
  });

  test("R1: a header of the call, of the application's fetch options, or a body wins", async () => {
    const headers = { "X-Tenant-Id": ids.acme };
    const tenant = { tenantId: ids.globex };
    const { authClient, last } = connect(world, { tenant });
    const byCall = await authClient.tenant.signIn.email(jane, { headers });
    expect(byCall.data?.session?.tenantId).toBe(ids.acme);
    expect(last().headers.get("x-tenant-id")).toBe(ids.acme);
    const inBody = await authClient.tenant.signIn.email({ ...jane, tenantId: ids.acme });
    expect(inBody.data?.session?.tenantId).toBe(ids.acme);
    const byApplication = connect(world, { tenant, headers });
    const { data } = await byApplication.authClient.signIn.email(jane);
    expect(data?.user.tenantId).toBe(ids.acme);
  });

  test("R7: an operator's client with a tenant still manages all of them", async () => {
    const { authClient } = await asOperator(world, { tenantId: ids.acme });
    const { data, error } = await authClient.tenant.get({ query: { id: ids.globex } });
    expect([error, data?.slug]).toEqual([null, "globex"]);
  });
});

describe("the slug on every request", () => {
  async function createSlugWorld(header?: string) {
    const resolveTenantId = bySlug(header ? { header } : {});
    const world = await createWorld({ tenant: { resolveTenantId } });
    await world.as("jane", "acme");
    return { world, acme: String(world.ids.acme), globex: String(world.ids.globex) };
  }

  test("the address of the page is enough, and is read before every request", async () => {
    const { world, acme } = await createSlugWorld();
    let pathname = "/t/acme/sign-in";
    const tenantSlug = () => /^\/t\/([^/]+)/.exec(pathname)?.[1];
    const { authClient, last } = connect(world, { tenant: { tenantSlug } });
    expect((await authClient.signIn.email(jane)).data?.user.tenantId).toBe(acme);
    expect((await authClient.getSession()).data?.session.tenantId).toBe(acme);
    expect(last().headers.get("x-tenant-slug")).toBe("acme");
    expect(last().headers.has("x-tenant-id")).toBe(false);
    pathname = "/t/globex";
    expect((await authClient.getSession()).data).toBeNull();
    expect((await authClient.tenant.signIn.email(jane)).error).toMatchObject(nobody);
    pathname = "/t/nobody";
    expect((await authClient.getSession()).error).toMatchObject({ code: "TENANT_NOT_FOUND" });
    pathname = "/pricing";
    await authClient.getSession();
    expect(last().headers.has("x-tenant-slug")).toBe(false);
  });

  test("slugHeader: another header, on both sides; a header of the call wins", async () => {
    const { world, acme, globex } = await createSlugWorld("x-shop");
    const tenant = { tenantSlug: "globex", slugHeader: "X-Shop" };
    const { authClient, last } = connect(world, { tenant });
    const { data } = await authClient.tenant.signUp.email(somebody("bo@example.com"));
    expect(data?.user.tenantId).toBe(globex);
    expect(last().headers.get("x-shop")).toBe("globex");
    const signedIn = await authClient.signIn.email(jane, { headers: { "x-shop": "acme" } });
    expect(signedIn.data?.user.tenantId).toBe(acme);
  });

  test("R1: an id wins, be it in the body or in its header, and only one of both is sent", async () => {
    const { world, acme } = await createSlugWorld();
    const both = connect(world, { tenant: { tenantId: acme, tenantSlug: "globex" } });
    expect((await both.authClient.signIn.email(jane)).data?.user.tenantId).toBe(acme);
    expect(both.last().headers.has("x-tenant-slug")).toBe(false);
    const { authClient } = connect(world, { tenant: { tenantSlug: "globex" } });
    const headers = { "x-tenant-id": acme };
    const onCall = await authClient.signIn.email({ ...jane, fetchOptions: { headers } });
    expect(onCall.data?.user.tenantId).toBe(acme);
    const inBody = await authClient.tenant.signIn.email({ ...jane, tenantId: acme });
    expect(inBody.data?.session?.tenantId).toBe(acme);
  });
});
