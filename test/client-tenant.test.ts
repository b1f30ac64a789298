import { describe, expect, test, vi } from "vitest";
import { bySlug } from "../src/index";
import { asOperator, connect, somebody } from "./support/client";
import { createInstance, PASSWORD } from "./support/instance";

const nobody = { code: "INVALID_EMAIL_OR_PASSWORD", status: 401 };

describe("the tenant on every request", () => {
  async function twoTenants() {
    const instance = await createInstance();
    const acme = await instance.createTenant("acme");
    const globex = await instance.createTenant("globex");
    await instance.signUp(acme.id, "al@example.com");
    return { instance, acme, globex };
  }
  const al = { email: "al@example.com", password: PASSWORD };

  test("no option, no header", async () => {
    const { instance } = await twoTenants();
    const { authClient, sent } = connect(instance);
    await authClient.getSession();
    await authClient.tenant.list();
    expect(sent.map(({ headers }) => headers.get("x-tenant-id"))).toEqual([null, null]);
  });

  test("a string: better-auth's own endpoints run inside the tenant", async () => {
    const { instance, acme, globex } = await twoTenants();
    const inAcme = connect(instance, { tenant: { tenantId: acme.id } });
    const inGlobex = connect(instance, { tenant: { tenantId: globex.id } });

    expect((await inGlobex.authClient.signIn.email(al)).error).toMatchObject(nobody);
    const { data } = await inAcme.authClient.signIn.email(al);
    expect(data?.user.tenantId).toBe(acme.id);
    expect((await inAcme.authClient.getSession()).data?.session.tenantId).toBe(acme.id);
    await inAcme.authClient.tenant.list();
    await inAcme.authClient.$fetch("/ok");

    expect(inAcme.sent.map(({ path }) => path)).toEqual([
      "/sign-in/email",
      "/get-session",
      "/tenant/list",
      "/ok",
    ]);
    for (const { headers } of inAcme.sent) expect(headers.get("x-tenant-id")).toBe(acme.id);
  });

  test("signUp and signIn need no tenant in the body then", async () => {
    const { instance, acme } = await twoTenants();
    const { authClient } = connect(instance, { tenant: { tenantId: acme.id } });
    const signedUp = await authClient.tenant.signUp.email(somebody("bo@example.com"));
    expect(signedUp.data?.user.tenantId).toBe(acme.id);
    const signedIn = await authClient.tenant.signIn.email(al);
    expect(signedIn.data?.session?.tenantId).toBe(acme.id);
  });

  test("a function is asked before every request", async () => {
    const { instance, acme, globex } = await twoTenants();
    let here = acme.id;
    const tenantId = vi.fn(() => here);
    const { authClient, sent } = connect(instance, { tenant: { tenantId } });
    expect(tenantId).not.toHaveBeenCalled();

    expect((await authClient.tenant.signIn.email(al)).error).toBeNull();
    here = globex.id;
    expect((await authClient.tenant.signIn.email(al)).error).toMatchObject(nobody);

    expect(sent.map(({ headers }) => headers.get("x-tenant-id"))).toEqual([acme.id, globex.id]);
    expect(tenantId).toHaveBeenCalledTimes(2);
  });

  test.each([
    ["null", () => null],
    ["undefined", () => undefined],
    ["an empty string", () => ""],
    ["an empty string, not from a function", ""],
  ])("no header for %s", async (_, tenantId) => {
    const { instance } = await twoTenants();
    const { authClient, last } = connect(instance, { tenant: { tenantId } });
    const { error } = await authClient.tenant.signIn.email(al);
    expect(last().headers.has("x-tenant-id")).toBe(false);
    expect(error).toMatchObject({ code: "TENANT_ID_REQUIRED", status: 400 });
  });

  test("tenantHeader: another header, on both sides", async () => {
    const instance = await createInstance({ tenant: { tenantHeader: "x-organisation" } });
    const acme = await instance.createTenant("acme");
    const tenant = { tenantId: acme.id, tenantHeader: "X-Organisation" };
    const { authClient, last } = connect(instance, { tenant });

    const { data } = await authClient.tenant.signUp.email(somebody("al@example.com"));

    expect(data?.user.tenantId).toBe(acme.id);
    expect(last().headers.get("x-organisation")).toBe(acme.id);
    expect(last().headers.has("x-tenant-id")).toBe(false);
  });

  test("a header of the call wins, in any case of letters", async () => {
    const { instance, acme, globex } = await twoTenants();
    const { authClient, last } = connect(instance, { tenant: { tenantId: globex.id } });

    const { data } = await authClient.tenant.signIn.email(al, {
      headers: { "X-Tenant-Id": acme.id },
    });

    expect(last().headers.get("x-tenant-id")).toBe(acme.id);
    expect(data?.session?.tenantId).toBe(acme.id);
  });

  test("a header of the application's fetch options wins as well", async () => {
    const { instance, acme, globex } = await twoTenants();
    const headers = { "x-tenant-id": acme.id };
    const { authClient } = connect(instance, { tenant: { tenantId: globex.id }, headers });
    expect((await authClient.signIn.email(al)).data?.user.tenantId).toBe(acme.id);
  });

  test("R1: the body wins over the header of the option", async () => {
    const { instance, acme, globex } = await twoTenants();
    const { authClient } = connect(instance, { tenant: { tenantId: globex.id } });
    const { data } = await authClient.tenant.signIn.email({ ...al, tenantId: acme.id });
    expect(data?.session?.tenantId).toBe(acme.id);
  });

  test("R7: an operator's client with a tenant still manages all of them", async () => {
    const { instance, acme, globex } = await twoTenants();
    const { authClient } = await asOperator(instance, { tenantId: acme.id });
    const { data, error } = await authClient.tenant.get({ query: { id: globex.id } });
    expect(error).toBeNull();
    expect(data?.slug).toBe("globex");
  });

  test("with cookies per tenant two tenants are open in one browser at once", async () => {
    const instance = await createInstance({ tenant: { sessionCookies: "per-tenant" } });
    const browser = instance.browser();
    const clients = [];
    for (const slug of ["acme", "globex"]) {
      const { id } = await instance.createTenant(slug);
      const { authClient } = connect(instance, { browser, tenant: { tenantId: id } });
      expect((await authClient.tenant.signUp.email(somebody(al.email))).error).toBeNull();
      clients.push({ authClient, id });
    }
    for (const { authClient, id } of clients) {
      const { data } = await authClient.getSession();
      expect(data?.session.tenantId).toBe(id);
    }
  });

  test("R5: a session of elsewhere is none here, and stays alive where it belongs", async () => {
    const { instance, acme, globex } = await twoTenants();
    const inAcme = connect(instance, { tenant: { tenantId: acme.id } });
    const { data } = await inAcme.authClient.signIn.email(al);
    const { browser } = inAcme;
    const inGlobex = connect(instance, { browser, tenant: { tenantId: globex.id } });

    expect(await inGlobex.authClient.getSession()).toMatchObject({ data: null, error: null });
    expect((await inAcme.authClient.getSession()).data?.session.token).toBe(data?.token);
  });
});

describe("the slug on every request", () => {
  const al = { email: "al@example.com", password: PASSWORD };

  async function twoTenants(header?: string) {
    const resolveTenantId = bySlug(header ? { header } : {});
    const instance = await createInstance({ tenant: { resolveTenantId } });
    const acme = await instance.createTenant("acme");
    const globex = await instance.createTenant("globex");
    await instance.signUp(acme.id, al.email);
    return { instance, acme, globex };
  }

  test("the address of the page is enough, and is read before every request", async () => {
    const { instance, acme } = await twoTenants();
    let pathname = "/t/acme/sign-in";
    const tenantSlug = () => /^\/t\/([^/]+)/.exec(pathname)?.[1];
    const { authClient, last } = connect(instance, { tenant: { tenantSlug } });

    expect((await authClient.signIn.email(al)).data?.user.tenantId).toBe(acme.id);
    expect((await authClient.getSession()).data?.session.tenantId).toBe(acme.id);
    expect(last().headers.get("x-tenant-slug")).toBe("acme");
    expect(last().headers.has("x-tenant-id")).toBe(false);
    pathname = "/t/globex";
    expect((await authClient.getSession()).data).toBeNull();
    expect((await authClient.tenant.signIn.email(al)).error).toMatchObject(nobody);
    pathname = "/t/nobody";
    expect((await authClient.getSession()).error).toMatchObject({ code: "TENANT_NOT_FOUND" });
    pathname = "/pricing";
    await authClient.getSession();
    expect(last().headers.has("x-tenant-slug")).toBe(false);
  });

  test("slugHeader: another header, on both sides; a header of the call wins", async () => {
    const { instance, acme, globex } = await twoTenants("x-shop");
    const tenant = { tenantSlug: "globex", slugHeader: "X-Shop" };
    const { authClient, last } = connect(instance, { tenant });
    const { data } = await authClient.tenant.signUp.email(somebody("bo@example.com"));
    expect(data?.user.tenantId).toBe(globex.id);
    expect(last().headers.get("x-shop")).toBe("globex");
    const signedIn = await authClient.signIn.email(al, { headers: { "x-shop": "acme" } });
    expect(signedIn.data?.user.tenantId).toBe(acme.id);
  });

  test("R1: an id wins, be it in the body or in its header, and only one of both is sent", async () => {
    const { instance, acme, globex } = await twoTenants();
    const both = connect(instance, { tenant: { tenantId: acme.id, tenantSlug: "globex" } });
    expect((await both.authClient.signIn.email(al)).data?.user.tenantId).toBe(acme.id);
    const slug = connect(instance, { tenant: { tenantSlug: "globex" } });
    const headers = { "x-tenant-id": acme.id };
    const onCall = await slug.authClient.signIn.email({ ...al, fetchOptions: { headers } });
    expect(onCall.data?.user.tenantId).toBe(acme.id);
    const { authClient } = connect(instance, { tenant: { tenantSlug: globex.slug } });
    const { data } = await authClient.tenant.signIn.email({ ...al, tenantId: acme.id });
    expect(data?.session?.tenantId).toBe(acme.id);
  });
});
