import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Answer } from "../support/browser";
import { PASSWORD } from "../support/instance";
import {
  BASES,
  byDomains,
  byOwnFunctions,
  bySubdomains,
  createHostWorld,
  EVERYTHING,
  type HostWorld,
  type Naming,
  type Place,
} from "./hosts";

/** Requests of somebody signed in that carry an address: where they go, and where the address is. */
const ADDRESSED: [path: string, field: string, body: Record<string, unknown>][] = [
  ["/request-password-reset", "redirectTo", {}],
  ["/send-verification-email", "callbackURL", {}],
  ["/change-email", "callbackURL", { newEmail: "new@example.com" }],
  ["/delete-user", "callbackURL", {}],
  ["/sign-in/email", "callbackURL", { password: PASSWORD }],
  ["/sign-in/magic-link", "callbackURL", {}],
  ["/sign-in/magic-link", "errorCallbackURL", {}],
  ["/sign-in/magic-link", "newUserCallbackURL", {}],
  ["/sign-in/social", "callbackURL", { provider: "google" }],
  ["/sign-in/social", "errorCallbackURL", { provider: "google" }],
  ["/sign-in/social", "newUserCallbackURL", { provider: "google" }],
  ["/link-social", "callbackURL", { provider: "google" }],
  ["/link-social", "errorCallbackURL", { provider: "google" }],
];

/** The same of this plugin's own endpoints, which are for tenants. */
const ADDRESSED_IN_TENANTS: typeof ADDRESSED = [
  ["/tenant/sign-in/email", "callbackURL", { password: PASSWORD }],
  ["/tenant/sign-in/social", "callbackURL", { provider: "google" }],
  ["/tenant/sign-in/social", "errorCallbackURL", { provider: "google" }],
  ["/tenant/sign-in/social", "newUserCallbackURL", { provider: "google" }],
];

const CODES: Record<string, string> = {
  redirectTo: "INVALID_REDIRECT_URL",
  callbackURL: "INVALID_CALLBACK_URL",
  errorCallbackURL: "INVALID_ERROR_CALLBACK_URL",
  newUserCallbackURL: "INVALID_NEW_USER_CALLBACK_URL",
};

const refusal = ({ status, code }: Answer) => [status, code];
const OTHERS: Record<Place, Place[]> = {
  acme: ["globex"],
  globex: ["acme"],
  platform: ["acme", "globex"],
};

const WORLDS: [name: string, naming: Naming, base: (typeof BASES)[string]][] = [
  ...Object.entries(BASES).map(
    ([name, base]) => [`bySubdomain, ${name}`, bySubdomains, base] as (typeof WORLDS)[number],
  ),
  ...Object.entries({ byDomain: byDomains, ...byOwnFunctions }).map(
    ([name, naming]) =>
      [name, naming, BASES["a static baseURL and wildcards"] ?? {}] as (typeof WORLDS)[number],
  ),
];

/** All requests in the first world; in the others those that differ in how they are checked. */
function addressedIn(naming: Naming, base: (typeof BASES)[string]) {
  const all = naming === WORLDS[0]?.[1] && base === WORLDS[0]?.[2];
  const few = ["/request-password-reset", "/sign-in/social", "/sign-in/magic-link"];
  const requests = ADDRESSED.filter(([path]) => all || few.includes(path));
  const inTenants = ADDRESSED_IN_TENANTS.filter(([, field]) => all || field === "callbackURL");
  return [
    ...requests.flatMap((request) => [
      ["acme" as Place, ...request] as const,
      ["platform" as Place, ...request] as const,
    ]),
    ...inTenants.map((request) => ["acme" as Place, ...request] as const),
  ];
}

describe.each(WORLDS)("R9, with %s", (_, naming, base) => {
  let world: HostWorld;
  beforeAll(async () => {
    world = await createHostWorld(naming, base);
  });
  afterAll(() => world.database.close());
  const addressed = addressedIn(naming, base);

  it.each(addressed)(
    "at %s, %s with %s on another tenant's host is refused, and nothing is sent",
    async (place, path, field, body) => {
      const person = await world.signUp(place);
      for (const other of OTHERS[place]) {
        const before = await world.instance.rows("verification");
        const address = { [field]: `${world.origin(other)}/page?x=1` };
        const answer = await person.post(path, { email: person.email, ...body, ...address });
        expect(refusal(answer), other).toEqual([403, CODES[field]]);
        expect(world.mails).toEqual([]);
        expect(await world.instance.rows("verification")).toBe(before);
      }
    },
  );

  it.each(addressed)(
    "control: at %s, %s with %s here, on the platform or relative works",
    async (place, path, field, body) => {
      for (const home of [world.origin(place), world.origin("platform"), "", "myapp:/"]) {
        const person = await world.signUp(place);
        const address = { [field]: `${home}/page` };
        const answer = await person.post(path, { email: person.email, ...body, ...address });
        expect(answer.status, `${home} ${JSON.stringify(answer.data)}`).toBe(200);
      }
    },
  );
});

describe.each(WORLDS)("R9, the Origin of a request with cookies, with %s", (_, naming, base) => {
  let world: HostWorld;
  beforeAll(async () => {
    world = await createHostWorld(naming, base);
  });
  afterAll(() => world.database.close());

  const names = async (id: string) =>
    (await world.database.query(`select name from "user" where id = ?`, [id]))[0]?.name;

  it.each([
    ["acme", "origin"],
    ["platform", "origin"],
    ["acme", "referer"],
    ["platform", "referer"],
  ] as const)("at %s another tenant's page as %s is refused", async (place, header) => {
    const person = await world.signUp(place);
    for (const other of OTHERS[place]) {
      const headers = { origin: "", [header]: world.origin(other) };
      const answer = await person.post("/update-user", { name: "Changed" }, { headers });
      expect(refusal(answer), other).toEqual([403, "INVALID_ORIGIN"]);
      expect(await names(person.id)).toBe("Somebody");
    }
  });

  it.each(["acme", "platform"] as const)(
    "at %s another tenant's page cannot sign anybody in",
    async (place) => {
      const { email } = await world.signUp(place);
      for (const other of OTHERS[place]) {
        const answer = await world
          .browser(place)
          .post(
            world.at(place, "/sign-in/email"),
            { email, password: PASSWORD },
            { headers: { origin: world.origin(other) } },
          );
        expect(refusal(answer), other).toEqual([403, "INVALID_ORIGIN"]);
        expect(answer.headers.getSetCookie()).toEqual([]);
      }
    },
  );

  it("a tenant's page cannot manage tenants with the session of an operator", async () => {
    const operator = await world.signUp("platform");
    await world.database.query(`update "user" set role = 'admin' where id = ?`, [operator.id]);
    const create = (slug: string, origin: string) =>
      operator.post("/tenant/create", { name: slug, slug }, { headers: { origin } });
    expect(refusal(await create("evil", world.origin("acme")))).toEqual([403, "INVALID_ORIGIN"]);
    expect(await world.instance.rows("tenant", "slug = 'evil'")).toBe(0);
    expect((await create(`good-${Date.now()}`, world.origin("platform"))).status).toBe(200);
  });

  it.each(["acme", "platform"] as const)("control: at %s its own pages may", async (place) => {
    const person = await world.signUp(place);
    for (const [index, home] of [place, "platform" as const].entries()) {
      const name = `Changed ${index}`;
      const headers = { origin: world.origin(home) };
      expect((await person.post("/update-user", { name }, { headers })).status).toBe(200);
      expect(await names(person.id)).toBe(name);
    }
  });
});

describe.each(WORLDS)("R9, links that were sent, with %s", (_, naming, base) => {
  let world: HostWorld;
  beforeAll(async () => {
    world = await createHostWorld(naming, base);
  });
  afterAll(() => world.database.close());

  const LINKS: [kind: string, path: string, body: Record<string, unknown>, fields: string[]][] = [
    ["reset", "/request-password-reset", { redirectTo: "/page" }, ["callbackURL"]],
    ["verification", "/send-verification-email", { callbackURL: "/page" }, ["callbackURL"]],
    ["deletion", "/delete-user", { callbackURL: "/page" }, ["callbackURL"]],
    [
      "magic link",
      "/sign-in/magic-link",
      { callbackURL: "/page" },
      ["callbackURL", "newUserCallbackURL", "errorCallbackURL"],
    ],
  ];
  const cases = LINKS.flatMap((link) => [
    ["acme" as Place, ...link] as const,
    ["platform" as Place, ...link] as const,
  ]);

  it.each(cases)(
    "at %s a %s link does not lead to another tenant's host",
    async (place, kind, path, body, fields) => {
      const person = await world.signUp(place);
      await person.post(path, { email: person.email, ...body });
      const [mail] = world.mails.filter((sent) => sent.kind === kind);
      for (const field of fields) {
        for (const other of OTHERS[place]) {
          const altered = new URL(mail?.url ?? "");
          altered.host = world.hosts[place];
          altered.searchParams.set(field, `${world.origin(other)}/page`);
          const answer = await person.browser.get(altered.href);
          expect(refusal(answer), `${field} ${other}`).toEqual([403, "INVALID_CALLBACK_URL"]);
          expect(answer.location ?? "").not.toContain(world.hosts[other]);
        }
      }
      // Control: as it was sent, it works, and nothing of it has been used up.
      const link = new URL(mail?.url ?? "");
      link.host = world.hosts[place];
      const { status, location } = await person.browser.get(link.href);
      expect(status).toBe(302);
      expect(location).toMatch(/^(http:\/\/[^/]+)?\/page(\?token=[^&]+)?$/);
    },
  );
});

describe.each(WORLDS)("R9, the popup, with %s", (_, naming, base) => {
  let world: HostWorld;
  beforeAll(async () => {
    world = await createHostWorld(naming, base);
  });
  afterAll(() => world.database.close());

  const open = (place: Place, query: Record<string, string>) =>
    world.browser(place).get<{ text?: string }>(world.at(place, "/oauth-popup/start"), {
      query: { provider: "google", popupNonce: "n", ...query },
    });

  it.each(["acme", "platform"] as const)(
    "at %s no token is handed to a page of another tenant",
    async (place) => {
      for (const other of OTHERS[place]) {
        const answer = await open(place, { popupOrigin: world.origin(other) });
        expect(refusal(answer), other).toEqual([403, "INVALID_ORIGIN"]);
        expect(answer.headers.getSetCookie()).toEqual([]);
      }
    },
  );

  it.each(["acme", "platform"] as const)(
    "at %s it does not lead to another tenant's host",
    async (place) => {
      for (const field of ["callbackURL", "errorCallbackURL", "newUserCallbackURL"]) {
        for (const other of OTHERS[place]) {
          const popupOrigin = world.origin(place);
          const answer = await open(place, { popupOrigin, [field]: `${world.origin(other)}/x` });
          expect(answer.location, `${field} ${other}`).toBeNull();
          expect(answer.data.text).toMatch(/invalid_\w*callback_url/);
        }
      }
    },
  );

  it.each(["acme", "platform"] as const)("control: at %s its own page opens it", async (place) => {
    for (const home of [place, "platform" as const]) {
      const answer = await open(place, { popupOrigin: world.origin(home), callbackURL: "/x" });
      expect(answer.status, JSON.stringify(answer.data)).toBe(302);
      expect(answer.location).toMatch(/^https:\/\/accounts\.google\.com\//);
    }
  });
});

describe("R9, where the resolver lets the request speak and a header names the tenant", () => {
  it.each(Object.entries(byOwnFunctions))("with %s", async (_, naming) => {
    const world = await createHostWorld(naming, BASES["a static baseURL and wildcards"] ?? {});
    const person = await world.signUp("acme");
    const browser = world.instance.browser({
      host: world.hosts.platform,
      "x-tenant-id": world.ids.acme,
    });
    const ask = (redirectTo: string) =>
      browser.post(world.at("platform", "/request-password-reset"), {
        email: person.email,
        redirectTo,
      });
    const stolen = await ask(`${world.origin("globex")}/page`);
    expect(refusal(stolen)).toEqual([403, "INVALID_REDIRECT_URL"]);
    expect(world.mails).toEqual([]);
    for (const home of [world.origin("acme"), world.origin("platform"), ""]) {
      expect((await ask(`${home}/page`)).status, home).toBe(200);
    }
    expect(world.mails).toHaveLength(3);
    await world.database.close();
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

describe("R9, addresses in disguise, where everything is trusted", () => {
  let world: HostWorld;
  beforeAll(async () => {
    world = await createHostWorld(bySubdomains, EVERYTHING);
  });
  afterAll(() => world.database.close());

  it.each(DISGUISES)("%j is Globex's, at Acme and on the platform", async (address) => {
    for (const place of ["acme", "platform"] as const) {
      const person = await world.signUp(place);
      const body = { email: person.email, redirectTo: address };
      const reset = await person.post("/request-password-reset", body);
      expect(refusal(reset), place).toEqual([403, "INVALID_REDIRECT_URL"]);
      const social = { provider: "google", callbackURL: address };
      const started = await person.post("/sign-in/social", social);
      expect(refusal(started), place).toEqual([403, "INVALID_CALLBACK_URL"]);
      expect(world.mails).toEqual([]);
    }
  });

  it.each([
    "http://globex.example.com:8080",
    "https://globex.example.com",
    "http://globex.example.com.",
    "http://GLOBEX.example.com",
  ])("a page at %s is Globex's as well", async (origin) => {
    const person = await world.signUp("acme");
    const answer = await person.post("/update-user", { name: "X" }, { headers: { origin } });
    expect(refusal(answer)).toEqual([403, "INVALID_ORIGIN"]);
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
    const person = await world.signUp("acme");
    const body = { email: person.email, redirectTo };
    expect((await person.post("/request-password-reset", body)).status).toBe(200);
    expect(world.mails).toHaveLength(1);
  });

  it("a host that stands for a tenant which does not exist is nobody's to trust", async () => {
    for (const place of ["acme", "platform"] as const) {
      const person = await world.signUp(place);
      const body = { email: person.email, redirectTo: "http://nobody.example.com/page" };
      const answer = await person.post("/request-password-reset", body);
      expect(answer.status, place).toBe(403);
      expect(world.mails).toEqual([]);
    }
  });
});

describe("R9, the whole way of the theft", () => {
  it("a reset link that is asked for at Acme never carries its token to Globex", async () => {
    const world = await createHostWorld(bySubdomains, EVERYTHING);
    const victim = await world.signUp("acme");
    const thief = world.browser("acme");
    const redirectTo = `${world.origin("globex")}/collect`;
    await thief.post(world.at("acme", "/request-password-reset"), {
      email: victim.email,
      redirectTo,
    });
    const locations = [];
    for (const { url } of world.mails) {
      const link = new URL(url);
      link.host = world.hosts.acme;
      locations.push((await victim.browser.get(link.href)).location);
    }
    expect(locations.filter((location) => location?.includes("globex"))).toEqual([]);
    await world.database.close();
  });
});
