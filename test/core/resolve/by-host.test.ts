import { describe, expect, it } from "vitest";
import {
  byDomain,
  bySubdomain,
  type ResolveTenant,
  type ResolveTenantContext,
  runInTenant,
} from "../../../src/index";
import { Browser } from "../../support/browser";
import { newcomer } from "../../support/instance";
import { createWorld, outcome, shareWorld } from "../../support/world";

type Named = Record<string, string>;

/** A request as a resolver sees it, with a host and whatever else is said. */
const asked = (headers: Named, { url, trusted }: { url?: string; trusted?: boolean } = {}) =>
  ({
    headers: new Headers(headers),
    ...(url && { request: new Request(url, { headers }) }),
    context: { options: { advanced: { trustedProxyHeaders: trusted } } },
  }) as ResolveTenantContext;

const resolve = bySubdomain({ baseDomain: "example.com" });
const ACME = { slug: "acme" };
const GLOBEX = { slug: "globex" };
const ID = { "x-tenant-id": "acme-id" };

describe("bySubdomain", () => {
  it.each(["acme.example.com", "ACME.Example.COM:3000"])(
    "takes %s for the tenant with the slug acme",
    async (host) => expect(await resolve(asked({ host }))).toEqual(ACME),
  );

  it.each(["acme.example.com.:8443", "acme.example.com:", "a%2Ee", "acme.example.com/x"])(
    "goes by the address of the request where better-auth does: %s",
    async (host) => {
      for (const at of ["acme.example.com", "acme.example.com.:8443"]) {
        expect(await resolve(asked({ host }, { url: `http://${at}/ok` }))).toEqual(ACME);
      }
      expect(await resolve(asked({ host }, { url: "http://globex.example.com/ok" }))).toEqual(
        GLOBEX,
      );
    },
  );

  it.each([
    ["the base domain", "example.com", "example.com:3000"],
    ["a reserved name", "www.example.com", "WWW.example.com", "www.acme.example.com"],
    ["a label below a label", "a.acme.example.com"],
    ["an empty label", ".example.com", "acme..example.com", "acme.example.com.."],
    ["a domain that only ends alike", "acmeexample.com", "acme.evilexample.com"],
    ["another domain", "acme.example.com.evil.com", "acme.example.org", "localhost:3000"],
    ["an address", "127.0.0.1", "[::1]:3000"],
    ["two", "acme.example.com, globex.example.com", "acme.example.com,globex.example.com"],
    ["more than a host", "acme.example.com/globex", "acme.example.com@evil.com"],
    ["a port that is none", "acme.example.com:port"],
    ["letters that no host has", "ac_me.example.com", "acm\u00e9.example.com"],
  ])("takes %s for no tenant, whatever else is said", async (_, ...hosts) => {
    for (const host of hosts) expect(await resolve(asked({ host, ...ID })), host).toBe(false);
  });

  it("goes by the request's headers before others, by its address, or by nothing", async () => {
    const url = "http://acme.example.com:3000/api/auth/ok";
    expect(await resolve(asked({}, { url }))).toEqual(ACME);
    expect(await resolve(asked({ host: "globex.example.com" }, { url }))).toEqual(GLOBEX);
    const request = new Request("http://a.com", { headers: { host: "acme.example.com" } });
    const headers = new Headers({ host: "globex.example.com" });
    const context = { options: {} };
    const ask = (given: object) => resolve({ context, ...given } as ResolveTenantContext);
    expect(await ask({ request, headers })).toEqual(ACME);
    expect(await ask({ headers })).toEqual(GLOBEX);
    expect(await ask({})).toBeUndefined();
    const trusting = { options: { advanced: { trustedProxyHeaders: true } } };
    expect(await ask({ context: trusting })).toBeUndefined();
  });

  it("takes other reserved names, and a base domain of several labels or of one", async () => {
    const at = async (baseDomain: string, host: string, reserved?: string[]) =>
      bySubdomain({ baseDomain, ...(reserved && { reserved }) })(asked({ host }));
    expect(await at("Example.com", "acme.example.com", ["acme"])).toBe(false);
    expect(await at("example.com", "www.example.com", ["acme"])).toEqual({ slug: "www" });
    expect(await at("eu.app.example.com", "acme.eu.app.example.com")).toEqual(ACME);
    expect(await at("eu.app.example.com", "acme.app.example.com")).toBe(false);
    expect(await at("localhost", "acme.localhost:3000")).toEqual(ACME);
    expect(() => bySubdomain("example.com" as never)).toThrow(
      'write { baseDomain: "example.com" }',
    );
    for (const baseDomain of ["", "https://example.com", "a.com/path", "*.a.com", ".a.com"]) {
      expect(() => bySubdomain({ baseDomain })).toThrow(/bySubdomain\(\): .* is not a domain/);
    }
  });
});

describe("byDomain", () => {
  it("looks the whole host up in a map", async () => {
    const find = byDomain({ "login.acme.com": ACME, "globex.com": "globex-id" });
    expect(await find(asked({ host: "Login.Acme.com:8443" }))).toEqual(ACME);
    expect(await find(asked({ host: "globex.com" }))).toBe("globex-id");
    for (const host of ["acme.com", "x.login.acme.com", "constructor", "127.0.0.1"]) {
      expect(await find(asked({ host, ...ID })), host).toBe(false);
    }
  });

  it("refuses at start a host that never matches", () => {
    for (const host of [
      ...["Login.acme.com", "acme.com:443", "https://acme.com", "acme.com/", "acme.com."],
      ...["*.acme.com", "b\u00fccher.example", ""],
    ]) {
      const create = () => byDomain({ "globex.com": "id", [host]: "id" });
      expect(create).toThrow(`byDomain(): "${host}" never matches`);
    }
    for (const hosts of ["acme.com", ["acme.com"]]) {
      expect(() => byDomain(hosts as never)).toThrow("Write { host: tenant }");
    }
    expect(() => byDomain({ "xn--bcher-kva.example": "id", localhost: "id" })).not.toThrow();
    expect(() => byDomain(Object.assign(() => "id", { Name: 1 }))).not.toThrow();
  });

  it("asks a function, once, with the name in lower case and without the port", async () => {
    const hosts: string[] = [];
    let answer: unknown = "acme-id";
    const find = byDomain(async (host) => {
      hosts.push(host);
      return answer as string;
    });
    expect(await find(asked({ host: "LOGIN.acme.com:443" }))).toBe("acme-id");
    expect(hosts.splice(0)).toEqual(["login.acme.com"]);
    // No tenant, and never a question that a caller could answer.
    for (answer of [null, undefined, "", false] as const) {
      expect(await find(asked({ host: "a.com", ...ID }))).toBe(false);
    }
    // What nobody understands is handed on, and refused there.
    for (answer of [0, true]) expect(await find(asked({ host: "a.com" }))).toBe(answer);
    hosts.length = 0;
    for (const host of ["a.com, b.com", "[::1]", "a.com/b", "a_b.com"]) {
      expect(await find(asked({ host })), host).toBe(false);
    }
    expect(hosts).toEqual([]);
  });
});

it("what a proxy says counts if better-auth trusts it, and understands it", async () => {
  const host = "acme.example.com";
  const says = (forwarded: string, trusted?: boolean) =>
    resolve(asked({ host, "x-forwarded-host": forwarded }, { trusted }));
  for (const trusted of [undefined, false]) {
    expect(await says("globex.example.com", trusted)).toEqual(ACME);
  }
  expect(await says("Globex.example.com:443", true)).toEqual(GLOBEX);
  expect(await resolve(asked({ host }, { trusted: true }))).toEqual(ACME);
  // Nobody knows who wrote which part of it: better-auth goes on with the host.
  expect(await says(`globex.example.com, ${host}`, true)).toEqual(ACME);
});

type Signed = { user: { id: string; email: string; tenantId: string | null } };

describe("requests by host", () => {
  const allowedHosts = ["localhost:3000", "example.com", "*.example.com", "*.unknown.com"];
  const fallback = "http://example.com";
  const world = shareWorld({
    tenant: { resolveTenantId: resolve },
    auth: { baseURL: { allowedHosts, protocol: "http", fallback } },
  });

  /** A browser at a host, with somebody's cookies. */
  function visit(host: string, headers: Named = {}, cookiesOf?: Browser) {
    const browser = new Browser(world.auth.handler, `http://${host}/api/auth`, headers);
    for (const [name, value] of cookiesOf?.cookies ?? []) browser.cookies.set(name, value);
    return browser;
  }

  /** Somebody who signs up with better-auth's own endpoint, at a host. */
  async function signUpAt(host: string, email?: string) {
    const browser = visit(host);
    const { data } = await browser.post<Signed>("/sign-up/email", newcomer(email));
    return { browser, ...data };
  }

  it("a session is good at the host of its tenant, and nowhere else", async () => {
    for (const [home, place] of [
      ["acme.example.com", "acme"],
      ["example.com", "platform"],
    ] as const) {
      const { browser, user } = await signUpAt(home, "everywhere@example.com");
      expect(user.tenantId).toBe(world.ids[place]);
      for (const name of ["acme.example", "globex.example", "example", "a.unknown"]) {
        const host = `${name}.com`;
        const window = visit(host, {}, browser);
        const { data } = await window.get<Signed | null>("/get-session");
        // Hosts of nobody are the platform's.
        const isHome = host === home || (place === "platform" && host === "a.unknown.com");
        expect([host, data?.user.id]).toEqual([host, isHome ? user.id : undefined]);
        if (!isHome) expect((await window.post("/update-user", { name: "X" })).status).toBe(401);
      }
    }
  });

  it("takeover: a link leads to the host of the tenant that it is for, whatever the host is made of", async () => {
    const hosts = ["acme.example.com", "globex.example.com", "example.com"];
    for (const host of hosts) await signUpAt(host, "jane@example.com");
    for (const at of hosts) {
      for (const host of [
        "acme.example.com.",
        "acme.example.com:",
        "acme%2Eexample.com",
        "a, b",
        "x_y",
      ]) {
        world.mails.length = 0;
        await visit(at, { host }).post("/request-password-reset", { email: "jane@example.com" });
        const { url, sentIn } = world.lastMail("reset");
        const names = Object.entries({ acme: "acme.example.com", globex: "globex.example.com" });
        const [place = "platform"] = names.find(([, name]) => new URL(url).host === name) ?? [];
        expect([at, host, sentIn]).toEqual([at, host, world.ids[place as "acme"]]);
      }
    }
  });

  it("takeover: nor in runInTenant, with the headers of a request at another tenant's host", async () => {
    const { api, ids, mails } = world;
    await signUpAt("acme.example.com", "joan@example.com");
    const ask = (host: string, redirectTo = "/page") =>
      runInTenant(ids.acme, () =>
        api.requestPasswordReset({
          headers: new Headers({ host }),
          body: { email: "joan@example.com", redirectTo },
        }),
      );
    mails.length = 0;
    for (const redirectTo of ["/page", "http://globex.example.com/page"]) {
      const code = expect.stringMatching(/^INVALID_(ORIGIN|REDIRECT_URL)$/);
      await expect(ask("globex.example.com", redirectTo)).rejects.toMatchObject({ body: { code } });
    }
    expect(mails).toEqual([]);
    // Control: its own host, and those of nobody.
    for (const host of ["acme.example.com", "example.com", "nobody.example.com"]) {
      await ask(host);
      expect(new URL(world.lastMail("reset").url).host).toBe(host);
    }
  });

  /** Resolvers of the application's own, and requests that are Acme's by them and Globex's by host. */
  const CONFUSED: [string, resolver: ResolveTenant, at: string, headers: Named][] = [
    [
      "by the address of the request",
      ({ request }) => request && resolve(asked({}, { url: request.url })),
      "acme.example.com",
      { host: "globex.example.com" },
    ],
    [
      "by a header of a proxy, else by host",
      ({ headers }) => {
        const host = headers?.get("x-original-host") ?? headers?.get("host");
        return host ? resolve(asked({ host })) : undefined;
      },
      "globex.example.com",
      { host: "globex.example.com", "x-original-host": "acme.example.com" },
    ],
    [
      "by a header that is missing",
      ({ headers }) =>
        headers?.has("host") ? resolve(asked({ host: headers.get("host") ?? "" })) : undefined,
      "globex.example.com",
      { "x-tenant-id": "acme" },
    ],
  ];

  it.each(CONFUSED)(
    "takeover: nor does a request that is Acme's %s lead to Globex",
    async (_, resolveTenantId, at, headers) => {
      const own = await createWorld({
        tenant: { resolveTenantId },
        auth: {
          baseURL: { allowedHosts, protocol: "http", fallback },
          trustedOrigins: ["http://*.example.com"],
        },
      });
      const tenantId = own.ids.acme;
      await own.api.signUpEmailTenant({ body: { ...newcomer("jane@example.com"), tenantId } });
      const named = "x-tenant-id" in headers ? { "x-tenant-id": tenantId } : headers;
      const ask = (where: string, given: Named, body = {}) =>
        new Browser(own.auth.handler, `http://${where}/api/auth`, given).post(
          "/request-password-reset",
          { email: "jane@example.com", ...body },
        );
      const redirectTo = "http://globex.example.com/page";
      for (const body of [{}, { redirectTo }]) {
        expect(outcome(await ask(at, named, body))).toEqual([403, "INVALID_ORIGIN"]);
      }
      expect(own.mails).toEqual([]);
      const acme = "acme.example.com";
      expect((await ask(acme, { ...named, host: acme })).status).toBe(200);
      expect(own.mails.map(({ sentIn, url }) => [sentIn, new URL(url).host])).toEqual([
        [tenantId, acme],
      ]);
    },
  );

  it("behind a proxy, a resolver of the application's own is refused nothing at a tenant's host", async () => {
    const own = await createWorld({
      // It does not know what to say of other hosts.
      tenant: {
        resolveTenantId: ({ headers }) => {
          const host = headers?.get("x-forwarded-host") ?? headers?.get("host");
          if (host === "example.com") throw new Error("unknown host");
          return host ? resolve(asked({ host })) : undefined;
        },
        tenantRoles: { admin: ["tenant:update"] },
      },
      auth: {
        baseURL: { allowedHosts, protocol: "http", fallback },
        advanced: { trustedProxyHeaders: true },
      },
    });
    const acme = "acme.example.com";
    const proxied = { host: "10.0.0.1:3000", "x-forwarded-host": acme, origin: `http://${acme}` };
    const visitor = () => new Browser(own.auth.handler, "http://10.0.0.1:3000/api/auth", proxied);
    expect((await visitor().get("/tenant/sign-in-methods")).status).toBe(200);
    const answer = await visitor().post<Signed>("/sign-up/email", newcomer());
    expect([answer.status, answer.data.user.tenantId]).toEqual([200, own.ids.acme]);
    expect((await visitor().post("/tenant/sign-up/email", newcomer())).status).toBe(200);
    const callback = await visitor().get("/tenant/callback/google?error=access_denied");
    expect(callback.status).toBe(302);
    const update = { tenantId: own.ids.acme, name: "Acme Ltd" };
    expect((await visitor().post("/tenant/update", update)).status).toBe(401);
    // The server's own code, which has no host.
    expect(await own.api.listTenants({})).toHaveLength(2);
  });

  it("at a host of no tenant's nothing that the caller says names one", async () => {
    const tenantId = world.ids.acme;
    const browser = visit("www.example.com", world.naming("acme"));
    const answer = await browser.post("/tenant/sign-up/email", { ...newcomer(), tenantId });
    expect(outcome(answer)).toEqual([400, "TENANT_ID_REQUIRED"]);
    // Code of the server's own, which has no host, names it itself.
    const { signUpEmailTenant } = world.api;
    const { user } = await signUpEmailTenant({ body: { ...newcomer(), tenantId } });
    expect(user.tenantId).toBe(tenantId);
    const unnamed = signUpEmailTenant({ body: newcomer() });
    await expect(unnamed).rejects.toMatchObject({ body: { code: "TENANT_ID_REQUIRED" } });
  });

  it("a host of a tenant that does not exist is an answer, and 404", async () => {
    const browser = visit("nobody.example.com", world.naming("acme"));
    for (const path of ["/sign-up/email", "/tenant/sign-up/email"]) {
      const answer = await browser.post(path, { ...newcomer(), tenantId: world.ids.acme });
      expect(outcome(answer)).toEqual([404, "TENANT_NOT_FOUND"]);
    }
  });
});
