import { beforeAll, describe, expect, it } from "vitest";
import { byDomain, bySubdomain, type ResolveTenantContext } from "../../src/index";
import { createDatabase } from "../support/database";
import { createInstance, type Instance, type InstanceOptions, PASSWORD } from "../support/instance";
import { shareInstance } from "../support/shared";

/** A request as a resolver sees it, with a host and whatever else is said. */
const asked = (
  headers: Record<string, string>,
  { url, trusted }: { url?: string; trusted?: boolean } = {},
) =>
  ({
    headers: new Headers(headers),
    ...(url && { request: new Request(url, { headers }) }),
    context: { options: { advanced: { trustedProxyHeaders: trusted } } },
  }) as ResolveTenantContext;

const bySlug = bySubdomain({ baseDomain: "example.com" });
const ACME = { slug: "acme" };

describe("bySubdomain", () => {
  it.each([
    "acme.example.com",
    "acme.example.com:3000",
    "acme.example.com:443",
    "ACME.Example.COM",
    "acme.example.com.",
    "acme.example.com.:8443",
  ])("takes %s for the tenant with the slug acme", async (host) => {
    expect(await bySlug(asked({ host }))).toEqual(ACME);
  });

  it.each([
    ["the base domain", "example.com"],
    ["the base domain with a port", "example.com:3000"],
    ["a reserved name", "www.example.com"],
    ["a reserved name in capitals", "WWW.example.com"],
    ["a label below a label", "a.acme.example.com"],
    ["a reserved name below a tenant", "www.acme.example.com"],
    ["an empty label", ".example.com"],
    ["an empty label inside", "acme..example.com"],
    ["a domain that only ends alike", "acmeexample.com"],
    ["another domain that only ends alike", "acme.evilexample.com"],
    ["the base domain in the middle", "acme.example.com.evil.com"],
    ["another top-level domain", "acme.example.org"],
    ["an address", "127.0.0.1"],
    ["an address with a port", "127.0.0.1:3000"],
    ["an IPv6 address", "[::1]:3000"],
    ["this machine", "localhost:3000"],
    ["two hosts", "acme.example.com, globex.example.com"],
    ["two hosts without a space", "acme.example.com,globex.example.com"],
    ["a path", "acme.example.com/globex"],
    ["credentials", "acme.example.com@evil.com"],
    ["a port that is none", "acme.example.com:port"],
    ["two trailing dots", "acme.example.com.."],
    ["letters that no host has", "ac_me.example.com"],
    ["letters of elsewhere", "acm\u00e9.example.com"],
  ])("takes %s for no tenant, whatever else is said", async (_, host) => {
    expect(await bySlug(asked({ host, "x-tenant-id": "acme-id" }))).toBe(false);
  });

  it("goes by the address of the request where there is no host header", async () => {
    const url = "http://acme.example.com:3000/api/auth/ok";
    expect(await bySlug(asked({}, { url }))).toEqual(ACME);
    expect(await bySlug(asked({}, { url: "http://example.com/api/auth/ok" }))).toBe(false);
    expect(await bySlug(asked({ host: "globex.example.com" }, { url }))).toEqual({
      slug: "globex",
    });
  });

  it("takes other names for reserved", async () => {
    const resolve = bySubdomain({ baseDomain: "Example.com", reserved: ["acme"] });
    expect(await resolve(asked({ host: "acme.example.com" }))).toBe(false);
    expect(await resolve(asked({ host: "www.example.com" }))).toEqual({ slug: "www" });
  });

  it("takes a base domain of several labels, or of one", async () => {
    const deep = bySubdomain({ baseDomain: "eu.app.example.com" });
    expect(await deep(asked({ host: "acme.eu.app.example.com" }))).toEqual(ACME);
    expect(await deep(asked({ host: "acme.app.example.com" }))).toBe(false);
    const local = bySubdomain({ baseDomain: "localhost" });
    expect(await local(asked({ host: "acme.localhost:3000" }))).toEqual(ACME);
    expect(await local(asked({ host: "localhost:3000" }))).toBe(false);
  });

  it.each(["", "https://example.com", "example.com/path", "*.example.com", ".example.com"])(
    "refuses the base domain %j at start",
    (baseDomain) => {
      expect(() => bySubdomain({ baseDomain })).toThrow(/bySubdomain\(\): .* is not a domain/);
    },
  );
});

describe("byDomain", () => {
  it("looks the whole host up in a map", async () => {
    const resolve = byDomain({ "login.acme.com": ACME, "globex.com": "globex-id" });
    expect(await resolve(asked({ host: "login.acme.com" }))).toEqual(ACME);
    expect(await resolve(asked({ host: "Login.Acme.com.:8443" }))).toEqual(ACME);
    expect(await resolve(asked({ host: "globex.com" }))).toBe("globex-id");
    for (const host of ["acme.com", "x.login.acme.com", "constructor", "tostring", "127.0.0.1"]) {
      expect(await resolve(asked({ host, "x-tenant-id": "acme-id" })), host).toBe(false);
    }
  });

  it("asks a function, once, with the name in lower case and without the port", async () => {
    const hosts: string[] = [];
    const resolve = byDomain(async (host) => {
      hosts.push(host);
      return host === "login.acme.com" ? "acme-id" : null;
    });
    expect(await resolve(asked({ host: "LOGIN.acme.com:443" }))).toBe("acme-id");
    expect(await resolve(asked({ host: "unknown.com", "x-tenant-id": "acme-id" }))).toBe(false);
    expect(hosts).toEqual(["login.acme.com", "unknown.com"]);
  });

  it.each([null, undefined, "", false] as const)(
    "takes %j from the function for no tenant, and never for a question",
    async (answer) => {
      const resolve = byDomain(() => answer);
      expect(await resolve(asked({ host: "a.com", "x-tenant-id": "acme-id" }))).toBe(false);
    },
  );

  it("does not ask about what is not a host name", async () => {
    const resolve = byDomain(() => {
      throw new Error("asked");
    });
    for (const host of ["a.com, b.com", "[::1]", "a.com/b", "a_b.com"]) {
      expect(await resolve(asked({ host })), host).toBe(false);
    }
  });
});

describe("what a proxy says about the host", () => {
  const forwarded = "globex.example.com";
  const host = "acme.example.com";

  it("does not count unless better-auth was told to trust it", async () => {
    expect(await bySlug(asked({ host, "x-forwarded-host": forwarded }))).toEqual(ACME);
    const stranger = { host: "example.com", "x-forwarded-host": forwarded };
    expect(await bySlug(asked(stranger))).toBe(false);
    expect(await bySlug(asked(stranger, { trusted: false }))).toBe(false);
  });

  it("counts then, before the host", async () => {
    const given = { host, "x-forwarded-host": "Globex.example.com:443" };
    expect(await bySlug(asked(given, { trusted: true }))).toEqual({ slug: "globex" });
    expect(await bySlug(asked({ host }, { trusted: true }))).toEqual(ACME);
  });

  it("is no host if it is a list: nobody knows who wrote which part of it", async () => {
    for (const list of [`${forwarded}, ${host}`, `${host},${forwarded}`, `${host}, `]) {
      const given = { host, "x-forwarded-host": list };
      expect(await bySlug(asked(given, { trusted: true })), list).not.toEqual({ slug: "globex" });
    }
    const list = { host, "x-forwarded-host": `${forwarded}, ${host}` };
    expect(await bySlug(asked(list, { trusted: true }))).toBe(false);
  });
});

const hosts: InstanceOptions = {
  tenant: { resolveTenantId: bySubdomain({ baseDomain: "example.com" }) },
  auth: {
    baseURL: {
      allowedHosts: ["localhost:3000", "example.com", "*.example.com", "*.unknown.org"],
      protocol: "http",
      fallback: "http://example.com",
    },
  },
};
const at = (host: string, path: string) => `http://${host}/api/auth${path}`;

let count = 0;
const newcomer = (email = `new-${++count}@example.com`) => ({
  name: "New",
  email,
  password: PASSWORD,
});

type Signed = { user: { id: string; email: string; tenantId: string | null } };

describe("requests by host", () => {
  const shared = shareInstance(hosts);
  let acme: string;
  let globex: string;

  beforeAll(async () => {
    acme = (await shared.instance.createTenant("acme")).id;
    globex = (await shared.instance.createTenant("globex")).id;
  });

  /** Somebody who signs up with better-auth's own endpoint, at a host. */
  async function signUpAt(host: string, email?: string, headers?: Record<string, string>) {
    const browser = shared.instance.browser(headers);
    const answer = await browser.post<Signed>(at(host, "/sign-up/email"), newcomer(email));
    expect(answer.status, JSON.stringify(answer.data)).toBe(200);
    return { browser, ...answer.data };
  }

  it("the same e-mail is another person at each host, and at the base domain", async () => {
    const email = "everywhere@example.com";
    const people = [
      await signUpAt("acme.example.com", email),
      await signUpAt("globex.example.com", email),
      await signUpAt("example.com", email),
    ];
    expect(people.map(({ user }) => user.tenantId)).toEqual([acme, globex, null]);
    expect(new Set(people.map(({ user }) => user.id)).size).toBe(3);
    for (const [index, host] of ["acme.", "globex.", ""].entries()) {
      const session = await people[index]?.browser.get<Signed>(
        at(`${host}example.com`, "/get-session"),
      );
      expect(session?.data.user.id).toBe(people[index]?.user.id);
    }
  });

  it("a session of one host is none at another host", async () => {
    const { browser } = await signUpAt("acme.example.com");
    const there = await browser.get(at("globex.example.com", "/get-session"));
    expect([there.status, there.data]).toEqual([200, null]);
    const update = await browser.post(at("globex.example.com", "/update-user"), { name: "X" });
    expect(update.status).toBe(401);
    expect((await browser.get<Signed>(at("acme.example.com", "/get-session"))).data).toMatchObject({
      user: { tenantId: acme },
    });
  });

  it.each(["example.com", "www.example.com", "acme.unknown.org"])(
    "a session of a tenant is none at %s, and stays alive where it belongs",
    async (host) => {
      const { browser } = await signUpAt("acme.example.com");
      const there = await browser.get(at(host, "/get-session"));
      expect([there.status, there.data]).toEqual([200, null]);
      expect((await browser.post(at(host, "/update-user"), { name: "X" })).status).toBe(401);
      expect((await browser.get(at(host, "/admin/list-users"))).status).toBe(401);
      const again = await browser.post<Signed>(at(host, "/sign-up/email"), newcomer());
      expect(again.data.user.tenantId).toBeNull();
    },
  );

  it("an admin of a tenant sees nobody at the base domain", async () => {
    const { browser, user } = await signUpAt("acme.example.com");
    const { database } = shared.instance;
    await database.query(`update "user" set role = 'admin' where id = ?`, [user.id]);
    expect((await browser.get(at("acme.example.com", "/admin/list-users"))).status).toBe(200);
    expect((await browser.get(at("example.com", "/admin/list-users"))).status).toBe(401);
  });

  it("what the caller says never wins over the host", async () => {
    const { user } = await signUpAt("acme.example.com", undefined, { "x-tenant-id": globex });
    expect(user.tenantId).toBe(acme);
    const path = `/tenant/sign-up/email?tenantId=${globex}`;
    const answer = await shared.instance
      .browser({ "x-tenant-id": globex })
      .post<Signed>(at("acme.example.com", path), { ...newcomer(), tenantId: globex });
    expect(answer.data.user.tenantId).toBe(acme);
  });

  it.each(["example.com", "www.example.com", "a.acme.example.com", "acme.unknown.org"])(
    "at %s nothing that the caller says names a tenant",
    async (host) => {
      const { user } = await signUpAt(host, undefined, { "x-tenant-id": acme });
      expect(user.tenantId).toBeNull();
      const browser = shared.instance.browser({ "x-tenant-id": acme });
      const query = await browser.post<Signed>(
        at(host, `/sign-up/email?tenantId=${acme}`),
        newcomer(),
      );
      expect(query.data.user.tenantId).toBeNull();
      for (const path of ["/tenant/sign-up/email", "/tenant/sign-in/email"]) {
        const body = { ...newcomer(), tenantId: acme };
        const answer = await browser.post(at(host, `${path}?tenantId=${acme}`), body);
        expect([answer.status, answer.code]).toEqual([400, "TENANT_ID_REQUIRED"]);
      }
      const social = { provider: "google", tenantId: acme };
      const started = await browser.post(at(host, "/tenant/sign-in/social"), social);
      expect([started.status, started.code]).toEqual([400, "TENANT_ID_REQUIRED"]);
      const methods = await browser.get(at(host, "/tenant/sign-in-methods"), {
        query: { tenantId: acme },
      });
      expect([methods.status, methods.code]).toEqual([400, "TENANT_ID_REQUIRED"]);
    },
  );

  it("a host of a tenant that does not exist is an answer, and 404", async () => {
    const browser = shared.instance.browser({ "x-tenant-id": acme });
    const host = "nobody.example.com";
    for (const path of ["/sign-up/email", "/tenant/sign-up/email", "/tenant/sign-in/email"]) {
      const answer = await browser.post(at(host, path), { ...newcomer(), tenantId: acme });
      expect([answer.status, answer.code], path).toEqual([404, "TENANT_NOT_FOUND"]);
    }
    const session = await browser.get(at(host, "/get-session"));
    expect([session.status, session.code]).toEqual([404, "TENANT_NOT_FOUND"]);
  });

  it("a tenant that is renamed moves to its new host, with its people and their sessions", async () => {
    const { api } = shared.instance;
    const { id } = await shared.instance.createTenant("old-name");
    const { browser, user } = await signUpAt("old-name.example.com");
    await api.updateTenant({ body: { tenantId: id, slug: "new-name" } });
    const old = await browser.get(at("old-name.example.com", "/get-session"));
    expect([old.status, old.code]).toEqual([404, "TENANT_NOT_FOUND"]);
    const now = await browser.get<Signed>(at("new-name.example.com", "/get-session"));
    expect(now.data.user).toMatchObject({ id: user.id, tenantId: id });
    const signIn = await shared.instance
      .browser()
      .post<Signed>(at("new-name.example.com", "/sign-in/email"), newcomer(user.email));
    expect(signIn.data.user.id).toBe(user.id);
  });

  it("an operator at the base domain names the target of management in the body", async () => {
    const { operator } = shared;
    const google = { providerId: "google", clientId: "i", clientSecret: "s" };
    const register = at("example.com", "/tenant/oauth-config/register");
    const registered = await operator.post(register, { ...google, tenantId: acme });
    expect([registered.status, registered.data.tenantId]).toEqual([200, acme]);
    const list = at("example.com", "/tenant/oauth-config/list");
    const listed = await operator.get<{ tenantId: string }[]>(list, { query: { tenantId: acme } });
    expect(listed.data.map(({ tenantId }) => tenantId)).toEqual([acme]);
    const renamed = await operator.post(at("example.com", "/tenant/update"), {
      tenantId: globex,
      name: "Globex",
    });
    expect([renamed.status, renamed.data.name]).toEqual([200, "Globex"]);
    const gone = at("example.com", "/tenant/oauth-config/delete");
    expect((await operator.post(gone, { tenantId: acme, providerId: "google" })).status).toBe(200);
    // Somebody who may not manage gains nothing by the same words.
    const stranger = await signUpAt("example.com");
    const refused = await stranger.browser.post(register, { ...google, tenantId: acme });
    expect([refused.status, refused.code]).toEqual([403, "TENANT_MANAGEMENT_NOT_ALLOWED"]);
  });

  it("an operator at the base domain sees the people of all tenants, as without hosts", async () => {
    const { user } = await signUpAt("acme.example.com");
    const { data, status } = await shared.operator.get<{ users: { id: string }[] }>(
      at("example.com", "/admin/list-users"),
      { query: { limit: "1000" } },
    );
    expect(status).toBe(200);
    expect(data.users.map(({ id }) => id)).toContain(user.id);
  });

  it("code of the server's own, without request and headers, names the tenant itself", async () => {
    const { api } = shared.instance;
    const body = { ...newcomer(), tenantId: acme };
    const { user } = await api.signUpEmailTenant({ body });
    expect(user.tenantId).toBe(acme);
    const platform = await api.signUpEmail({ body: newcomer() });
    expect((platform.user as Signed["user"]).tenantId).toBeNull();
    await expect(api.signUpEmailTenant({ body: newcomer() })).rejects.toMatchObject({
      body: { code: "TENANT_ID_REQUIRED" },
    });
  });

  it("the same code with the headers of a request is at the host of that request", async () => {
    const { browser, user } = await signUpAt("acme.example.com");
    const { api } = shared.instance;
    const ask = (host: string) =>
      api.getSession({
        headers: new Headers({ host, cookie: browser.cookieHeader(), "x-tenant-id": acme }),
      });
    expect((await ask("acme.example.com"))?.user.id).toBe(user.id);
    expect(await ask("globex.example.com")).toBeNull();
  });
});

describe("links in mails", () => {
  it("begin with the host that they were asked for at, and lead back from the base domain too", async () => {
    const urls: string[] = [];
    const sendResetPassword = async ({ url }: { url: string }) => void urls.push(url);
    const instance = await createInstance({
      ...hosts,
      auth: { ...hosts.auth, emailAndPassword: { enabled: true, sendResetPassword } },
    });
    await instance.createTenant("acme");
    const { email } = newcomer();
    for (const host of ["acme.example.com", "example.com"]) {
      const browser = instance.browser();
      await browser.post(at(host, "/sign-up/email"), newcomer(email));
      await browser.post(at(host, "/request-password-reset"), { email, redirectTo: "/reset" });
    }
    const [inTenant = "", onPlatform = ""] = urls;
    expect([inTenant, onPlatform].map((url) => new URL(url).host)).toEqual([
      "acme.example.com",
      "example.com",
    ]);

    const moved = new URL(inTenant);
    moved.host = "example.com";
    const { location } = await instance.browser().get(moved.href);
    const token = new URL(location ?? "", moved).searchParams.get("token");
    const body = { newPassword: "another password", token };
    const reset = await instance.browser().post(at("example.com", "/reset-password"), body);
    expect(reset.status, JSON.stringify(reset.data)).toBe(200);
    const signIn = (host: string, password: string) =>
      instance.browser().post(at(host, "/sign-in/email"), { email, password });
    expect((await signIn("acme.example.com", "another password")).status).toBe(200);
    expect((await signIn("example.com", "another password")).status).toBe(401);
    expect((await signIn("example.com", PASSWORD)).status).toBe(200);
  });
});

describe("a forged x-forwarded-host, in requests", () => {
  const land = async (instance: Instance, headers: Record<string, string>) => {
    const url = at("acme.example.com", "/sign-up/email");
    const answer = await instance.browser(headers).post<Signed>(url, newcomer());
    return answer.data.user.tenantId;
  };

  it("leads nowhere, unless the application says that a proxy writes it", async () => {
    const database = await createDatabase("sqlite");
    const instance = await createInstance({ ...hosts, database });
    const acme = (await instance.createTenant("acme")).id;
    const globex = (await instance.createTenant("globex")).id;
    const forged = { "x-forwarded-host": "globex.example.com", "x-forwarded-proto": "http" };
    expect(await land(instance, forged)).toBe(acme);

    const advanced = { trustedProxyHeaders: true };
    const trusting = await createInstance({
      ...hosts,
      auth: { ...hosts.auth, advanced },
      database,
    });
    // A browser in front of that proxy says where it is.
    const origin = "http://globex.example.com";
    expect(await land(trusting, { ...forged, origin })).toBe(globex);
    expect(await land(trusting, {})).toBe(acme);
    const list = {
      "x-forwarded-host": "globex.example.com, acme.example.com",
      origin: "http://example.com",
    };
    expect(await land(trusting, list)).toBeNull();
    await database.close();
  });
});

describe("queries", () => {
  /** What each step costs at a host, for a tenant that is named by its id or by its slug. */
  async function measure(name: "id" | "slug") {
    const database = await createDatabase("sqlite");
    let id = "";
    const resolveTenantId = byDomain(() => (name === "id" ? id : { slug: "acme" }));
    const instance = await createInstance({ ...hosts, tenant: { resolveTenantId }, database });
    id = (await instance.createTenant("acme")).id;
    const browser = instance.browser();
    const person = newcomer();
    const counts: Record<string, number> = {};
    const step = async (label: string, run: () => Promise<{ status: number }>) => {
      database.statements.length = 0;
      expect((await run()).status, label).toBe(200);
      counts[label] = database.statements.length;
    };
    const host = "acme.example.com";
    // better-auth looks at the tables once, along with its first request. That is not counted.
    await browser.get(at(host, "/get-session"));
    await step("sign-up", () => browser.post(at(host, "/sign-up/email"), person));
    await step("get-session", () => browser.get(at(host, "/get-session")));
    await step("update-user", () => browser.post(at(host, "/update-user"), { name: "N" }));
    await step("sign-out", () => browser.post(at(host, "/sign-out")));
    await step("sign-in", () => browser.post(at(host, "/sign-in/email"), person));
    await step("own sign-in", () => browser.post(at(host, "/tenant/sign-in/email"), person));
    await step("methods", () => browser.get(at(host, "/tenant/sign-in-methods")));
    await database.close();
    return counts;
  }

  it("naming by slug costs what naming by id costs: both are looked up once in a while", async () => {
    const byId = await measure("id");
    const bySlug = await measure("slug");
    // get-session comes first, and looks up no id. A slug has been looked up and remembered there.
    expect(bySlug).toEqual({ ...byId, "sign-up": Number(byId["sign-up"]) - 1 });
    expect(byId["sign-in"]).toBeGreaterThanOrEqual(3);
  });
});
