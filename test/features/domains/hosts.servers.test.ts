import { describe, expect, it, onTestFinished, vi } from "vitest";
import { tenantDomains } from "../../../src/features/domains/index";
import { byDomain, bySlug, bySubdomain, firstOf } from "../../../src/index";
import { Browser } from "../../support/browser";
import { createInstance, PASSWORD } from "../../support/instance";
import { createWorld, outcome, SUBDOMAINS } from "../../support/world";
import { APP, createDomains, OWN_HOSTS, SUBDOMAINS_AND_DOMAINS, shareDomains } from "./world";

const NOT_FOUND = [404, "TENANT_NOT_FOUND"];
const app = shareDomains({
  auth: { baseURL: OWN_HOSTS, socialProviders: { google: { clientId: "g", clientSecret: "g" } } },
  hosts: { names: SUBDOMAINS.names, resolveTenantId: SUBDOMAINS_AND_DOMAINS },
});

let count = 0;
const newHost = () => `login-${++count}.acme.com`;
const ada = () => ({ name: "Ada", email: `ada-${++count}@acme.com`, password: PASSWORD });

describe("a verified domain", () => {
  it("is the tenant's host: users sign up, and sessions, links and redirects stay there", async () => {
    const host = newHost();
    await app.own("acme", host);
    const browser = app.atHost(host);
    const person = ada();
    const { status, data } = await browser.post<{ user: { tenantId: string } }>(
      "/sign-up/email",
      person,
    );
    expect([status, data.user?.tenantId]).toEqual([200, app.ids.acme]);
    expect(await app.whoIs(browser)).toMatchObject({ tenantId: app.ids.acme });
    const reset = { email: person.email, redirectTo: `http://${host}/new-password` };
    expect((await browser.post("/request-password-reset", reset)).status).toBe(200);
    expect(app.lastMail("reset").url).toMatch(`http://${host}/api/auth/reset-password/`);
    const social = { provider: "google", callbackURL: "/welcome" };
    const { data: started } = await browser.post<{ url: string }>("/sign-in/social", social);
    const redirect = new URL(started.url).searchParams.get("redirect_uri");
    expect(redirect).toBe(`http://${host}/api/auth/tenant/callback/google`);
    // Server code that passes the headers on.
    const headers = new Headers({ host });
    await app.api.requestPasswordReset({ body: { email: person.email }, headers });
    expect(app.lastMail("reset").url).toMatch(`http://${host}/api/auth/reset-password/`);
  });

  it("in upper case, with a port or a dot is the same, and links have neither", async () => {
    const host = newHost();
    await app.own("acme", host);
    const person = ada();
    await app.atHost(host).post("/sign-up/email", person);
    for (const other of [host.toUpperCase(), `${host}:8443`, `${host}.`]) {
      const browser = app.atHost(other, { origin: `http://${host}` });
      const answer = await browser.post("/request-password-reset", { email: person.email });
      expect(answer.status, other).toBe(200);
      expect(app.lastMail("reset").url).toMatch(`http://${host}/api/auth/`);
      const { data } = await browser.get("/tenant/sign-in-methods");
      expect(data).toMatchObject({ tenant: { slug: "acme" } });
    }
  });

  it("trusts its own pages, and those of no other tenant or host", async () => {
    const [host, other] = [newHost(), newHost()];
    await app.own("acme", host);
    await app.own("globex", other);
    const signIn = (origin: string, body = {}) =>
      app.atHost(host).post("/sign-in/email", { ...ada(), ...body }, { headers: { origin } });
    const cookie = { cookie: "a=b" };
    const invalid = [401, "INVALID_EMAIL_OR_PASSWORD"];
    expect(outcome(await signIn(`http://${host}`))).toEqual(invalid);
    for (const origin of [
      `http://${other}`,
      "http://unknown.com",
      `http://${host}:8443`,
      `https://${host}`,
      `http://x.${host}`,
    ]) {
      const answer = await app
        .atHost(host, cookie)
        .post("/sign-in/email", ada(), { headers: { origin } });
      expect(outcome(answer), origin).toEqual([403, "INVALID_ORIGIN"]);
    }
    const foreign = await signIn(`http://${host}`, { callbackURL: `http://${other}/` });
    expect(outcome(foreign)).toEqual([403, "INVALID_CALLBACK_URL"]);
    // Nor does another place trust this host.
    for (const elsewhere of ["globex.example.com", APP, other]) {
      const answer = await app
        .atHost(elsewhere, cookie)
        .post("/sign-in/email", ada(), { headers: { origin: `http://${host}` } });
      expect(outcome(answer), elsewhere).toEqual([403, "INVALID_ORIGIN"]);
    }
  });

  it("decides against everything that the request says", async () => {
    const host = newHost();
    await app.own("acme", host);
    const named = { "x-tenant-id": app.ids.globex };
    const { data } = await app.atHost(host, named).get("/tenant/sign-in-methods", {
      query: { tenantId: app.ids.globex },
    });
    expect(data).toMatchObject({ tenant: { slug: "acme" } });
    const jane = await app.as("jane", "globex");
    const window = app.atHost(host);
    for (const [name, value] of jane.cookies) window.cookies.set(name, value);
    expect((await window.get("/get-session")).data).toBeNull();
    expect((await window.post("/update-user", { name: "X" })).status).toBe(401);
  });
});

describe("an unknown host", () => {
  const PATHS = [
    "/ok",
    "/get-session",
    "/tenant/sign-in-methods",
    "/tenant/list",
    "/tenant/discover?domain=acme.com",
    "/callback/google?state=x&code=y",
    "/tenant/callback/google?state=x&code=y",
  ];

  it.each([
    "unknown.com",
    "acme.com",
    "10.0.0.7",
    "[::1]",
    "[::1]:3000",
    "example.com.evil.com",
    "notexample.com",
  ])("is no tenant's, and not the platform's: %s", async (host) => {
    const browser = app.atHost(host);
    for (const path of PATHS) expect(outcome(await browser.get(path)), path).toEqual(NOT_FOUND);
    const operator = await app.operator();
    for (const [name, value] of operator.cookies) browser.cookies.set(name, value);
    expect(outcome(await browser.post("/sign-in/email", ada()))).toEqual(NOT_FOUND);
    expect(outcome(await browser.post("/tenant/create", { name: "A", slug: "aaa" }))).toEqual(
      NOT_FOUND,
    );
  });

  it("is what a domain is before it is verified, and as soon as it no longer is", async () => {
    const host = newHost();
    const get = async () => outcome(await app.atHost(host).get("/tenant/sign-in-methods"));
    const { record } = await app.add("acme", host);
    expect(await get()).toEqual(NOT_FOUND);
    app.dns.publish(record);
    await app.verify("acme", host);
    expect(await get()).toEqual([200, undefined]);
    await app.remove("acme", host);
    expect(await get()).toEqual(NOT_FOUND);
  });

  it("does not keep the platform and subdomains from being what they are", async () => {
    expect((await app.atHost(APP).get("/ok")).status).toBe(200);
    expect((await app.atHost(`${APP}:8080`).get("/ok")).status).toBe(200);
    const { data } = await app.atHost("globex.example.com").get("/tenant/sign-in-methods");
    expect(data).toMatchObject({ tenant: { slug: "globex" } });
    expect(outcome(await app.atHost("initech.example.com").get("/get-session"))).toEqual(NOT_FOUND);
  });
});

it("a domain that is for addresses only is no host, and becomes one at once", async () => {
  const host = newHost();
  const tenantId = app.ids.acme;
  const body = { tenantId, domain: host };
  const { record } = await app.api.addTenantDomain({ body: { ...body, host: false } });
  app.dns.publish(record);
  expect(await app.verify("acme", host)).toMatchObject({ verified: true });
  const get = async () => outcome(await app.atHost(host).get("/tenant/sign-in-methods"));
  const set = (host: boolean) => app.api.updateTenantDomain({ body: { ...body, host } });
  expect(await get()).toEqual(NOT_FOUND);
  expect(outcome(await app.atHost(host).post("/sign-in/email", ada()))).toEqual(NOT_FOUND);
  const reset = app.api.requestPasswordReset({
    body: { email: "ada@acme.com" },
    headers: new Headers({ host }),
  });
  await expect(reset).rejects.toMatchObject({ statusCode: 404 });
  expect(await app.api.discoverTenants({ query: { domain: host } })).toHaveLength(1);
  await set(true);
  expect(await get()).toEqual([200, undefined]);
  await set(false);
  expect(await get()).toEqual(NOT_FOUND);
});

it("a host follows its domain to the tenant that proves it, at once", async () => {
  const host = newHost();
  await app.own("acme", host);
  const jane = app.atHost(host);
  await jane.post("/sign-up/email", ada());
  const tenantAt = async () =>
    (await app.atHost(host).get<{ tenant: { slug: string } }>("/tenant/sign-in-methods")).data
      .tenant.slug;
  expect(await tenantAt()).toBe("acme");
  await app.own("globex", host);
  expect(await tenantAt()).toBe("globex");
  // Her session stays Acme's, and is none here.
  expect((await jane.get("/get-session")).data).toBeNull();
  await app.api.updateTenant({ body: { tenantId: app.ids.globex, status: "suspended" } });
  const suspended = await app.atHost(host).post("/sign-in/email", ada());
  expect(outcome(suspended)).toEqual([403, "TENANT_SUSPENDED"]);
  await app.api.updateTenant({ body: { tenantId: app.ids.globex, status: "active" } });
});

it("another process follows within ten seconds", async () => {
  const options = {
    auth: { baseURL: OWN_HOSTS },
    tenant: { resolveTenantId: SUBDOMAINS_AND_DOMAINS },
  };
  const one = await createDomains(options);
  const plugins = [tenantDomains({ resolveTxt: one.dns.resolveTxt })];
  const other = await createInstance({ ...options, database: one.database, plugins });
  await one.own("acme", "login.acme.com");
  const policy = { emailDomains: "verified" } as const;
  for (const place of ["acme", "globex"]) await one.change(place, { policy });
  const host = { host: "login.acme.com", origin: "http://login.acme.com" };
  const url = "http://login.acme.com/api/auth";
  const there = () => new Browser(other.auth.handler, url, host);
  const slug = async () => {
    type Methods = { tenant: { slug: string } };
    return (await there().get<Methods>("/tenant/sign-in-methods")).data.tenant?.slug;
  };
  const signUp = () => there().post("/sign-up/email", { ...ada(), email: "a@login.acme.com" });
  expect(await slug()).toBe("acme");
  expect((await signUp()).status).toBe(200);
  await one.own("globex", "login.acme.com");
  const later = Date.now() + 11_000;
  const clock = vi.spyOn(Date, "now").mockReturnValue(later);
  onTestFinished(() => clock.mockRestore());
  expect(await slug()).toBe("globex");
  // The address of before may join at Globex now, and no longer at Acme.
  expect((await signUp()).status).toBe(200);
  const acme = new Browser(other.auth.handler, "http://acme.example.com/api/auth");
  const refused = await acme.post("/sign-up/email", { ...ada(), email: "b@login.acme.com" });
  expect(outcome(refused)).toEqual([403, "EMAIL_DOMAIN_NOT_ALLOWED"]);
  await one.remove("globex", "login.acme.com");
  clock.mockReturnValue(later + 11_000);
  expect(outcome(await there().get("/ok"))).toEqual(NOT_FOUND);
});

it("a proxy can ask whether a host is known", async () => {
  const host = newHost();
  const ask = (host: string) => app.api.getTenantSignInMethods({ headers: new Headers({ host }) });
  await app.own("acme", host);
  expect((await ask(host)).tenant.slug).toBe("acme");
  expect((await ask("globex.example.com")).tenant.slug).toBe("globex");
  for (const unknown of ["unknown.com", `x.${host}`, ""]) {
    await expect(ask(unknown)).rejects.toThrow();
  }
});

it("a deleted tenant's host is no tenant's", async () => {
  const host = newHost();
  const { id } = await app.createTenant();
  await app.own(id, host);
  expect((await app.atHost(host).get("/tenant/sign-in-methods")).status).toBe(200);
  await app.api.deleteTenant({ body: { tenantId: id } });
  expect(outcome(await app.atHost(host).post("/sign-in/email", ada()))).toEqual(NOT_FOUND);
});

it("x-forwarded-host counts only if better-auth trusts it", async () => {
  const host = newHost();
  await app.own("acme", host);
  const forwarded = { "x-forwarded-host": host };
  const methods = (browser: ReturnType<typeof app.atHost>) =>
    browser.get("/tenant/sign-in-methods");
  expect(outcome(await methods(app.atHost("unknown.com", forwarded)))).toEqual(NOT_FOUND);
  const behindProxy = await createDomains({
    auth: { baseURL: OWN_HOSTS, advanced: { trustedProxyHeaders: true } },
    tenant: { resolveTenantId: byDomain() },
  });
  await behindProxy.own("acme", host);
  const { data } = await methods(behindProxy.atHost("internal.proxy", forwarded));
  expect(data).toMatchObject({ tenant: { slug: "acme" } });
});

it.each(["login.acme.com.", "lost_host.acme.com", "login.acme.com, example.com"])(
  "a forwarded host that better-auth does not read is never the platform: %s",
  async (forwarded) => {
    const world = await createDomains({
      auth: { baseURL: OWN_HOSTS, advanced: { trustedProxyHeaders: true } },
      tenant: { resolveTenantId: SUBDOMAINS_AND_DOMAINS },
    });
    await world.own("acme", "login.acme.com");
    // The proxy calls the application at its own host.
    const browser = (host: string) => world.atHost(APP, { "x-forwarded-host": host });
    expect((await browser("login.acme.com").get("/tenant/sign-in-methods")).status).toBe(200);
    expect((await browser(APP).get("/ok")).status).toBe(200);
    expect(outcome(await browser(forwarded).post("/sign-up/email", ada()))).toEqual(NOT_FOUND);
    expect(outcome(await browser(forwarded).get("/get-session"))).toEqual(NOT_FOUND);
  },
);

const bySub = bySubdomain({ baseDomain: APP });
const beside = firstOf(bySubdomain({ baseDomain: "example.app" }), byDomain());
it.each([
  ["byDomain() alone", byDomain()],
  ["with tenants below another domain", beside],
  ["before bySubdomain()", firstOf(byDomain(), bySub)],
])("a verified domain takes no host of the application: %s", async (_, resolveTenantId) => {
  const names = { acme: "acme.example.com", globex: "globex.example.com", platform: APP };
  const world = await createDomains({
    auth: { baseURL: OWN_HOSTS },
    hosts: { names, resolveTenantId },
  });
  const operator = await world.operator();
  const methods = async (host: string) =>
    outcome(await world.atHost(host).get("/tenant/sign-in-methods"));
  await world.own("globex", "login.globex.org");
  for (const host of [APP, "new.example.com"]) await world.own("acme", host);
  expect(await methods("login.globex.org")).toEqual([200, undefined]);
  expect(await methods(APP)).toEqual([400, "TENANT_ID_REQUIRED"]);
  expect(await methods("new.example.com")).not.toEqual([200, undefined]);
  expect((await operator.get("/tenant/list")).status).toBe(200);
  // Calls of the server, which run at the fallback.
  await expect(world.remove("acme", APP)).resolves.toEqual({ success: true });
});

it("the application may trust a verified domain elsewhere: only its tenant does", async () => {
  const trustedOrigins = ["http://login.acme.com"];
  const world = await createDomains({
    auth: { baseURL: OWN_HOSTS, trustedOrigins },
    tenant: { resolveTenantId: SUBDOMAINS_AND_DOMAINS },
  });
  for (const name of ["login", "other"]) await world.own("acme", `${name}.acme.com`);
  const reset = async (host: string, redirectTo: string) =>
    outcome(
      await world.atHost(host).post("/request-password-reset", { email: "a@acme.com", redirectTo }),
    );
  const refused = [403, "INVALID_REDIRECT_URL"];
  expect(await reset("acme.example.com", "http://other.acme.com/new")).toEqual(refused);
  expect(await reset("acme.example.com", "http://login.acme.com/new")).toEqual([200, undefined]);
  expect(await reset("globex.example.com", "http://login.acme.com/new")).toEqual(refused);
});

describe("other resolvers", () => {
  const named = { "x-tenant-slug": "acme" };

  it("byDomain() alone knows the platform by better-auth's baseURL", async () => {
    const world = await createDomains({
      auth: { baseURL: { ...OWN_HOSTS, allowedHosts: [APP, "*.preview.app"] } },
      tenant: { resolveTenantId: byDomain() },
    });
    await world.own("acme", "login.acme.com");
    for (const host of [APP, `${APP}:8080`, "a.preview.app"]) {
      expect((await world.atHost(host).get("/ok")).status).toBe(200);
    }
    expect(outcome(await world.atHost("acme.example.com").get("/ok"))).toEqual(NOT_FOUND);
    const { data } = await world.atHost("login.acme.com").get("/tenant/sign-in-methods");
    expect(data).toMatchObject({ tenant: { slug: "acme" } });
  });

  it("firstOf() goes by the first that knows the host, in any order", async () => {
    const byMap = byDomain({ "login.globex.org": { slug: "globex" } });
    const bySub = bySubdomain({ baseDomain: APP });
    for (const resolvers of [
      [byMap, bySub, byDomain()],
      [byDomain(), bySub, byMap],
    ]) {
      const world = await createDomains({
        auth: { baseURL: OWN_HOSTS },
        tenant: { resolveTenantId: firstOf(...resolvers) },
      });
      await world.own("acme", "login.acme.com");
      for (const [host, slug] of [
        ["login.acme.com", "acme"],
        ["acme.example.com", "acme"],
        ["login.globex.org", "globex"],
      ] as const) {
        const { data } = await world.atHost(host).get("/tenant/sign-in-methods");
        expect(data, host).toMatchObject({ tenant: { slug } });
      }
      expect(outcome(await world.atHost("unknown.com").get("/ok"))).toEqual(NOT_FOUND);
      expect((await world.atHost(APP).get("/ok")).status).toBe(200);
    }
    const withoutVerified = firstOf(byMap, bySub);
    const world = await createDomains({
      auth: { baseURL: OWN_HOSTS },
      tenant: { resolveTenantId: withoutVerified },
    });
    expect((await world.atHost("unknown.com").get("/ok")).status).toBe(200);
  });

  it("what bySubdomain() takes for the platform is that, also where baseURL does not list it", async () => {
    const world = await createDomains({
      auth: { baseURL: OWN_HOSTS },
      tenant: { resolveTenantId: firstOf(bySubdomain({ baseDomain: "other.org" }), byDomain()) },
    });
    for (const host of ["other.org", "www.other.org", APP]) {
      expect((await world.atHost(host).get("/ok")).status, host).toBe(200);
    }
    expect(outcome(await world.atHost("notother.org").get("/ok"))).toEqual(NOT_FOUND);
  });

  it("one that calls byDomain() without the plugin fails, and says why", async () => {
    const byHost = byDomain();
    const world = await createWorld({ tenant: { resolveTenantId: (ctx) => byHost(ctx) } });
    expect((await world.browser().get("/get-session")).status).toBe(500);
    const headers = new Headers({ host: "login.acme.com" });
    await expect(world.api.getSession({ headers })).rejects.toThrow("add tenantDomains()");
  });

  it("firstOf() takes no other resolvers", () => {
    for (const resolvers of [[], [bySlug()], [byDomain(), () => undefined]]) {
      expect(() => firstOf(...resolvers)).toThrow("combines bySubdomain() and byDomain()");
    }
  });

  it("one of the application's own may call byDomain()", async () => {
    const [byHost, byPath] = [byDomain(), bySlug()];
    const world = await createDomains({
      auth: { baseURL: OWN_HOSTS },
      tenant: {
        resolveTenantId: (ctx) => (ctx.headers?.get("host") === APP ? byPath(ctx) : byHost(ctx)),
      },
    });
    await world.own("acme", "login.acme.com");
    const person = ada();
    const browser = world.atHost("login.acme.com");
    expect((await browser.post("/sign-up/email", person)).status).toBe(200);
    await browser.post("/request-password-reset", { email: person.email });
    expect(world.lastMail("reset").url).toMatch("http://login.acme.com/api/auth/");
    const { data } = await world.atHost(APP, named).get("/tenant/sign-in-methods");
    expect(data).toMatchObject({ tenant: { slug: "acme" } });
    expect(outcome(await world.atHost("unknown.com", named).get("/ok"))).toEqual(NOT_FOUND);
  });

  it("without byDomain(), a verified domain in the host header gets into no link", async () => {
    const world = await createDomains({ auth: { baseURL: OWN_HOSTS } });
    await world.own("globex", "evil.com");
    const person = ada();
    const acme = { "x-tenant-id": world.ids.acme };
    await world.atHost(APP, acme).post("/sign-up/email", person);
    const attack = world.atHost("evil.com", { ...acme, origin: `http://${APP}` });
    await attack.post("/request-password-reset", { email: person.email });
    expect(world.lastMail("reset").url).toMatch(`http://${APP}/api/auth/`);
  });
});

it("hosts of identity providers and other trusted origins are no tenant's, and stay trusted", async () => {
  const world = await createDomains({
    auth: { baseURL: OWN_HOSTS, trustedOrigins: ["http://partner.com", "http://login.globex.org"] },
    tenant: { resolveTenantId: SUBDOMAINS_AND_DOMAINS },
  });
  const person = ada();
  const browser = world.atHost("acme.example.com");
  await browser.post("/sign-up/email", person);
  const reset = (redirectTo: string) =>
    browser.post("/request-password-reset", { email: person.email, redirectTo });
  expect((await reset("http://partner.com/")).status).toBe(200);
  expect((await reset("http://login.globex.org/")).status).toBe(200);
  // Once it is Globex's, it is not trusted at Acme, whatever the list says.
  await world.own("globex", "login.globex.org");
  expect(outcome(await reset("http://login.globex.org/"))).toEqual([403, "INVALID_REDIRECT_URL"]);
});
