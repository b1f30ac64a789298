import { describe, expect, test } from "vitest";
import { TENANT_AUTH_ERROR_CODES, tenantAuthClient } from "../src/client";
import { TENANT_AUTH_ERROR_CODES as SERVER_ERROR_CODES } from "../src/index";
import { asOperator, connect, google, somebody } from "./support/client";
import { PASSWORD } from "./support/instance";
import { interceptFetch } from "./support/providers";
import { createWorld, EMAIL, shareWorld } from "./support/world";

const world = shareWorld({ auth: { socialProviders: { google } } });

type Connected = ReturnType<typeof connect>;

/** A call that works: what was sent for it, and the answer. */
async function expectSent<T>(
  { last }: Connected,
  call: Promise<{ data: T | null; error: unknown }>,
  request: string,
  sent: object,
): Promise<T> {
  const { data, error } = await call;
  const { method, path, body, query } = last();
  expect(error).toBeNull();
  expect(`${method} ${path}`).toBe(request);
  expect({ body, query }).toEqual(
    method === "GET" ? { body: undefined, query: sent } : { body: sent, query: {} },
  );
  if (!data) throw new Error("no data");
  return data;
}

describe("calls about tenants", () => {
  test("create, get by id and by slug, update, delete", async () => {
    const client = await asOperator(world);
    const { tenant } = client.authClient;
    const input = { name: "Initech", slug: "initech", metadata: { plan: "pro", seats: 5 } };
    const made = await expectSent(client, tenant.create(input), "POST /tenant/create", input);
    expect(made).toMatchObject(input);
    // better-auth's client turns dates back into dates, as the types say.
    expect(made.createdAt).toBeInstanceOf(Date);
    for (const query of [{ id: made.id }, { slug: "initech" }]) {
      expect(await expectSent(client, tenant.get({ query }), "GET /tenant/get", query)).toEqual(
        made,
      );
    }
    const change = { tenantId: made.id, name: "Initrode", slug: "initrode", metadata: null };
    const changed = tenant.update(change);
    expect(await expectSent(client, changed, "POST /tenant/update", change)).toMatchObject({
      id: made.id,
      name: "Initrode",
      slug: "initrode",
    });
    const body = { tenantId: made.id };
    const deleted = await expectSent(client, tenant.delete(body), "POST /tenant/delete", body);
    expect(deleted).toEqual({ success: true });
    expect(await world.rows("tenant", "id = ?", [made.id])).toBe(0);
  });

  test("list, without any argument and a part of it", async () => {
    for (const slug of ["shop-1", "shop-2", "shop-3"]) await world.createTenant(slug);
    const client = await asOperator(world);
    const { tenant } = client.authClient;
    const all = await expectSent(client, tenant.list(), "GET /tenant/list", {});
    expect(all).toHaveLength(await world.rows("tenant"));
    const query = { limit: 2, offset: 1, search: "shop", sort: "-slug" } as const;
    const sent = { ...query, limit: "2", offset: "1" };
    const part = await expectSent(client, tenant.list({ query }), "GET /tenant/list", sent);
    expect(part.map(({ slug }) => slug)).toEqual(["shop-2", "shop-1"]);
  });
});

describe("calls to sign in", () => {
  test("signUp.email and signIn.email, with the tenant in the body, and the session of it", async () => {
    const { id: tenantId } = await world.createTenant();
    const client = connect(world);
    const { tenant, getSession } = client.authClient;
    const input = { ...somebody(EMAIL), tenantId, rememberMe: true };
    const path = "POST /tenant/sign-up/email";
    const signedUp = await expectSent(client, tenant.signUp.email(input), path, input);
    expect(signedUp.user).toMatchObject({ email: EMAIL, tenantId });
    expect(signedUp.session).toMatchObject({ tenantId, token: signedUp.token });
    expect(await world.rowsIn(tenantId, "user")).toHaveLength(1);

    const person = { tenantId, email: EMAIL, password: PASSWORD };
    const signIn = tenant.signIn.email(person);
    const { token, ...rest } = await expectSent(
      client,
      signIn,
      "POST /tenant/sign-in/email",
      person,
    );
    expect(rest).toMatchObject({ redirect: false, user: { email: EMAIL }, session: { tenantId } });
    const { data } = await getSession();
    expect(data).toMatchObject({ session: { token, tenantId }, user: { tenantId } });
  });

  test("signIn.social", async () => {
    const client = connect(world);
    const provider = { provider: "google", callbackURL: "/welcome", errorCallbackURL: "/sorry" };
    const input = { tenantId: String(world.ids.acme), ...provider };
    const call = client.authClient.tenant.signIn.social(input);
    const { redirect, url } = await expectSent(client, call, "POST /tenant/sign-in/social", input);
    expect(redirect).toBe(true);
    expect(new URL(url ?? "").searchParams.get("client_id")).toBe(google.clientId);
  });
});

test("calls about OAuth configs: register, list, update, check, delete", async () => {
  interceptFetch({});
  const { id: tenantId } = await world.createTenant();
  const client = await asOperator(world);
  const { oauthConfig } = client.authClient.tenant;
  const path = (name: string) => `POST /tenant/oauth-config/${name}`;
  const config = { providerId: "google", clientId: "acme-id", clientSecret: "acme-secret" };
  const input = { ...config, tenantId, scopes: ["email"], enabled: false };
  const made = await expectSent(client, oauthConfig.register(input), path("register"), input);
  const { clientSecret, ...answered } = input;
  expect(made).toMatchObject(answered);
  expect(JSON.stringify(made)).not.toContain(clientSecret);

  const query = { tenantId };
  const list = "GET /tenant/oauth-config/list";
  const byQuery = await expectSent(client, oauthConfig.list({ query }), list, query);
  expect(byQuery).toEqual([made]);
  const ofTenant = await asOperator(world, { tenantId });
  const byHeader = ofTenant.authClient.tenant.oauthConfig.list();
  expect(await expectSent(ofTenant, byHeader, list, {})).toEqual(byQuery);

  const change = { tenantId, providerId: "google", options: { hd: "acme.example" }, enabled: true };
  const changed = await expectSent(client, oauthConfig.update(change), path("update"), change);
  expect(changed).toMatchObject({ ...change, clientId: "acme-id" });

  const tried = { ...config, tenantId };
  const checked = await expectSent(client, oauthConfig.check(tried), path("check"), tried);
  const redirectURI = "http://localhost:3000/api/auth/tenant/callback/google";
  expect(checked).toMatchObject({ providerId: "google", ok: false, redirectURI });

  const body = { tenantId, providerId: "google" };
  const deleted = await expectSent(client, oauthConfig.delete(body), path("delete"), body);
  expect(deleted).toEqual({ success: true });
  expect(await world.rowsIn(tenantId, "tenantOauthConfig")).toEqual([]);
});

describe("errors", () => {
  test("are comparable with the exported codes, which are the server's", async () => {
    const { authClient } = await asOperator(world);
    const missing = await authClient.tenant.get({ query: { id: "missing" } });
    expect(missing.data).toBeNull();
    const { code, message } = TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND;
    expect(missing.error).toMatchObject({ code, message, status: 404 });
    expect(TENANT_AUTH_ERROR_CODES).toEqual(SERVER_ERROR_CODES);
    expect(tenantAuthClient().$ERROR_CODES).toEqual(SERVER_ERROR_CODES);
  });

  test("without a session: 401, and nothing is written", async () => {
    const { tenant } = connect(world).authClient;
    const call = () => tenant.create({ name: "New", slug: "new" });
    const { data, error } = await world.unchanged(call);
    expect(data).toBeNull();
    expect(error).toMatchObject({ code: "UNAUTHORIZED", status: 401 });
  });

  test("with `throw` the data comes alone and errors are thrown", async () => {
    const { tenant } = (await asOperator(world)).authClient;
    const input = { name: "Once", slug: "once", fetchOptions: { throw: true } } as const;
    expect((await tenant.create(input)).slug).toBe("once");
    await expect(tenant.create(input)).rejects.toMatchObject({
      status: 409,
      error: { code: "TENANT_ALREADY_EXISTS" },
    });
  });
});

test("with cookies per tenant two tenants are open in one browser at once", async () => {
  const perTenant = await createWorld({ tenant: { sessionCookies: "per-tenant" } });
  const browser = perTenant.browser();
  const clients = (["acme", "globex"] as const).map((place) => {
    const tenantId = String(perTenant.ids[place]);
    return { tenantId, ...connect(perTenant, { browser, tenant: { tenantId } }) };
  });
  for (const { authClient } of clients) {
    expect((await authClient.tenant.signUp.email(somebody(EMAIL))).error).toBeNull();
  }
  for (const { authClient, tenantId } of clients) {
    expect((await authClient.getSession()).data?.session.tenantId).toBe(tenantId);
  }
});
