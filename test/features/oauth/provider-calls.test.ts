import dns from "node:dns";
import dnsPromises from "node:dns/promises";
import type { ServerResponse } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import { gzipSync } from "node:zlib";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { makeDiscovery, startIdentityProvider } from "../../support/identity-provider";
import { BASE_URL } from "../../support/instance";
import { publishedKeys, signToken } from "../../support/providers";
import { createSocialWorld } from "../../support/social";
import { createSSOWorld, oidc, sharedOidc, shareSSOWorld } from "../enterprise/world";

/*
 * An identity provider of a tenant answers with too much, too slowly, or from another address than
 * the one that was checked. What it answers with is right otherwise: without limits, it signs in.
 */

const MB = 1024 * 1024;

type Send = (body: object, response: ServerResponse) => void;

const JSON_TYPE = { "content-type": "application/json" };
/** A JSON object with a member more, which is as long as what comes between the two parts. */
const around = (body: object) => [`${JSON.stringify({ ...body, more: "" }).slice(0, -2)}`, '"}'];

/** The right answer, and so many bytes more in it. */
const padded =
  (bytes: number): Send =>
  (body, response) => {
    response.writeHead(200, JSON_TYPE).end(around(body).join("0".repeat(bytes)));
  };

const ZEROS = gzipSync("0".repeat(200 * MB));
/** The same with 200 MB, which are 199 KB on their way. */
const compressed: Send = (body, response) => {
  const [start = "", end = ""] = around(body);
  const parts = [gzipSync(start), ZEROS, gzipSync(end)];
  response.writeHead(200, { ...JSON_TYPE, "content-encoding": "gzip" }).end(Buffer.concat(parts));
};

/** The right answer, of which a byte comes every 300 ms, or none. */
const dripping =
  (ms = 300): Send =>
  (body, response) => {
    const text = JSON.stringify(body);
    response.writeHead(200, { "content-type": "application/json" });
    let at = 0;
    const timer = setInterval(() => {
      response.write(text.charAt(at));
      at += 1;
      if (at >= text.length) response.end();
    }, ms);
    response.on("close", () => clearInterval(timer));
  };
const silent: Send = () => {};

type IdentityProvider = Awaited<ReturnType<typeof startIdentityProvider>>;

/** Leads to another path, which answers in this way. */
const redirecting =
  (send: Send): Send =>
  (body, response) => {
    elsewhere.set("/elsewhere", (_, other) => send(body, other));
    response.writeHead(302, { location: "/elsewhere" }).end();
  };

/** How a path answers until the test is over. */
const elsewhere = new Map<string, Send>();
function answerAt(provider: IdentityProvider, path: string, send: Send) {
  provider.rules.send = (asked, body, response) => {
    const chosen = asked === path ? send : elsewhere.get(asked);
    chosen?.(Object(body), response);
    return chosen !== undefined;
  };
  onTestFinished(() => {
    provider.rules.send = undefined;
    elsewhere.clear();
  });
}

const TOO_MUCH: [what: string, send: Send][] = [
  ["200 MB in 199 KB of gzip", compressed],
  ["more than 1 MB", padded(MB)],
];
/** An answer of just below a megabyte is good. */
const MUCH = padded(MB - 10_000);

describe("what a tenant's provider answers is limited: OAuth", () => {
  const PATHS = ["/oauth/token", "/api/v4/user"];

  it.each(PATHS.flatMap((path) => TOO_MUCH.map(([what, send]) => [path, what, send] as const)))(
    "%s answers with %s",
    async (path, _, send) => {
      const world = await createSocialWorld();
      await world.configure("acme");
      const signIn = async (where: string | null) =>
        (await world.signInAtProvider(world.at(null), where)).location;
      answerAt(world.idp, path, MUCH);
      expect(await signIn("acme")).toBe("/welcome");
      answerAt(world.idp, path, send);
      expect(await signIn("acme")).toMatch(/^\/failed\?error=/);
      // The application's own provider has no limits.
      answerAt(world.idp, path, padded(2 * MB));
      expect(await signIn(null)).toBe("/welcome");
    },
  );

  it("an answer by a redirect is one of the provider", async () => {
    const world = await createSocialWorld();
    await world.configure("acme");
    const signIn = async () => (await world.signInAtProvider(world.at(null), "acme")).location;
    answerAt(world.idp, "/api/v4/user", redirecting(MUCH));
    expect(await signIn()).toBe("/welcome");
    answerAt(world.idp, "/api/v4/user", redirecting(padded(MB)));
    expect(await signIn()).toMatch(/^\/failed\?error=/);
  });
});

/** A provider that also sends id tokens, and describes itself. */
async function startFullProvider() {
  const provider = await startIdentityProvider();
  provider.rules.discovery = makeDiscovery(provider.issuer);
  return provider;
}
const provider = await startFullProvider();
const DISCOVERY = "/.well-known/openid-configuration";
const CLIENT = "client-of-acme-okta";

/** Tokens with an id token in them, and the keys to it. */
const withIdTokens =
  (path: string, send: Send): Send =>
  (body, response) => {
    const sub = String(provider.addPerson("ada").id);
    const id_token = signToken({
      iss: provider.issuer,
      aud: CLIENT,
      sub,
      email: "ada@acme.example",
    });
    const full =
      path === "/oauth/token" ? { ...body, id_token } : path === "/jwks" ? publishedKeys : body;
    send(full, response);
  };
const plainly: Send = (body, response) =>
  void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));

/** All of the provider is good, and one path answers in this way. */
function answerFully(path: string, send: Send) {
  for (const each of ["/oauth/token", "/jwks", "/api/v4/user", DISCOVERY]) {
    elsewhere.set(each, withIdTokens(each, each === path ? send : plainly));
  }
  answerAt(provider, "", plainly);
}

describe("what a tenant's provider answers is limited: sso()", () => {
  const world = shareSSOWorld({
    provider,
    sso: { defaultSSO: [sharedOidc(provider, "everybodys")] },
  });
  beforeAll(() => world.register("acme", oidc(provider, "acme-okta")));

  it.each(
    ["/oauth/token", "/jwks", "/api/v4/user"].flatMap((path) =>
      TOO_MUCH.map(([what, send]) => [path, what, send] as const),
    ),
  )("%s answers with %s", async (path, _, send) => {
    answerFully(path, MUCH);
    expect((await world.ssoSignIn("acme", "acme-okta")).location).toBe("/welcome");
    answerFully(path, send);
    expect((await world.ssoSignIn("acme", "acme-okta")).location).toMatch(/^\/failed\?error=/);
    // The application's own provider has no limits, in a tenant as well.
    if (path === "/jwks") return;
    elsewhere.clear();
    answerAt(provider, path, padded(2 * MB));
    expect((await world.ssoSignIn("globex", "everybodys")).location).toBe("/welcome");
  });

  it.each(TOO_MUCH)("a discovery document of %s", async (_, send) => {
    const admin = await world.as("admin", "acme");
    const register = async (how: Send) => {
      answerAt(provider, DISCOVERY, how);
      const id = crypto.randomUUID();
      const { clientId, clientSecret } = oidc(provider, id).oidcConfig;
      const given = { ...oidc(provider, id), oidcConfig: { clientId, clientSecret } };
      return (await admin.post("/sso/register", given)).status;
    };
    expect(await register(MUCH)).toBe(200);
    expect(await register(send)).toBe(502);
  });

  it("everything that is waited for without end", async () => {
    const start = performance.now();
    const paths = ["/oauth/token", "/jwks", "/api/v4/user"];
    const ways: [string, Send][] = [
      ...paths.map((path): [string, Send] => [path, dripping()]),
      ["/oauth/token", silent],
    ];
    const results = [];
    for (const [path, send] of ways) {
      answerFully(path, send);
      const { back, browser } = await world.underWay("acme", "acme-okta");
      const answer = browser.get(back.href);
      // The next one starts when this one has begun to wait.
      await new Promise((resolve) => setTimeout(resolve, 300));
      results.push(answer);
    }
    for (const { location } of await Promise.all(results)) {
      expect(location).toMatch(/^\/failed\?error=/);
    }
    expect(performance.now() - start).toBeLessThan(15_000);
  });
});

/** The check of better-auth sees a public address, and whoever connects afterwards another one. */
function rebind(host: string) {
  const { lookup } = dns;
  const { lookup: lookupForCheck } = dnsPromises;
  const restore = () => {
    Object.assign(dns, { lookup });
    Object.assign(dnsPromises, { lookup: lookupForCheck });
    syncBuiltinESMExports();
  };
  const toLoopback = (name: string, options: object, done: never) =>
    lookup(name === host ? "127.0.0.1" : name, options, done);
  Object.assign(dns, { lookup: toLoopback });
  Object.assign(dnsPromises, { lookup: async () => [{ address: "93.184.215.14", family: 4 }] });
  syncBuiltinESMExports();
  onTestFinished(restore);
}

it.each([
  "",
  // better-fetch changes it, so it calls another address than better-auth has checked.
  "?x",
])(
  "an address that becomes private after better-auth checked it is not connected to: %j",
  async (query) => {
    const vault = await startIdentityProvider();
    const { port } = new URL(vault.issuer);
    const issuer = `http://rebound.example:${port}`;
    rebind("rebound.example");
    const world = await createSSOWorld({ provider: vault, tenant: { trustedProviderHosts: [] } });
    const given = oidc({ ...vault, issuer }, "acme-okta");
    await world.register("acme", given);
    const tokenEndpoint = `${issuer}/oauth/token${query}`;
    const oidcConfig = JSON.stringify({ ...given.oidcConfig, issuer, tokenEndpoint });
    await world.write("ssoProvider", { oidcConfig }, { providerId: "acme-okta" });
    const browser = world.at("platform");
    const { data } = await world.start("acme", "acme-okta", browser);
    const state = new URL(data.url).searchParams.get("state") ?? "";
    const address = `${BASE_URL}/sso/callback/acme-okta`;
    const { location } = await browser.get(address, { query: { code: "x", state } });
    expect(vault.requests).toEqual([]);
    expect(location).toContain("error_description=No+usable+answer");
    // Without the plugin, this is where the request would have gone.
    await fetch(`${issuer}/oauth/token`);
    expect(vault.requests).toHaveLength(1);
  },
);

describe("SSRF: an address of a stored provider that better-fetch would change is not called", () => {
  const world = shareSSOWorld({
    provider,
    auth: {
      databaseHooks: {
        session: { create: { after: async () => void (await fetch(`${provider.issuer}/own`)) } },
      },
    },
  });
  beforeAll(() => world.register("acme", oidc(provider, "acme-changed")));

  const goOn = async () => (await world.ssoSignIn("acme", "acme-changed")).location;

  /** How a sign-in ends, and what it called, after an address has changed in the database. */
  async function signInWith(name: string, address: string) {
    const { oidcConfig } = oidc(provider, "acme-changed");
    const changed = JSON.stringify({ ...oidcConfig, issuer: provider.issuer, [name]: address });
    await world.write("ssoProvider", { oidcConfig: changed }, { providerId: "acme-changed" });
    const before = provider.requests.length;
    const started = await world.start("acme", "acme-changed");
    const end = started.status === 200 ? await goOn() : started.code;
    const called = provider.requests.slice(before).map(({ path }) => path);
    return { end, called: called.filter((path) => path !== "/oauth/authorize") };
  }

  const { issuer } = provider;
  const PATHS: Record<string, string> = {
    tokenEndpoint: "/oauth/token",
    userInfoEndpoint: "/api/v4/user",
  };
  const CHANGED: [string, (path: string) => string][] = [
    ["an absolute address in the path", (path) => `https://www.example.com/${issuer}${path}`],
    ["one that its dots hide", (path) => `https://www.example.com/${issuer}/../../..${path}`],
    ["an empty parameter", (path) => `${issuer}${path}?x`],
    ["a plus", (path) => `${issuer}${path}?a=b+c`],
    ["two question marks", (path) => `${issuer}${path}?a=1?b=2`],
    ["a fragment", (path) => `${issuer}${path}#f`],
  ];
  const CASES = Object.keys(PATHS).flatMap((name) =>
    CHANGED.map(([what, write]) => [name, what, write] as const),
  );

  it.each(CASES)("%s: %s", async (name, _, write) => {
    const path = PATHS[name] ?? "";
    const { end, called } = await signInWith(name, write(path));
    expect(end).toMatch(/^\/failed\?error=|^discovery_private_host$/);
    expect(called).not.toContain(path);
    expect(called.filter((other) => other !== "/oauth/token")).toEqual([]);
  });

  it("a query that it leaves alone is called, and so is what the application calls itself", async () => {
    for (const [name, path] of Object.entries(PATHS)) {
      const { end, called } = await signInWith(name, `${issuer}${path}?p=b2c_1&a=b%20c`);
      expect(end).toBe("/welcome");
      expect(called).toEqual(["/oauth/token", "/api/v4/user", "/own"]);
    }
  });

  it("the answer of such an address has limits too", async () => {
    answerAt(provider, "/api/v4/user", padded(2 * MB));
    const address = `${issuer}/api/v4/user?p=b2c_1`;
    expect((await signInWith("userInfoEndpoint", address)).end).toMatch(/^\/failed\?error=/);
  });
});

it("what mapProfileToUser calls for a tenant's provider has no limits", async () => {
  const other = await startIdentityProvider();
  answerAt(other, "/own", padded(2 * MB));
  const mapped: number[] = [];
  const mapProfileToUser = async () => {
    const answer = await fetch(`${other.issuer}/own`);
    mapped.push(answer.status, (await answer.text()).length);
    return {};
  };
  const world = await createSocialWorld({ gitlab: { mapProfileToUser } });
  await world.configure("acme");
  const signIn = async () => (await world.signInAtProvider(world.at(null), "acme")).location;
  expect(await signIn()).toBe("/welcome");
  expect(mapped).toEqual([200, expect.toSatisfy((length: number) => length > 2 * MB)]);
  // The provider itself has them.
  answerAt(world.idp, "/api/v4/user", padded(2 * MB));
  expect(await signIn()).toMatch(/^\/failed\?error=/);
});
