import { describe, expect, test } from "vitest";
import { TENANT_AUTH_ERROR_CODES, tenantAuthClient } from "../src/client";
import { TENANT_AUTH_ERROR_CODES as SERVER_ERROR_CODES } from "../src/index";
import { asOperator, connect, google, somebody } from "./support/client";
import { createInstance, PASSWORD } from "./support/instance";
import { interceptFetch } from "./support/providers";

describe("tenants", () => {
  test("create", async () => {
    const instance = await createInstance();
    const { authClient, last } = await asOperator(instance);
    const input = { name: "Acme", slug: "acme", metadata: { plan: "pro", seats: 5 } };

    const { data, error } = await authClient.tenant.create(input);

    expect(last()).toMatchObject({ method: "POST", path: "/tenant/create", query: {} });
    expect(last().body).toEqual(input);
    expect(error).toBeNull();
    expect(data).toMatchObject(input);
    // better-auth's client turns dates back into dates, as the types say.
    expect(data?.createdAt).toBeInstanceOf(Date);
    expect(await instance.rows("tenant", "slug = ?", ["acme"])).toBe(1);
  });

  test("get, by id and by slug", async () => {
    const instance = await createInstance();
    const acme = await instance.createTenant("acme");
    const { authClient, last } = await asOperator(instance);

    for (const query of [{ id: acme.id }, { slug: "acme" }]) {
      const { data, error } = await authClient.tenant.get({ query });
      expect(last()).toMatchObject({ method: "GET", path: "/tenant/get", body: undefined });
      expect(last().query).toEqual(query);
      expect(error).toBeNull();
      expect(data).toEqual(acme);
    }
  });

  test("list, without any argument", async () => {
    const instance = await createInstance();
    const acme = await instance.createTenant("acme");
    const globex = await instance.createTenant("globex");
    const { authClient, last } = await asOperator(instance);

    const { data, error } = await authClient.tenant.list();

    expect(last()).toMatchObject({ method: "GET", path: "/tenant/list", query: {} });
    expect(last().body).toBeUndefined();
    expect(error).toBeNull();
    expect(data?.map(({ id }) => id)).toEqual([acme.id, globex.id]);
  });

  test("list, a part of it", async () => {
    const instance = await createInstance();
    for (const slug of ["acme-1", "acme-2", "acme-3", "globex"]) await instance.createTenant(slug);
    const { authClient, last } = await asOperator(instance);

    const { data } = await authClient.tenant.list({
      query: { limit: 2, offset: 1, search: "acme", sort: "-slug" },
    });

    const query = { limit: "2", offset: "1", search: "acme", sort: "-slug" };
    expect(last()).toMatchObject({ method: "GET", path: "/tenant/list", query });
    expect(data?.map(({ slug }) => slug)).toEqual(["acme-2", "acme-1"]);
  });

  test("update", async () => {
    const instance = await createInstance();
    const acme = await instance.createTenant("acme");
    const { authClient, last } = await asOperator(instance);
    const input = { tenantId: acme.id, name: "Acme Corp", slug: "acme-corp", metadata: null };

    const { data, error } = await authClient.tenant.update(input);

    expect(last()).toMatchObject({ method: "POST", path: "/tenant/update", query: {} });
    expect(last().body).toEqual(input);
    expect(error).toBeNull();
    expect(data).toMatchObject({ id: acme.id, name: "Acme Corp", slug: "acme-corp" });
  });

  test("delete", async () => {
    const instance = await createInstance();
    const acme = await instance.createTenant("acme");
    const { authClient, last } = await asOperator(instance);

    const { data, error } = await authClient.tenant.delete({ tenantId: acme.id });

    expect(last()).toMatchObject({ method: "POST", path: "/tenant/delete", query: {} });
    expect(last().body).toEqual({ tenantId: acme.id });
    expect(error).toBeNull();
    expect(data).toEqual({ success: true });
    expect(await instance.rows("tenant")).toBe(0);
  });
});

describe("sign-in", () => {
  test("signUp.email, with the tenant in the body", async () => {
    const instance = await createInstance();
    const acme = await instance.createTenant("acme");
    const { authClient, last } = connect(instance);
    const input = { ...somebody("al@example.com"), tenantId: acme.id, rememberMe: true };

    const { data, error } = await authClient.tenant.signUp.email(input);

    expect(last()).toMatchObject({ method: "POST", path: "/tenant/sign-up/email", query: {} });
    expect(last().body).toEqual(input);
    expect(error).toBeNull();
    expect(data?.user).toMatchObject({ email: "al@example.com", tenantId: acme.id });
    expect(data?.session).toMatchObject({ tenantId: acme.id, token: data?.token });
    const where = `email = ? and ${instance.database.quote("tenantId")} = ?`;
    expect(await instance.rows("user", where, ["al@example.com", acme.id])).toBe(1);
  });

  test("signIn.email, and the session that comes of it", async () => {
    const instance = await createInstance();
    const acme = await instance.createTenant("acme");
    await instance.signUp(acme.id, "al@example.com");
    const { authClient, last } = connect(instance);
    const input = { tenantId: acme.id, email: "al@example.com", password: PASSWORD };

    const { data, error } = await authClient.tenant.signIn.email(input);

    expect(last()).toMatchObject({ method: "POST", path: "/tenant/sign-in/email", query: {} });
    expect(last().body).toEqual(input);
    expect(error).toBeNull();
    expect(data).toMatchObject({ redirect: false, user: { email: "al@example.com" } });
    expect(data?.session?.tenantId).toBe(acme.id);
    const session = await authClient.getSession();
    expect(session.data?.session).toMatchObject({ token: data?.token, tenantId: acme.id });
    expect(session.data?.user.tenantId).toBe(acme.id);
  });

  test("signIn.social", async () => {
    const instance = await createInstance({ auth: { socialProviders: { google } } });
    const acme = await instance.createTenant("acme");
    const { authClient, last } = connect(instance);
    const input = {
      tenantId: acme.id,
      provider: "google",
      callbackURL: "/welcome",
      errorCallbackURL: "/sorry",
    };

    const { data, error } = await authClient.tenant.signIn.social(input);

    expect(last()).toMatchObject({ method: "POST", path: "/tenant/sign-in/social", query: {} });
    expect(last().body).toEqual(input);
    expect(error).toBeNull();
    expect(data?.redirect).toBe(true);
    expect(new URL(data?.url ?? "").searchParams.get("client_id")).toBe(google.clientId);
  });
});

describe("OAuth configs", () => {
  const config = { providerId: "google", clientId: "acme-id", clientSecret: "acme-secret" };

  test("register", async () => {
    const instance = await createInstance();
    const acme = await instance.createTenant("acme");
    const { authClient, last } = await asOperator(instance);
    const input = { ...config, tenantId: acme.id, scopes: ["email"], enabled: false };

    const { data, error } = await authClient.tenant.oauthConfig.register(input);

    expect(last()).toMatchObject({ method: "POST", path: "/tenant/oauth-config/register" });
    expect(last().body).toEqual(input);
    expect(error).toBeNull();
    const { clientSecret, ...answered } = input;
    expect(data).toMatchObject(answered);
    expect(JSON.stringify(data)).not.toContain(clientSecret);
    expect(await instance.rows("tenantOauthConfig")).toBe(1);
  });

  test("list, with the tenant in the query and from the option", async () => {
    const instance = await createInstance();
    const acme = await instance.createTenant("acme");
    await instance.api.registerTenantOAuthConfig({ body: { ...config, tenantId: acme.id } });
    const plain = await asOperator(instance);
    const ofAcme = await asOperator(instance, { tenantId: acme.id });

    const byQuery = await plain.authClient.tenant.oauthConfig.list({
      query: { tenantId: acme.id },
    });
    expect(plain.last()).toMatchObject({ method: "GET", path: "/tenant/oauth-config/list" });
    expect(plain.last().query).toEqual({ tenantId: acme.id });
    expect(byQuery.error).toBeNull();
    expect(byQuery.data?.map(({ clientId }) => clientId)).toEqual(["acme-id"]);

    const byHeader = await ofAcme.authClient.tenant.oauthConfig.list();
    expect(ofAcme.last()).toMatchObject({ method: "GET", query: {}, body: undefined });
    expect(byHeader.data).toEqual(byQuery.data);
  });

  test("update", async () => {
    const instance = await createInstance();
    const acme = await instance.createTenant("acme");
    await instance.api.registerTenantOAuthConfig({ body: { ...config, tenantId: acme.id } });
    const { authClient, last } = await asOperator(instance);
    const input = { tenantId: acme.id, providerId: "google", options: { hd: "acme.example" } };

    const { data, error } = await authClient.tenant.oauthConfig.update(input);

    expect(last()).toMatchObject({ method: "POST", path: "/tenant/oauth-config/update" });
    expect(last().body).toEqual(input);
    expect(error).toBeNull();
    expect(data).toMatchObject({ ...input, clientId: "acme-id", enabled: true });
  });

  test("check", async () => {
    interceptFetch({});
    const instance = await createInstance();
    const acme = await instance.createTenant("acme");
    const { authClient, last } = await asOperator(instance);
    const input = { ...config, tenantId: acme.id };

    const { data, error } = await authClient.tenant.oauthConfig.check(input);

    expect(last()).toMatchObject({ method: "POST", path: "/tenant/oauth-config/check" });
    expect(last().body).toEqual(input);
    expect(error).toBeNull();
    expect(data).toMatchObject({
      providerId: "google",
      ok: false,
      redirectURI: "http://localhost:3000/api/auth/tenant/callback/google",
    });
  });

  test("delete", async () => {
    const instance = await createInstance();
    const acme = await instance.createTenant("acme");
    await instance.api.registerTenantOAuthConfig({ body: { ...config, tenantId: acme.id } });
    const { authClient, last } = await asOperator(instance);
    const input = { tenantId: acme.id, providerId: "google" };

    const { data, error } = await authClient.tenant.oauthConfig.delete(input);

    expect(last()).toMatchObject({ method: "POST", path: "/tenant/oauth-config/delete" });
    expect(last().body).toEqual(input);
    expect(error).toBeNull();
    expect(data).toEqual({ success: true });
    expect(await instance.rows("tenantOauthConfig")).toBe(0);
  });
});

describe("errors", () => {
  test("are comparable with the exported codes, which are the server's", async () => {
    const instance = await createInstance();
    const { authClient } = await asOperator(instance);
    const missing = await authClient.tenant.get({ query: { id: "missing" } });
    expect(missing.data).toBeNull();
    expect(missing.error?.code).toBe(TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND.code);
    expect(missing.error?.message).toBe(TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND.message);
    expect(missing.error?.status).toBe(404);
    expect(TENANT_AUTH_ERROR_CODES).toEqual(SERVER_ERROR_CODES);
    expect(tenantAuthClient().$ERROR_CODES).toEqual(SERVER_ERROR_CODES);
  });

  test("without a session: 401, and nothing is written", async () => {
    const instance = await createInstance();
    const { authClient } = connect(instance);
    const { data, error } = await authClient.tenant.create({ name: "Acme", slug: "acme" });
    expect(data).toBeNull();
    expect(error).toMatchObject({ code: "UNAUTHORIZED", status: 401 });
    expect(await instance.rows("tenant")).toBe(0);
  });

  test("with `throw` the data comes alone and errors are thrown", async () => {
    const instance = await createInstance();
    const { authClient } = await asOperator(instance);
    const fetchOptions = { throw: true } as const;

    const acme = await authClient.tenant.create({ name: "Acme", slug: "acme", fetchOptions });
    expect(acme.slug).toBe("acme");

    const again = authClient.tenant.create({ name: "Acme", slug: "acme", fetchOptions });
    await expect(again).rejects.toMatchObject({
      status: 409,
      error: { code: "TENANT_ALREADY_EXISTS" },
    });
  });
});
