import { describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import { BASE_URL } from "../support/instance";
import { databases } from "../support/servers";
import { createSocialInstance, GLOBAL, queryOf } from "../support/social";

const CALLBACK = `${BASE_URL}/tenant/callback/gitlab`;

describe.each(databases)("social sign-in on %s", (database) => {
  it("signs a new user up in the tenant, with the tenant's own credentials", async () => {
    const app = await createSocialInstance({ database });
    const tenant = await app.createTenant();
    const { clientId, clientSecret } = await app.configure(tenant.id);
    const browser = app.browser();

    const started = await app.start(browser, tenant.id);
    expect(started.status).toBe(200);
    expect(started.data).toEqual({ url: expect.any(String), redirect: true });
    expect(started.location).toBe(started.data.url);
    expect(started.data.url.startsWith(`${app.idp.issuer}/oauth/authorize?`)).toBe(true);
    expect(queryOf(started.data.url)).toMatchObject({
      client_id: clientId,
      redirect_uri: CALLBACK,
      response_type: "code",
      code_challenge_method: "S256",
    });

    const back = await browser.get(await app.idp.authorize(started.data.url, "alice"));
    expect(back.status).toBe(302);
    expect(back.location).toBe("/welcome");
    expect(app.idp.exchanges().map(({ params }) => params)).toEqual([
      expect.objectContaining({
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uri: CALLBACK,
      }),
    ]);

    const session = await app.whoIs(browser, tenant.id);
    expect(session?.session.tenantId).toBe(tenant.id);
    expect(session?.user).toMatchObject({ email: "alice@example.com", tenantId: tenant.id });
    const inTenant = [tenant.id];
    for (const table of ["user", "account", "session"]) {
      const column = app.database.quote("tenantId");
      expect(await app.rows(table, `${column} = ?`, inTenant)).toBe(1);
      expect(await app.rows(table)).toBe(1);
    }
    expect(await app.rows("verification")).toBe(0);
  });

  it("signs the same user in again", async () => {
    const app = await createSocialInstance({ database });
    const tenant = await app.createTenant();
    await app.configure(tenant.id);
    const first = app.browser();
    await app.signIn(first, tenant.id, { newUserCallbackURL: "/first-time" });
    const again = app.browser();
    const back = await app.signIn(again, tenant.id, { newUserCallbackURL: "/first-time" });

    expect(back.location).toBe("/welcome");
    const [before, after] = [await app.whoIs(first, tenant.id), await app.whoIs(again, tenant.id)];
    expect(after?.user.id).toBe(before?.user.id);
    expect(after?.session.token).not.toBe(before?.session.token);
    expect([await app.rows("user"), await app.rows("account")]).toEqual([1, 1]);
  });

  it("keeps two people and two tenants apart", async () => {
    const app = await createSocialInstance({ database });
    const [a, b] = [await app.createTenant(), await app.createTenant()];
    await app.configure(a.id);
    const visits = [
      { tenant: a, username: "alice" },
      { tenant: a, username: "bob" },
      { tenant: b, username: "alice" },
    ];
    const ids = new Set<string | undefined>();
    for (const { tenant, username } of visits) {
      const browser = app.browser();
      await app.signIn(browser, tenant.id, {}, username);
      const session = await app.whoIs(browser, tenant.id);
      expect(session?.user.email).toBe(`${username}@example.com`);
      ids.add(session?.user.id);
      // R5: elsewhere it is no session.
      const other = tenant === a ? b : a;
      expect(await app.whoIs(browser, other.id)).toBeNull();
    }
    expect(ids.size).toBe(3);
  });

  it("runs database hooks inside the tenant, at the start and in the callback", async () => {
    const seen: string[] = [];
    const note = (model: string) => async () => {
      seen.push(`${model} ${getTenantId()}`);
    };
    const app = await createSocialInstance({
      database,
      auth: {
        databaseHooks: {
          user: { create: { before: note("user before"), after: note("user after") } },
          account: { create: { before: note("account before") } },
          session: { create: { before: note("session before"), after: note("session after") } },
          verification: { create: { before: note("state before") } },
        },
      },
    });
    const tenant = await app.createTenant();
    await app.signIn(app.browser(), tenant.id);
    expect(seen.toSorted()).toEqual(
      [
        `state before ${tenant.id}`,
        `user before ${tenant.id}`,
        `user after ${tenant.id}`,
        `account before ${tenant.id}`,
        `session before ${tenant.id}`,
        `session after ${tenant.id}`,
      ].toSorted(),
    );
  });
});

describe("which provider it is", () => {
  it("falls back to the global credentials, with the tenants' callback", async () => {
    const app = await createSocialInstance();
    const tenant = await app.createTenant();
    const browser = app.browser();
    const back = await app.signIn(browser, tenant.id);
    expect(back.location).toBe("/welcome");
    expect(app.idp.exchanges()[0]?.params).toMatchObject({
      client_id: GLOBAL.clientId,
      client_secret: GLOBAL.clientSecret,
      redirect_uri: CALLBACK,
    });
    expect((await app.whoIs(browser, tenant.id))?.session.tenantId).toBe(tenant.id);
  });

  it("falls back when the tenant's config is disabled, and when another tenant has one", async () => {
    const app = await createSocialInstance();
    const [a, b] = [await app.createTenant(), await app.createTenant()];
    await app.configure(a.id, { enabled: false });
    await app.configure(b.id);
    const started = await app.start(app.browser(), a.id);
    expect(queryOf(started.data.url).client_id).toBe(GLOBAL.clientId);
  });

  it("does not use a global provider's own redirectURI", async () => {
    const app = await createSocialInstance({
      gitlab: { redirectURI: "https://elsewhere.example/cb" },
    });
    const [own, shared] = [await app.createTenant(), await app.createTenant()];
    await app.configure(own.id);
    for (const { id } of [own, shared]) {
      const browser = app.browser();
      expect((await app.signIn(browser, id)).location).toBe("/welcome");
    }
    const uris = app.idp.requests.map(({ params }) => params.redirect_uri).filter(Boolean);
    expect(new Set(uris)).toEqual(new Set([CALLBACK]));
  });

  it("sends the config's redirectURI to both endpoints of the provider", async () => {
    const app = await createSocialInstance();
    const tenant = await app.createTenant();
    const redirectURI = "https://login.tenant.example/back";
    await app.configure(tenant.id, { redirectURI });
    const browser = app.browser();
    const url = await app.authorize(browser, tenant.id);
    expect(url.startsWith(`${redirectURI}?`)).toBe(true);
    // The tenant's host hands the request on to the callback.
    const back = await browser.get("/tenant/callback/gitlab", { query: queryOf(url) });
    expect(back.location).toBe("/welcome");
    expect(app.idp.exchanges()[0]?.params.redirect_uri).toBe(redirectURI);
  });

  it.each([
    ["nothing is configured", {}],
    ["the config is disabled", { enabled: false }],
  ])("answers 404 PROVIDER_NOT_FOUND when %s and there is no global one", async (_, config) => {
    const app = await createSocialInstance({ gitlab: false });
    const [tenant, other] = [await app.createTenant(), await app.createTenant()];
    await app.configure(other.id);
    if ("enabled" in config) await app.configure(tenant.id, config);
    const answer = await app.start(app.browser(), tenant.id);
    expect([answer.status, answer.code]).toEqual([404, "PROVIDER_NOT_FOUND"]);
    expect(answer.location).toBeNull();
    expect(await app.rows("verification")).toBe(0);
  });

  it("finds a tenant's config where there is no global provider", async () => {
    const app = await createSocialInstance({ gitlab: false });
    const tenant = await app.createTenant();
    await app.configure(tenant.id);
    const browser = app.browser();
    expect((await app.signIn(browser, tenant.id)).location).toBe("/welcome");
    // The platform has none, and does not get the tenant's.
    const platform = await app.start(app.browser(), null);
    expect([platform.status, platform.code]).toEqual([404, "PROVIDER_NOT_FOUND"]);
  });

  it("answers 404 PROVIDER_NOT_FOUND to what is no provider at all", async () => {
    const app = await createSocialInstance();
    const tenant = await app.createTenant();
    const answer = await app.start(app.browser(), tenant.id, { provider: "nobody" });
    expect([answer.status, answer.code]).toEqual([404, "PROVIDER_NOT_FOUND"]);
  });

  it("R2: a tenant is needed, and has to exist", async () => {
    const app = await createSocialInstance();
    const browser = app.browser();
    const none = await browser.post("/tenant/sign-in/social", { provider: "gitlab" });
    expect([none.status, none.code]).toEqual([400, "TENANT_ID_REQUIRED"]);
    const unknown = await app.start(browser, "no-such-tenant");
    expect([unknown.status, unknown.code]).toEqual([404, "TENANT_NOT_FOUND"]);
    expect(await app.rows("verification")).toBe(0);
  });

  it("R1: the header names the tenant as well, here and at better-auth's own endpoint", async () => {
    const app = await createSocialInstance();
    const tenant = await app.createTenant();
    const { clientId } = await app.configure(tenant.id);
    for (const path of ["/tenant/sign-in/social", "/sign-in/social"]) {
      const browser = app.browser({ "x-tenant-id": tenant.id });
      const started = await browser.post<{ url: string }>(path, {
        provider: "gitlab",
        callbackURL: "/welcome",
      });
      expect(queryOf(started.data.url)).toMatchObject({
        client_id: clientId,
        redirect_uri: CALLBACK,
      });
      // A provider sends the browser back without any header of ours.
      const back = await browser.fork({}).get(await app.idp.authorize(started.data.url, "alice"));
      expect(back.location).toBe("/welcome");
    }
    expect(await app.rows("user")).toBe(1);
    expect(await app.rows("session", `${app.database.quote("tenantId")} = ?`, [tenant.id])).toBe(2);
  });
});

describe("server calls", () => {
  it("starts from the server's own code, and the browser finishes", async () => {
    const app = await createSocialInstance();
    const tenant = await app.createTenant();
    const { clientId } = await app.configure(tenant.id);
    const { response, headers } = await app.api.signInSocialTenant({
      body: { tenantId: tenant.id, provider: "gitlab", callbackURL: "/welcome" },
      returnHeaders: true,
    });
    expect(response).toEqual({ url: expect.any(String), redirect: true });
    expect(headers.get("location")).toBe(response.url);
    expect(queryOf(response.url ?? "").client_id).toBe(clientId);

    const person = app.browser();
    person.keepCookies(headers);
    const back = await person.get(await app.idp.authorize(response.url ?? "", "alice"));
    expect(back.location).toBe("/welcome");
    expect((await app.whoIs(person, tenant.id))?.user.tenantId).toBe(tenant.id);
  });

  it("throws PROVIDER_NOT_FOUND", async () => {
    const app = await createSocialInstance({ gitlab: false });
    const tenant = await app.createTenant();
    const call = app.api.signInSocialTenant({ body: { tenantId: tenant.id, provider: "gitlab" } });
    await expect(call).rejects.toMatchObject({
      statusCode: 404,
      body: { code: "PROVIDER_NOT_FOUND" },
    });
  });
});
