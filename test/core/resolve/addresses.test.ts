import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint } from "better-auth/api";
import { magicLink } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { Browser } from "../../support/browser";
import { PASSWORD } from "../../support/instance";
import { createSocialWorld, GLOBAL } from "../../support/social";
import {
  BY_HEADER,
  BY_URL,
  createWorld,
  DOMAINS,
  expectRefused,
  type Hosts,
  outcome,
  type Place,
  SUBDOMAINS,
  shareWorld,
  type World,
  type WorldOptions,
} from "../../support/world";

/** Ways of telling better-auth that it answers on many hosts. */
type Base = Pick<BetterAuthOptions, "baseURL" | "trustedOrigins" | "advanced">;
const baseURL = "http://example.com";
const WILDCARDS = ["http://*.example.com", "http://*.acme.com", "http://globex.org", "myapp://"];
const STATIC: Base = { baseURL, trustedOrigins: WILDCARDS };
const ALLOWED: Base = {
  baseURL: { allowedHosts: ["example.com", "*.example.com"], protocol: "http", fallback: baseURL },
  trustedOrigins: ["myapp://"],
};

const answering = (hosts: Hosts, base: Base): WorldOptions => ({
  hosts,
  auth: { ...base, socialProviders: { google: GLOBAL } },
  plugins: (send) => [magicLink({ sendMagicLink: send("magic link") }), trusts],
});

/** A plugin that looks at an address of its own. */
const trusts: BetterAuthPlugin = {
  id: "trusts",
  endpoints: {
    trusts: createAuthEndpoint("/trusts", { method: "GET" }, async ({ context, query, json }) =>
      json({ isTrusted: context.isTrustedOrigin(String(query?.page)) }),
    ),
  },
};

const HERE = ["acme", "platform"] as const;
const OTHERS = { acme: ["globex"], platform: ["acme", "globex"] } as const;
const FIELDS = ["callbackURL", "errorCallbackURL", "newUserCallbackURL"];

const CODES: Record<string, string> = {
  redirectTo: "INVALID_REDIRECT_URL",
  callbackURL: "INVALID_CALLBACK_URL",
  errorCallbackURL: "INVALID_ERROR_CALLBACK_URL",
  newUserCallbackURL: "INVALID_NEW_USER_CALLBACK_URL",
};

const originOf = ({ names }: Hosts, place: Place) => `http://${names[place]}`;

describe("R9: an address of another tenant's", () => {
  const world = shareWorld(answering(SUBDOMAINS, STATIC));
  const origin = (place: Place) => originOf(SUBDOMAINS, place);

  it.each<[place: "acme" | "platform", path: string, fields: string[], body?: object]>([
    ["acme", "/request-password-reset", ["redirectTo"]],
    ["platform", "/request-password-reset", ["redirectTo"]],
    ["acme", "/sign-in/magic-link", FIELDS],
    ["platform", "/sign-in/magic-link", FIELDS],
    ["acme", "/tenant/sign-in/social", FIELDS, { provider: "google" }],
  ])("at %s is refused by %s, and nothing is sent", async (place, path, fields, body) => {
    const jane = await world.as("jane", place);
    // Beside an address that is nobody's.
    const more = { email: jane.email, ...body, pageURL: "http://nobody.org" };
    const ask = (field: string, address: string, headers = {}) =>
      jane.post(path, { ...more, [field]: `${address}/page?x=1` }, { headers });
    world.mails.length = 0;
    const rows = await world.rows("verification");
    for (const field of fields) {
      for (const other of OTHERS[place]) {
        // Nor by naming whose it is, where the host says otherwise.
        for (const headers of [{}, { "x-tenant-id": world.ids[other] }]) {
          expect(outcome(await ask(field, origin(other), headers))).toEqual([403, CODES[field]]);
        }
      }
    }
    expect([world.mails, await world.rows("verification")]).toEqual([[], rows]);
    // Control: here, on the platform, relative or in an app.
    for (const home of [origin(place), origin("platform"), "", "myapp:/"]) {
      const answer = await ask(fields[0] ?? "", home);
      expect(answer.status, `${home} ${JSON.stringify(answer.data)}`).toBe(200);
    }
  });

  it.each(HERE)("at %s: a page there changes nothing and gets no session", async (place) => {
    const jane = await world.as("jane", place);
    const rename = (name: string, headers: Record<string, string>) =>
      jane.post("/update-user", { name }, { headers });
    for (const other of OTHERS[place]) {
      for (const header of ["origin", "referer"]) {
        const headers = { origin: "", [header]: origin(other) };
        expectRefused(await rename("Changed", headers), 403, "INVALID_ORIGIN");
      }
      expect(await world.rows("user", "name = 'Changed'")).toBe(0);
      const named = await jane.post("/update-user", { name: "Changed", pageURL: origin(other) });
      expectRefused(named, 403, "INVALID_ORIGIN");
      // Control: what is no address, and a link.
      expect((await rename(origin(other), {})).status).toBe(200);
      const headers = { origin: origin(other) };
      expect((await jane.get("/list-sessions", { headers })).status).toBe(200);
    }
    // Whoever sends none, what is none or no body is answered by better-auth.
    const nobody = { email: "nobody@example.com", password: PASSWORD };
    const signIn = { headers: { origin: "" } };
    expect((await world.at(place).post("/sign-in/email", nobody, signIn)).status).toBe(401);
    const odd = await jane.post("/update-user", { name: "Odd", pageURL: "http://[" });
    expect([odd.status, (await jane.post("/update-user", null)).status]).toEqual([200, 400]);
    for (const home of [place, "platform"] as const) {
      const name = `${place} from ${home}`;
      expect((await rename(name, { origin: origin(home) })).status).toBe(200);
      expect(await world.rows("user", "name = ?", [name])).toBe(1);
    }
  });

  it("cannot manage tenants with the session of an operator", async () => {
    const operator = await world.operator();
    const change = { tenantId: world.ids.acme, name: "Changed" };
    const update = (place: Place) =>
      operator.post("/tenant/update", change, { headers: { origin: origin(place) } });
    // Nor that tenant itself.
    expectRefused(await update("acme"), 403, "INVALID_ORIGIN");
    expect((await update("platform")).status).toBe(200);
    // They may write down an address of that tenant, and of no other.
    const config = { providerId: "google", clientId: "id", clientSecret: "secret" };
    const register = (place: Place) => {
      const redirectURI = `https://${SUBDOMAINS.names[place]}/back?tenant=${world.ids.acme}`;
      const body = { tenantId: world.ids.acme, ...config, redirectURI };
      return operator.post("/tenant/oauth-config/register", body);
    };
    expectRefused(await register("globex"), 403, "INVALID_ORIGIN");
    expect(outcome(await register("acme"))).toEqual([200, undefined]);
  });

  it("is not trusted by an endpoint that looks at it itself", async () => {
    const jane = await world.as("jane", "acme");
    const asked: unknown[] = [];
    for (const place of ["acme", "platform", "globex"] as const) {
      const { data } = await jane.get("/trusts", { query: { page: origin(place) } });
      asked.push(data.isTrusted);
    }
    expect(asked).toEqual([true, true, false]);
  });

  it("is refused in a call of auth.api for a request at another's host", async () => {
    const { globex: tenantId } = world.ids;
    const body = { provider: "google", tenantId, callbackURL: `${origin("globex")}/page` };
    const headers = new Headers({ host: SUBDOMAINS.names.acme });
    const call = world.api.signInSocialTenant({ body, headers });
    await expect(call).rejects.toMatchObject({ body: { code: "INVALID_CALLBACK_URL" } });
  });

  it("threat: resources: thousands of them make no request ask thousands of times", async () => {
    const addresses = Array.from({ length: 2000 }, (_, n) => [
      `${n}url`,
      `http://n${n}.example.com`,
    ]);
    const jane = await world.as("jane", "acme");
    // One of them twice.
    const send = (count: number) => {
      const body = Object.fromEntries(addresses.slice(0, count));
      return jane.post("/update-user", { ...body, againURL: "http://n0.example.com" });
    };
    world.database.statements.length = 0;
    for (const count of [2000, 21]) expectRefused(await send(count), 400, "VALIDATION_ERROR");
    expect(world.database.statements.length).toBeLessThan(100);
    expectRefused(await send(20), 403, "INVALID_ORIGIN");
    const long = `http://acme.example.com/${"x".repeat(2048)}`;
    const ask = (pageURL: string) => jane.post("/update-user", { name: "X", pageURL });
    expectRefused(await ask(long), 400, "VALIDATION_ERROR");
    for (const good of [long.slice(0, 2048), `data:text/plain,${long}`]) {
      expect((await ask(good)).status).toBe(200);
    }
  });

  it("in a link leads nowhere, which works as it was sent", async () => {
    const person = await world.as("linked", "acme");
    await person.post("/sign-in/magic-link", { email: person.email, callbackURL: "/page" });
    const link = new URL(world.lastMail("magic link").url);
    link.host = SUBDOMAINS.names.acme;
    for (const field of FIELDS) {
      // Nor does one that better-auth does not trust.
      for (const elsewhere of [origin("globex"), "http://nobody.org"]) {
        const query = { [field]: `${elsewhere}/page` };
        const answer = await person.get(link.href, { query });
        expect([...outcome(answer), answer.location]).toEqual([403, "INVALID_CALLBACK_URL", null]);
      }
    }
    expect((await person.get(link.href)).location).toMatch(/^(http:\/\/[^/]+)?\/page$/);
  });
});

it.each<[name: string, hosts: Hosts, base: Base]>([
  ["allowedHosts", SUBDOMAINS, ALLOWED],
  ["byDomain", DOMAINS, STATIC],
  ["a function that looks at the host header", BY_HEADER, STATIC],
  ["a function that looks at the URL", BY_URL, STATIC],
])("R9: the same with %s", async (_, hosts, base) => {
  const world = await createWorld(answering(hosts, base));
  const jane = await world.as("jane", "acme");
  const { email } = jane;
  const ask = (browser: Browser, place: Place, headers = {}) => {
    const body = { email, redirectTo: `${originOf(hosts, place)}/page` };
    return browser.post("/request-password-reset", body, { headers });
  };
  expectRefused(await ask(jane, "globex"), 403, "INVALID_REDIRECT_URL");
  const origin = { origin: originOf(hosts, "globex") };
  expectRefused(await ask(jane, "acme", origin), 403, "INVALID_ORIGIN");
  expect(world.mails).toEqual([]);
  for (const home of ["acme", "platform"] as const) {
    expect((await ask(jane, home)).status, home).toBe(200);
  }
  const link = new URL(world.lastMail("reset").url);
  link.host = hosts.names.acme;
  link.searchParams.set("callbackURL", `${originOf(hosts, "globex")}/page`);
  expectRefused(await jane.get(link.href), 403, "INVALID_CALLBACK_URL");
  // Where the resolver lets requests speak at the platform's host, header and session count.
  if (hosts !== BY_HEADER) return;
  const headers = { "x-tenant-id": world.ids.acme };
  for (const browser of [world.at("platform").fork(headers), world.at("platform", jane)]) {
    expectRefused(await ask(browser, "globex"), 403, "INVALID_REDIRECT_URL");
    expect((await ask(browser, "acme")).status).toBe(200);
  }
});

it("R9: a host for which the resolver fails, or finds no tenant, is trusted nowhere, and the log says which; pages are", async () => {
  const resolveTenantId: Hosts["resolveTenantId"] = (ctx) => {
    const { hostname } = new URL(ctx.request?.url ?? baseURL);
    if (!/(^|\.)example\.com$/.test(hostname)) throw new Error("the table of hosts is away");
    return SUBDOMAINS.resolveTenantId(ctx);
  };
  const world = await createWorld(answering({ ...SUBDOMAINS, resolveTenantId }, STATIC));
  for (const [place, where] of [
    ["acme", `in tenant ${world.ids.acme}`],
    ["platform", "on the platform"],
  ] as const) {
    const jane = await world.as("jane", place);
    const ask = (redirectTo: string) =>
      jane.post("/request-password-reset", { email: jane.email, redirectTo });
    for (const [origin, failure] of [
      ["http://login.acme.com", [expect.stringContaining("hosts is away")]],
      ["http://nobody.example.com", []],
    ] as const) {
      world.logs.length = 0;
      expectRefused(await ask(`${origin}/page`), 403, "INVALID_REDIRECT_URL");
      const said = `${origin} belongs to another tenant and is not trusted ${where}`;
      const errors = world.logs.filter((line) => line.startsWith("error"));
      expect(errors).toEqual([...failure, `error ${said}`]);
    }
    expect((await ask("/page")).status).toBe(200);
  }
});

it.each([
  ["disableCSRFCheck", { disableOriginCheck: false, disableCSRFCheck: true }, [200, 403]],
  ["disableOriginCheck", { disableOriginCheck: true }, [200, 200]],
])("R9: better-auth's own %s switches off pages, or all of it", async (_, advanced, statuses) => {
  const world = await createWorld(answering(SUBDOMAINS, { ...STATIC, advanced }));
  const jane = await world.as("jane", "acme");
  const origin = originOf(SUBDOMAINS, "globex");
  const body = { email: jane.email, redirectTo: `${origin}/page` };
  const renamed = await jane.post("/update-user", { name: "X" }, { headers: { origin } });
  const asked = await jane.post("/request-password-reset", body);
  expect([renamed.status, asked.status]).toEqual(statuses);
});

const asksForReset = (world: World) => async (redirectTo: string) => {
  const jane = await world.as("jane", "acme");
  world.mails.length = 0;
  return jane.post("/request-password-reset", { email: jane.email, redirectTo });
};

// Every host there is: a mistake, but one that people make.
describe("R9: addresses in disguise, where everything is trusted", () => {
  const trustedOrigins = ["http://*", "https://*", "http://*:*", "https://*:*"];
  const world = shareWorld(answering(SUBDOMAINS, { baseURL, trustedOrigins }));
  const ask = asksForReset(world);

  // A browser takes all of them to Globex; the last one to a tenant which does not exist.
  it.each([
    "HTTP://GLOBEX.Example.COM/page",
    "https://globex.example.com/page",
    "http://globex.example.com.:8080/page",
    "http://acme.example.com@globex.example.com/page",
    "http://globex.example.com\\@acme.example.com/page",
    "http:\\\\globex.example.com/page",
    "http:/globex.example.com/page",
    "http://glo\tbex.example.com/page",
    "http://%67lobex.example.com/page",
    "http://\uff47lobex\u3002example.com/page",
    " http://globex.example.com/page",
    "\u0001http://globex.example.com/page",
    "ht\ntp://globex.example.com/page",
    "http\r\n:\t//globex.example.com/page",
    "https:/globex.example.com/page",
    "https:globex.example.com/page",
    "//globex.example.com/page",
    "/\\globex.example.com/page",
    "http://globex.example.com?x=http://acme.example.com/",
    "http://globex.example.com#@acme.example.com/",
    "http://nobody.example.com/page",
    "http://[",
  ])("%j is refused", async (address) => {
    expectRefused(await ask(address), 403, "INVALID_REDIRECT_URL");
    expect(world.mails).toEqual([]);
  });

  // Our own resolvers overlook the dot. The application's function need not.
  it("a trailing dot is the same host, whatever looks at it", async () => {
    const { at, as, mails } = await createWorld(answering(BY_URL, { baseURL, trustedOrigins }));
    const { email } = await as("jane", "acme");
    for (const [place, status] of [
      ["globex", 403],
      ["acme", 200],
    ] as const) {
      const redirectTo = `${originOf(BY_URL, place)}./page`;
      const answer = await at("acme").post("/request-password-reset", { email, redirectTo });
      expect([place, answer.status]).toEqual([place, status]);
    }
    expect(mails).toHaveLength(1);
  });

  it("control: these are good, and what is no address of a page is better-auth's to refuse", async () => {
    expect((await ask("mailto:a@globex.example.com")).status).toBeLessThan(500);
    for (const address of [
      "http://ACME.example.com:8080/page",
      "http://globex.example.com@acme.example.com/page",
      "https://somewhere.else.org/globex.example.com",
      "/globex.example.com",
    ]) {
      expect([address, (await ask(address)).status]).toEqual([address, 200]);
      expect(world.mails).toHaveLength(1);
    }
  });
});

// Patterns without a scheme, which better-auth compares with the host alone; and one with any.
describe("R9: addresses of any scheme, where the host is trusted", () => {
  const trustedOrigins = ["*.example.com", "*", "*://*.example.com", "MyApp://", "exp://"];
  const world = shareWorld(answering(SUBDOMAINS, { baseURL, trustedOrigins }));
  const ask = asksForReset(world);

  it.each([
    "intent://globex.example.com/#Intent;scheme=http;end",
    "intent://GLOBEX.example.com.:80/#Intent;scheme=http;end",
    "intent://acme.example.com@%67lobex.example.com/",
    "intent://globex\u3002example.com/",
    "in\ntent://globex.example.com/",
    "intent:////globex.example.com/",
    "ftp://globex.example.com/page",
    "ws:globex.example.com/page",
    "wss://globex.example.com/page",
    "javascript://globex.example.com/%0aalert(1)",
    "blob:http://globex.example.com/page",
    "view-source:blob:http://globex.example.com",
    "intent://nobody.example.com/",
    // Of Acme as well: these open no app that the application lists.
    "intent://acme.example.com/#Intent;scheme=http;end",
    "blob:http://acme.example.com/page",
  ])("%j is refused at Acme", async (address) => {
    expectRefused(await ask(address), 403, "INVALID_REDIRECT_URL");
    expect(world.mails).toEqual([]);
  });

  it.each([
    "myapp://callback",
    "myapp://globex/page",
    "myapp://globex.example.com/page",
    "myapp:/page",
    "exp://192.168.0.7:8081/--/page",
    "exp://u.expo.dev/page",
  ])("control: %j is good there", async (address) => {
    expect((await ask(address)).status).toBe(200);
    expect(world.mails).toHaveLength(1);
  });
});

const CLIENT_HOSTS: [name: string, hosts: Hosts][] = [
  ["bySubdomain", SUBDOMAINS],
  ["byDomain", DOMAINS],
  ["a function that looks at the host header", BY_HEADER],
];

// Both use the application's client, with a redirect URI at each host, as docs/oauth.md says. Who
// owns Globex may read along at its host.
describe.each(CLIENT_HOSTS)("R9: takeover: a code that comes to Globex's host, %s", (_, hosts) => {
  it.each(
    (["database", "cookie", "secondary storage"] as const).flatMap((stateStrategy) =>
      HERE.map((place) => [stateStrategy, place] as const),
    ),
  )("with the state in the %s, signs nobody in at %s", async (stateStrategy, place) => {
    const world = await createSocialWorld({ hosts, stateStrategy });
    const start = async () => {
      const browser = world.at(place);
      const body = { provider: "gitlab", callbackURL: "/in", errorCallbackURL: "/err" };
      const { data } = await browser.post<{ url: string }>("/sign-in/social", body);
      return { browser, url: new URL(data.url) };
    };
    const alice = await start();
    const own = await alice.browser.get(await world.idp.authorize(alice.url.href, "alice"));
    expect([own.location, (await world.whoIs(alice.browser, place))?.tenantId]).toEqual([
      "/in",
      world.ids[place],
    ]);
    const mallory = await start();
    const { searchParams } = mallory.url;
    const registered = new URL(String(searchParams.get("redirect_uri")));
    registered.host = hosts.names.globex;
    searchParams.set("redirect_uri", registered.href);
    const back = await world.idp.authorize(mallory.url.href, "alice");
    expect(back).toMatch(`http://${hosts.names.globex}/`);
    const window = world.at("globex", mallory.browser);
    for (const address of [back, back.replace(/state=[^&]*/, "state=nothing")]) {
      const { status, location } = await window.get(address);
      expect([status, location]).toEqual([302, expect.stringMatching(/error=/)]);
    }
    expect(await world.whoIs(world.at(place, window), place)).toBe(null);
  });
});
