import type { BetterAuthOptions } from "better-auth";
import { bearer, magicLink, oauthPopup } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { PASSWORD } from "../support/instance";
import { GLOBAL, shareSocialWorld } from "../support/social";
import {
  BY_HEADER,
  BY_URL,
  DOMAINS,
  expectRefused,
  type Hosts,
  outcome,
  type Place,
  SUBDOMAINS,
  shareWorld,
  type WorldOptions,
} from "../support/world";

/** Ways of telling better-auth that it answers on many hosts. */
type Base = Pick<BetterAuthOptions, "baseURL" | "trustedOrigins">;
const baseURL = "http://example.com";
const WILDCARDS = ["http://*.example.com", "http://*.acme.com", "http://globex.org", "myapp://"];
const STATIC: Base = { baseURL, trustedOrigins: WILDCARDS };
const ALLOWED: Base = {
  baseURL: { allowedHosts: ["example.com", "*.example.com"], protocol: "http", fallback: baseURL },
  trustedOrigins: ["myapp://"],
};

const WORLDS: [name: string, hosts: Hosts, base: Base][] = [
  ["bySubdomain, a static baseURL and wildcards", SUBDOMAINS, STATIC],
  ["trustedOrigins as a function", SUBDOMAINS, { baseURL, trustedOrigins: async () => WILDCARDS }],
  ["allowedHosts", SUBDOMAINS, ALLOWED],
  ["byDomain", DOMAINS, STATIC],
  ["a function that looks at the host header", BY_HEADER, STATIC],
  ["a function that looks at the URL", BY_URL, STATIC],
];

const answering = (hosts: Hosts, base: Base): WorldOptions => ({
  hosts,
  auth: { ...base, socialProviders: { google: GLOBAL } },
  deletionByMail: true,
  plugins: (send) => [magicLink({ sendMagicLink: send("magic link") }), oauthPopup()],
});

const HERE = ["acme", "platform"] as const;
const OTHERS = { acme: ["globex"], platform: ["acme", "globex"] } as const;
const FIELDS = ["callbackURL", "errorCallbackURL", "newUserCallbackURL"];

/** Requests that carry an address: where they go, where the address is, and what else they need. */
const ADDRESSED: [path: string, fields: string[], body: object][] = [
  ["/request-password-reset", ["redirectTo"], {}],
  ["/send-verification-email", ["callbackURL"], {}],
  ["/change-email", ["callbackURL"], { newEmail: "new@example.com" }],
  ["/delete-user", ["callbackURL"], {}],
  ["/sign-in/email", ["callbackURL"], { password: PASSWORD }],
  ["/sign-in/magic-link", FIELDS, {}],
  ["/sign-in/social", FIELDS, { provider: "google" }],
  ["/link-social", ["callbackURL", "errorCallbackURL"], { provider: "google" }],
  ["/tenant/sign-in/email", ["callbackURL"], { password: PASSWORD }],
  ["/tenant/sign-in/social", FIELDS, { provider: "google" }],
];

const CODES: Record<string, string> = {
  redirectTo: "INVALID_REDIRECT_URL",
  callbackURL: "INVALID_CALLBACK_URL",
  errorCallbackURL: "INVALID_ERROR_CALLBACK_URL",
  newUserCallbackURL: "INVALID_NEW_USER_CALLBACK_URL",
};

/** All requests in the first world; in the others those that differ in how they are checked. */
function addressedIn(hosts: Hosts, base: Base) {
  const few = [
    "/request-password-reset",
    "/sign-in/magic-link",
    "/sign-in/social",
    "/tenant/sign-in/social",
  ];
  const isFirst = hosts === WORLDS[0]?.[1] && base === STATIC;
  return ADDRESSED.filter(([path]) => isFirst || few.includes(path)).flatMap(
    ([path, [first = "", ...more], body]) =>
      HERE.filter((place) => place === "acme" || !path.startsWith("/tenant/")).map(
        (place) => [place, path, isFirst ? [first, ...more] : [first], body] as const,
      ),
  );
}

const LINKS: [kind: string, path: string, body: object, fields: string[]][] = [
  ["reset", "/request-password-reset", { redirectTo: "/page" }, ["callbackURL"]],
  ["verification", "/send-verification-email", { callbackURL: "/page" }, ["callbackURL"]],
  ["deletion", "/delete-user", { callbackURL: "/page" }, ["callbackURL"]],
  ["magic link", "/sign-in/magic-link", { callbackURL: "/page" }, FIELDS],
];

describe.each(WORLDS)("R9, with %s", (_, hosts, base) => {
  const world = shareWorld(answering(hosts, base));
  const origin = (place: Place) => `http://${hosts.names[place]}`;
  /** The link of a mail, at the host of the place that it was asked for at. */
  const linkAt = (place: Place, kind: string) => {
    const link = new URL(world.lastMail(kind).url);
    link.host = hosts.names[place];
    return link;
  };

  it.each(addressedIn(hosts, base))(
    "at %s, %s takes no address of another tenant's, and sends nothing",
    async (place, path, fields, body) => {
      const jane = await world.as("jane", place);
      const ask = (field: string, address: string) =>
        jane.post(path, { email: jane.email, ...body, [field]: `${address}/page?x=1` });
      world.mails.length = 0;
      for (const field of fields) {
        const rows = await world.rows("verification");
        for (const other of OTHERS[place]) {
          expect(outcome(await ask(field, origin(other)))).toEqual([403, CODES[field]]);
        }
        expect([world.mails, await world.rows("verification")]).toEqual([[], rows]);
      }
      // Control: here, on the platform, relative or in an app.
      for (const field of fields) {
        for (const home of [origin(place), origin("platform"), "", "myapp:/"]) {
          const answer = await ask(field, home);
          expect(answer.status, `${home} ${JSON.stringify(answer.data)}`).toBe(200);
        }
      }
    },
  );

  it.each(HERE)(
    "at %s another tenant's page changes nothing and signs nobody in",
    async (place) => {
      const jane = await world.as("jane", place);
      const rename = (name: string, headers: Record<string, string>) =>
        jane.post("/update-user", { name }, { headers });
      for (const other of OTHERS[place]) {
        for (const header of ["origin", "referer"]) {
          const headers = { origin: "", [header]: origin(other) };
          expectRefused(await rename("Changed", headers), 403, "INVALID_ORIGIN");
        }
        const headers = { origin: origin(other) };
        const body = { email: jane.email, password: PASSWORD };
        const answer = await world.at(place).post("/sign-in/email", body, { headers });
        expectRefused(answer, 403, "INVALID_ORIGIN");
        expect(await world.rows("user", "name = 'Changed'")).toBe(0);
      }
      for (const home of [place, "platform"] as const) {
        const name = `${place} from ${home}`;
        expect((await rename(name, { origin: origin(home) })).status).toBe(200);
        expect(await world.rows("user", "name = ?", [name])).toBe(1);
      }
    },
  );

  it("a tenant's page cannot manage tenants with the session of an operator", async () => {
    const operator = await world.operator();
    const create = (slug: string, place: Place) =>
      operator.post("/tenant/create", { name: slug, slug }, { headers: { origin: origin(place) } });
    expectRefused(await create("evil", "acme"), 403, "INVALID_ORIGIN");
    expect(await world.rows("tenant", "slug = 'evil'")).toBe(0);
    expect((await create("good", "platform")).status).toBe(200);
  });

  it.each(HERE.flatMap((place) => LINKS.map((link) => [place, ...link] as const)))(
    "at %s a %s link does not lead to another tenant's host, and works as it was sent",
    async (place, kind, path, body, fields) => {
      const person = await world.signUp(place, `${path.slice(1).replace("/", "-")}@example.com`);
      await person.post(path, { email: person.email, ...body });
      for (const field of fields) {
        for (const other of OTHERS[place]) {
          const altered = linkAt(place, kind);
          altered.searchParams.set(field, `${origin(other)}/page`);
          const answer = await person.get(altered.href);
          expect([...outcome(answer), answer.location]).toEqual([
            403,
            "INVALID_CALLBACK_URL",
            null,
          ]);
        }
      }
      const { status, location } = await person.get(linkAt(place, kind).href);
      expect(status).toBe(302);
      expect(location).toMatch(/^(http:\/\/[^/]+)?\/page(\?token=[^&]+)?$/);
    },
  );

  it.each(HERE)("at %s a popup hands its token to no page of another tenant", async (place) => {
    const open = (query: Record<string, string>) =>
      world.at(place).get<{ text?: string }>("/oauth-popup/start", {
        query: { provider: "google", popupNonce: "n", ...query },
      });
    for (const other of OTHERS[place]) {
      const answer = await open({ popupOrigin: origin(other) });
      expect([...outcome(answer), answer.headers.getSetCookie()]).toEqual([
        403,
        "INVALID_ORIGIN",
        [],
      ]);
      for (const field of FIELDS) {
        const led = await open({ popupOrigin: origin(place), [field]: `${origin(other)}/x` });
        expect(led.location, `${field} ${other}`).toBeNull();
        expect(led.data.text).toMatch(/invalid_\w*callback_url/);
      }
    }
    for (const home of [place, "platform"] as const) {
      const answer = await open({ popupOrigin: origin(home), callbackURL: "/x" });
      expect(answer.location, home).toMatch(/^https:\/\/accounts\.google\.com\//);
    }
  });

  if (hosts !== BY_HEADER && hosts !== BY_URL) return;
  it("a header that names the tenant at the platform's host counts", async () => {
    const { email } = await world.as("jane", "acme");
    const headers = { "x-tenant-id": world.ids.acme };
    world.mails.length = 0;
    const ask = (address: string) => {
      const body = { email, redirectTo: `${address}/page` };
      return world.at("platform").post("/request-password-reset", body, { headers });
    };
    expectRefused(await ask(origin("globex")), 403, "INVALID_REDIRECT_URL");
    expect(world.mails).toEqual([]);
    for (const home of [origin("acme"), origin("platform"), ""]) {
      expect((await ask(home)).status, home).toBe(200);
    }
    expect(world.mails).toHaveLength(3);
  });
});

/** Addresses that a browser takes to Globex, however they are written. */
const DISGUISES = [
  "http://GLOBEX.Example.COM/page",
  "HTTP://globex.example.com/page",
  "https://globex.example.com/page",
  "http://globex.example.com:80/page",
  "http://globex.example.com:8080/page",
  "http://globex.example.com./page",
  "http://globex.example.com.:8080/page",
  "http://acme.example.com@globex.example.com/page",
  "http://acme.example.com:80@globex.example.com/page",
  "http://globex.example.com\\@acme.example.com/page",
  "http:\\\\globex.example.com/page",
  "http:/globex.example.com/page",
  "http:///globex.example.com/page",
  "http://glo\tbex.example.com/page",
  "http://%67lobex.example.com/page",
  "http://\uff47lobex.example.com/page",
  "http://globex\u3002example.com/page",
  " http://globex.example.com/page",
  "//globex.example.com/page",
  "/\\globex.example.com/page",
  "http://globex.example.com?x=http://acme.example.com/",
  "http://globex.example.com#@acme.example.com/",
];

// Every host there is: a mistake, but one that people make.
describe("R9, addresses in disguise, where everything is trusted", () => {
  const trustedOrigins = ["http://*", "https://*", "http://*:*", "https://*:*"];
  const world = shareWorld(answering(SUBDOMAINS, { baseURL, trustedOrigins }));

  async function askAt(place: Place, redirectTo: string) {
    const jane = await world.as("jane", place);
    world.mails.length = 0;
    return jane.post("/request-password-reset", { email: jane.email, redirectTo });
  }

  it.each(DISGUISES)("%j is Globex's, at Acme and on the platform", async (address) => {
    for (const place of HERE) {
      expectRefused(await askAt(place, address), 403, "INVALID_REDIRECT_URL");
      const social = { provider: "google", callbackURL: address };
      const started = await world.at(place).post("/sign-in/social", social);
      expectRefused(started, 403, "INVALID_CALLBACK_URL");
      expect(world.mails).toEqual([]);
    }
  });

  it.each([
    "http://globex.example.com:8080",
    "https://globex.example.com",
    "http://globex.example.com.",
    "http://GLOBEX.example.com",
  ])("a page at %s is Globex's as well", async (origin) => {
    const jane = await world.as("jane", "acme");
    const answer = await jane.post("/update-user", { name: "X" }, { headers: { origin } });
    expectRefused(answer, 403, "INVALID_ORIGIN");
  });

  it.each([
    "http://ACME.example.com/page",
    "http://acme.example.com:8080/page",
    "https://acme.example.com/page",
    "http://globex.example.com@acme.example.com/page",
    "https://somewhere.else.org/page",
    "http://example.com/globex.example.com",
    "/globex.example.com",
  ])("control: %s is not", async (redirectTo) => {
    expect((await askAt("acme", redirectTo)).status).toBe(200);
    expect(world.mails).toHaveLength(1);
  });

  it.each(HERE)(
    "at %s a host of a tenant which does not exist is nobody's to trust",
    async (place) => {
      expect((await askAt(place, "http://nobody.example.com/page")).status).toBe(403);
      expect(world.mails).toEqual([]);
    },
  );
});

describe.each([true, false])(
  "R9, a popup of Globex's, cookies of the whole domain: %s",
  (enabled) => {
    const GLOBEX = SUBDOMAINS.names.globex;
    const crossSubDomainCookies = { enabled, domain: "example.com" };
    const world = shareSocialWorld({
      hosts: SUBDOMAINS,
      plugins: [bearer(), oauthPopup()],
      auth: { advanced: { disableOriginCheck: false, crossSubDomainCookies } },
    });
    const open = (browser: Browser, popupNonce: string) => {
      const popup = { provider: "gitlab", popupOrigin: `http://${GLOBEX}`, callbackURL: "/in" };
      return browser.get("/oauth-popup/start", { query: { ...popup, popupNonce } });
    };

    /** The marker of a popup that Globex's page opens at its own host, which it may. */
    async function markerOf(popupNonce = "a-nonce") {
      const attacker = world.at("globex");
      expect((await open(attacker, popupNonce)).status).toBe(302);
      const [marker, ...others] = [...attacker.cookies].filter(([name]) => name.includes("popup"));
      expect(others).toEqual([]);
      return marker ?? ["", ""];
    }

    /** Goes to the provider, takes on a cookie on the way, and comes back: to the page, not to Globex. */
    async function expectNoToken(victim: Browser, path: string, tossed?: [string, string]) {
      const body = { provider: "gitlab", callbackURL: "/in" };
      const { data } = await victim.post<{ url: string }>(path, body);
      if (tossed) victim.cookies.set(...tossed);
      const answer = await victim.get(await world.idp.authorize(data.url, "alice"));
      expect([answer.status, answer.location]).toEqual([302, "/in"]);
      expect(JSON.stringify(answer.data)).not.toContain(GLOBEX);
    }

    it.each(HERE)("hands it no token of %s by the marker in a cookie", async (place) => {
      const victim = world.at(place);
      victim.cookies.set(...(await markerOf()));
      await expectNoToken(victim, "/sign-in/social");
    });

    // document.cookie = "better-auth.oauth_popup=...; domain=example.com", by a script of Globex's.
    it("hands it no token of Acme when somebody puts it into the browser midway", async () => {
      await expectNoToken(world.at("acme"), "/tenant/sign-in/social", await markerOf());
    });

    // Two cookies of one name: "path=/" and "path=/api/auth". A browser sends both.
    it("hands it no token of Acme when there are two of it", async () => {
      const [[name, one], two] = [await markerOf("one"), await markerOf("two")];
      // The jar has one cookie of a name: the other one goes along in its value.
      const tossed: [string, string] = [name, `${one}; ${two.join("=")}`];
      await expectNoToken(world.at("acme"), "/tenant/sign-in/social", tossed);
    });

    it("control: is not to be had at Acme's host, where a sign-in without it redirects", async () => {
      expect((await open(world.at("acme"), "a-nonce")).status).toBe(403);
      await expectNoToken(world.at("acme"), "/sign-in/social");
    });
  },
);
