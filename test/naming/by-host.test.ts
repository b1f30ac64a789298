import { describe, expect, it } from "vitest";
import { byDomain, bySubdomain, type ResolveTenantContext } from "../../src/index";
import { Browser } from "../support/browser";
import { PASSWORD } from "../support/instance";
import { createWorld, outcome, queryOf, shareWorld, type World } from "../support/world";

type Named = Record<string, string>;

/** A request as a resolver sees it, with a host and whatever else is said. */
const asked = (headers: Named, { url, trusted }: { url?: string; trusted?: boolean } = {}) =>
  ({
    headers: new Headers(headers),
    ...(url && { request: new Request(url, { headers }) }),
    context: { options: { advanced: { trustedProxyHeaders: trusted } } },
  }) as ResolveTenantContext;

const bySlug = bySubdomain({ baseDomain: "example.com" });
const ACME = { slug: "acme" };
const GLOBEX = { slug: "globex" };
const ID = { "x-tenant-id": "acme-id" };

describe("bySubdomain", () => {
  it.each([
    "acme.example.com",
    "acme.example.com:3000",
    "ACME.Example.COM",
    "acme.example.com.",
    "acme.example.com.:8443",
  ])("takes %s for the tenant with the slug acme", async (host) => {
    expect(await bySlug(asked({ host }))).toEqual(ACME);
  });

  it.each([
    ["the base domain", "example.com", "example.com:3000"],
    ["a reserved name", "www.example.com", "WWW.example.com", "www.acme.example.com"],
    ["a label below a label", "a.acme.example.com"],
    ["an empty label", ".example.com", "acme..example.com", "acme.example.com.."],
    ["a domain that only ends alike", "acmeexample.com", "acme.evilexample.com"],
    ["another domain", "acme.example.com.evil.com", "acme.example.org", "localhost:3000"],
    ["an address", "127.0.0.1", "127.0.0.1:3000", "[::1]:3000"],
    ["two", "acme.example.com, globex.example.com", "acme.example.com,globex.example.com"],
    ["more than a host", "acme.example.com/globex", "acme.example.com@evil.com"],
    ["a port that is none", "acme.example.com:port"],
    ["letters that no host has", "ac_me.example.com", "acm\u00e9.example.com"],
  ])("takes %s for no tenant, whatever else is said", async (_, ...hosts) => {
    for (const host of hosts) expect(await bySlug(asked({ host, ...ID })), host).toBe(false);
  });

  it("goes by the address of the request where there is no host header", async () => {
    const url = "http://acme.example.com:3000/api/auth/ok";
    expect(await bySlug(asked({}, { url }))).toEqual(ACME);
    expect(await bySlug(asked({}, { url: "http://example.com/api/auth/ok" }))).toBe(false);
    expect(await bySlug(asked({ host: "globex.example.com" }, { url }))).toEqual(GLOBEX);
  });

  it("goes by the headers of the request before others, and by nothing where there are none", async () => {
    const request = new Request("http://a.com", { headers: { host: "acme.example.com" } });
    const headers = new Headers({ host: "globex.example.com" });
    const context = { options: {} };
    const ask = (given: object) => bySlug({ context, ...given } as ResolveTenantContext);
    expect(await ask({ request, headers })).toEqual(ACME);
    expect(await ask({ headers })).toEqual(GLOBEX);
    expect(await ask({})).toBeUndefined();
    const trusting = { options: { advanced: { trustedProxyHeaders: true } } };
    expect(await ask({ context: trusting })).toBeUndefined();
  });

  it("takes other reserved names, and a base domain of several labels or of one", async () => {
    const reserving = bySubdomain({ baseDomain: "Example.com", reserved: ["acme"] });
    expect(await reserving(asked({ host: "acme.example.com" }))).toBe(false);
    expect(await reserving(asked({ host: "www.example.com" }))).toEqual({ slug: "www" });
    const deep = bySubdomain({ baseDomain: "eu.app.example.com" });
    expect(await deep(asked({ host: "acme.eu.app.example.com" }))).toEqual(ACME);
    expect(await deep(asked({ host: "acme.app.example.com" }))).toBe(false);
    const local = bySubdomain({ baseDomain: "localhost" });
    expect(await local(asked({ host: "acme.localhost:3000" }))).toEqual(ACME);
    expect(await local(asked({ host: "localhost:3000" }))).toBe(false);
    for (const baseDomain of ["", "https://example.com", "a.com/path", "*.a.com", ".a.com"]) {
      expect(() => bySubdomain({ baseDomain })).toThrow(/bySubdomain\(\): .* is not a domain/);
    }
  });
});

describe("byDomain", () => {
  it("looks the whole host up in a map", async () => {
    const resolve = byDomain({ "login.acme.com": ACME, "globex.com": "globex-id" });
    expect(await resolve(asked({ host: "login.acme.com" }))).toEqual(ACME);
    expect(await resolve(asked({ host: "Login.Acme.com.:8443" }))).toEqual(ACME);
    expect(await resolve(asked({ host: "globex.com" }))).toBe("globex-id");
    for (const host of ["acme.com", "x.login.acme.com", "constructor", "tostring", "127.0.0.1"]) {
      expect(await resolve(asked({ host, ...ID })), host).toBe(false);
    }
  });

  it("refuses at start a host that never matches", () => {
    for (const host of ["Login.acme.com", "acme.com:443", "https://acme.com", "acme.com/", ""]) {
      expect(() => byDomain({ "globex.com": "id", [host]: "id" })).toThrow(/never matches/);
    }
    expect(() => byDomain(Object.assign(() => "id", { Name: 1 }))).not.toThrow();
  });

  it("asks a function, once, with the name in lower case and without the port", async () => {
    const hosts: string[] = [];
    let answer: string | false | null | undefined = "acme-id";
    const resolve = byDomain(async (host) => {
      hosts.push(host);
      return answer;
    });
    expect(await resolve(asked({ host: "LOGIN.acme.com:443" }))).toBe("acme-id");
    expect(hosts.splice(0)).toEqual(["login.acme.com"]);
    // No tenant, and never a question that a caller could answer.
    for (answer of [null, undefined, "", false] as const) {
      expect(await resolve(asked({ host: "a.com", ...ID }))).toBe(false);
    }
    hosts.length = 0;
    for (const host of ["a.com, b.com", "[::1]", "a.com/b", "a_b.com"]) {
      expect(await resolve(asked({ host })), host).toBe(false);
    }
    expect(hosts).toEqual([]);
  });
});

describe("what a proxy says about the host", () => {
  const host = "acme.example.com";
  const says = (forwarded: string, trusted?: boolean, own = host) =>
    bySlug(asked({ host: own, "x-forwarded-host": forwarded }, { trusted }));

  it("does not count unless better-auth was told to trust it, and then before the host", async () => {
    for (const trusted of [undefined, false]) {
      expect(await says("globex.example.com", trusted)).toEqual(ACME);
      expect(await says("globex.example.com", trusted, "example.com")).toBe(false);
    }
    expect(await says("Globex.example.com:443", true)).toEqual(GLOBEX);
    expect(await bySlug(asked({ host }, { trusted: true }))).toEqual(ACME);
  });

  it("is no host if it is a list: nobody knows who wrote which part of it", async () => {
    expect(await says(`globex.example.com, ${host}`, true)).toBe(false);
    for (const list of [`${host},globex.example.com`, `${host}, `]) {
      expect(await says(list, true), list).not.toEqual(GLOBEX);
    }
  });
});

const HOSTS = {
  tenant: { resolveTenantId: bySubdomain({ baseDomain: "example.com" }) },
  auth: {
    baseURL: {
      allowedHosts: ["localhost:3000", "example.com", "*.example.com", "*.unknown.org"],
      protocol: "http" as const,
      fallback: "http://example.com",
    },
  },
};

/** A browser at a host, with somebody's cookies. */
function visit({ auth }: World, host: string, headers: Named = {}, cookiesOf?: Browser) {
  const browser = new Browser(auth.handler, `http://${host}/api/auth`, headers);
  for (const [name, value] of cookiesOf?.cookies ?? []) browser.cookies.set(name, value);
  return browser;
}

type Signed = { user: { id: string; email: string; tenantId: string | null } };

const newcomer = (email = `${crypto.randomUUID()}@example.com`) => ({
  name: "New",
  email,
  password: PASSWORD,
});

describe("requests by host", () => {
  const world = shareWorld(HOSTS);

  /** Somebody who signs up with better-auth's own endpoint, at a host. */
  async function signUpAt(host: string, email?: string, headers?: Named) {
    const browser = visit(world, host, headers);
    const answer = await browser.post<Signed>("/sign-up/email", newcomer(email));
    expect(answer.status, JSON.stringify(answer.data)).toBe(200);
    return { browser, ...answer.data };
  }

  it("a session is good at the host of its tenant, and nowhere else", async () => {
    const tenants = ["acme", "globex", "platform"] as const;
    const hosts = ["acme.example.com", "globex.example.com", "example.com"];
    const ids = new Set<string>();
    for (const [index, home] of hosts.entries()) {
      const { browser, user } = await signUpAt(home, "everywhere@example.com");
      ids.add(user.id);
      expect(user.tenantId).toBe(world.idOf(tenants[index] ?? null));
      for (const host of [...hosts, "www.example.com", "acme.unknown.org"]) {
        const window = visit(world, host, {}, browser);
        const { status, data } = await window.get<Signed | null>("/get-session");
        // Hosts of nobody are the platform's.
        const isHome =
          host === home || (home === "example.com" && !/^(acme|globex)\.ex/.test(host));
        expect([host, status, data?.user.id]).toEqual([host, 200, isHome ? user.id : undefined]);
        if (isHome) continue;
        expect((await window.post("/update-user", { name: "X" })).status).toBe(401);
        expect((await window.get("/admin/list-users")).status).toBe(401);
      }
    }
    expect(ids.size).toBe(3);
  });

  it("an admin of a tenant sees nobody at the base domain, an operator there everybody", async () => {
    const { browser, user } = await signUpAt("acme.example.com");
    await world.setRole(user.id, "admin");
    expect((await browser.get("/admin/list-users")).status).toBe(200);
    const abroad = visit(world, "example.com", {}, browser);
    expect((await abroad.get("/admin/list-users")).status).toBe(401);
    const operator = await signUpAt("example.com");
    await world.setRole(operator.user.id, "admin");
    const { data } = await operator.browser.get<{ users: object[] }>("/admin/list-users?limit=100");
    expect(data.users).toContainEqual(expect.objectContaining({ id: user.id }));
  });

  it("what the caller says never wins over the host", async () => {
    const { acme, globex } = world.ids;
    const claims = { "x-tenant-id": globex };
    const { user } = await signUpAt("acme.example.com", undefined, claims);
    expect(user.tenantId).toBe(acme);
    const path = `/tenant/sign-up/email?tenantId=${globex}`;
    const answer = await visit(world, "acme.example.com", claims).post<Signed>(path, {
      ...newcomer(),
      tenantId: globex,
    });
    expect(answer.data.user.tenantId).toBe(acme);
  });

  it.each(["example.com", "www.example.com", "a.acme.example.com", "acme.unknown.org"])(
    "at %s nothing that the caller says names a tenant",
    async (host) => {
      const tenantId = world.ids.acme;
      const query = { tenantId };
      const browser = visit(world, host, { "x-tenant-id": tenantId });
      const signedUp = await browser.post<Signed>("/sign-up/email", newcomer(), { query });
      expect(signedUp.data.user.tenantId).toBeNull();
      const body = { ...newcomer(), tenantId, provider: "google" };
      const answers = [
        await browser.post("/tenant/sign-up/email", body, { query }),
        await browser.post("/tenant/sign-in/email", body, { query }),
        await browser.post("/tenant/sign-in/social", body, { query }),
        await browser.get("/tenant/sign-in-methods", { query }),
      ];
      expect(answers.map(outcome)).toEqual(answers.map(() => [400, "TENANT_ID_REQUIRED"]));
    },
  );

  it("a host of a tenant that does not exist is an answer, and 404", async () => {
    const browser = visit(world, "nobody.example.com", world.naming("acme"));
    const body = { ...newcomer(), tenantId: world.ids.acme };
    const answers = [await browser.get("/get-session")];
    for (const path of ["/sign-up/email", "/tenant/sign-up/email", "/tenant/sign-in/email"]) {
      answers.push(await browser.post(path, body));
    }
    expect(answers.map(outcome)).toEqual(answers.map(() => [404, "TENANT_NOT_FOUND"]));
  });

  it("a tenant that is renamed moves to its new host, with its people and their sessions", async () => {
    const { id } = await world.createTenant("old-name");
    const { browser, user } = await signUpAt("old-name.example.com");
    await world.change(id, { slug: "new-name" });
    expect(outcome(await browser.get("/get-session"))).toEqual([404, "TENANT_NOT_FOUND"]);
    const moved = visit(world, "new-name.example.com", {}, browser);
    const { data } = await moved.get<Signed>("/get-session");
    expect(data.user).toMatchObject({ id: user.id, tenantId: id });
    const signIn = await moved.post<Signed>("/sign-in/email", newcomer(user.email));
    expect(signIn.data.user.id).toBe(user.id);
  });

  it("an operator at the base domain names the target of management in the body", async () => {
    const { acme, globex } = world.ids;
    const { browser: operator, user } = await signUpAt("example.com");
    const google = { providerId: "google", clientId: "i", clientSecret: "s", tenantId: acme };
    const register = () => operator.post("/tenant/oauth-config/register", google);
    // Somebody who may not manage gains nothing by the same words.
    expect(outcome(await register())).toEqual([403, "TENANT_MANAGEMENT_NOT_ALLOWED"]);
    await world.setRole(user.id, "admin");
    const registered = await register();
    expect([registered.status, registered.data.tenantId]).toEqual([200, acme]);
    const listed = await operator.get("/tenant/oauth-config/list", { query: { tenantId: acme } });
    expect(listed.data).toMatchObject([{ tenantId: acme }]);
    const renamed = await operator.post("/tenant/update", { tenantId: globex, name: "Globex" });
    expect([renamed.status, renamed.data.name]).toEqual([200, "Globex"]);
    expect((await operator.post("/tenant/oauth-config/delete", google)).status).toBe(200);
  });

  it("code of the server's own names the tenant itself, or hands the headers of a request on", async () => {
    const { api, ids } = world;
    const { user } = await api.signUpEmailTenant({ body: { ...newcomer(), tenantId: ids.acme } });
    expect(user.tenantId).toBe(ids.acme);
    const platform = await api.signUpEmail({ body: newcomer() });
    expect((platform.user as Signed["user"]).tenantId).toBeNull();
    const unnamed = api.signUpEmailTenant({ body: newcomer() });
    await expect(unnamed).rejects.toMatchObject({ body: { code: "TENANT_ID_REQUIRED" } });
    const signedUp = await signUpAt("acme.example.com");
    const cookie = signedUp.browser.cookieHeader();
    const ask = (host: string) =>
      api.getSession({ headers: new Headers({ host, cookie, "x-tenant-id": ids.acme }) });
    expect((await ask("acme.example.com"))?.user.id).toBe(signedUp.user.id);
    expect(await ask("globex.example.com")).toBeNull();
  });

  it("links in mails begin with their host, and lead back from the base domain too", async () => {
    const { email } = newcomer();
    const urls: string[] = [];
    for (const host of ["acme.example.com", "example.com"]) {
      const { browser } = await signUpAt(host, email);
      await browser.post("/request-password-reset", { email, redirectTo: "/reset" });
      urls.push(world.lastMail("reset").url);
      expect(new URL(urls.at(-1) ?? "").host).toBe(host);
    }
    const moved = new URL(urls[0] ?? "");
    moved.host = "example.com";
    const platform = visit(world, "example.com");
    const { token } = queryOf((await platform.get(moved.href)).location);
    const newPassword = "another password";
    expect((await platform.post("/reset-password", { newPassword, token })).status).toBe(200);
    const signIn = async (host: string, password: string) =>
      (await visit(world, host).post("/sign-in/email", { email, password })).status;
    expect(await signIn("acme.example.com", newPassword)).toBe(200);
    expect(await signIn("example.com", newPassword)).toBe(401);
    expect(await signIn("example.com", PASSWORD)).toBe(200);
  });

  it("a forged x-forwarded-host leads nowhere, unless the application trusts its proxy", async () => {
    const land = async (own: World, headers: Named) => {
      const browser = visit(own, "acme.example.com", headers);
      return (await browser.post<Signed>("/sign-up/email", newcomer())).data.user.tenantId;
    };
    const forged = { "x-forwarded-host": "globex.example.com", "x-forwarded-proto": "http" };
    expect(await land(world, forged)).toBe(world.ids.acme);
    const advanced = { trustedProxyHeaders: true };
    const trusting = await createWorld({ ...HOSTS, auth: { ...HOSTS.auth, advanced } });
    // A browser in front of that proxy says where it is.
    const origin = "http://globex.example.com";
    expect(await land(trusting, { ...forged, origin })).toBe(trusting.ids.globex);
    expect(await land(trusting, {})).toBe(trusting.ids.acme);
    const list = "globex.example.com, acme.example.com";
    const headers = { "x-forwarded-host": list, origin: "http://example.com" };
    expect(await land(trusting, headers)).toBeNull();
  });
});
