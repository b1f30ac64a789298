import { describe, expect, it } from "vitest";
import { createSocialWorld, STATE_STRATEGIES } from "../support/social";
import {
  createWorld,
  outcome,
  PLACES,
  type Place,
  passwordOf,
  shareWorld,
  type World,
} from "../support/world";

const cached = { session: { cookieCache: { enabled: true, maxAge: 300 } } };
const MODES = [
  ["sessions in the database", {}, ["session_token"]],
  ["a cookie cache", cached, ["session_token", "session_data"]],
] as const;
const tenant = { sessionCookies: "per-tenant" } as const;

it("with one cookie for all tenants, a sign-in at Globex takes the place of Acme's", async () => {
  const world = await createWorld();
  const people = await world.namesakes();
  const tab = people.acme.fork(world.naming("globex"));
  await tab.post("/sign-in/email", { email: people.email, password: passwordOf("globex") });
  expect((await world.whoIs(tab.fork({})))?.id).toBe(people.globex.id);
  expect((await world.whoIs(people.acme))?.id).toBe(people.acme.id);
});

/** One browser in which somebody signs in at all three places, each in a tab of its own. */
async function openTabs(world: World, rememberMe = true) {
  const people = await world.namesakes();
  const jar = world.browser();
  const at = (place: Place) => ({ headers: world.naming(place) });
  const signIn = (place: Place) => {
    const body = { email: people.email, password: passwordOf(place), rememberMe };
    return jar.post("/sign-in/email", body, at(place));
  };
  for (const place of PLACES) expect((await signIn(place)).status).toBe(200);
  const name = (base: string, place: Place) =>
    `better-auth.${base}${place === "platform" ? "" : `_${world.ids[place]}`}`;

  /** Somebody is signed in at these places, and nobody at others. */
  async function expectSignedIn(...places: Place[]) {
    for (const place of PLACES) {
      const id = places.includes(place) ? people[place].id : undefined;
      expect((await world.whoIs(jar, place))?.id).toBe(id);
    }
  }
  return { people, jar, at, signIn, name, expectSignedIn };
}

describe.each(MODES)("sessionCookies per-tenant, with %s", (_, auth, bases) => {
  const world = shareWorld({ tenant, auth });

  it("all three are open at once in one browser, each with cookies of its own name", async () => {
    const { people, jar, at, name, expectSignedIn } = await openTabs(world);
    const expected = bases.flatMap((base) => PLACES.map((place) => name(base, place)));
    expect([...jar.cookies.keys()].sort()).toEqual(expected.sort());
    await expectSignedIn(...PLACES);
    for (const place of PLACES) {
      const { data } = await jar.get<{ userId: string }[]>("/list-sessions", at(place));
      expect(data.map(({ userId }) => userId)).toEqual([people[place].id, people[place].id]);
    }
  });

  it.each(["acme", "platform", "a tenant where nobody is"])(
    "signing out of %s leaves the others",
    async (p) => {
      const { jar, at, expectSignedIn } = await openTabs(world);
      const place = PLACES.find((known) => known === p);
      if (place) await world.touchesOnly(place, () => jar.post("/sign-out", {}, at(place)));
      const headers = world.naming((await world.createTenant()).id);
      if (!place) await world.unchanged(() => jar.post("/sign-out", {}, { headers }));
      await expectSignedIn(...PLACES.filter((other) => other !== place));
    },
  );

  it("R5: threat: a cookie of Acme under Globex's name is no session", async () => {
    const { jar, at, name } = await openTabs(world);
    const forged = jar.fork();
    for (const base of bases) {
      const own = jar.cookies.get(name(base, "acme")) ?? "";
      forged.cookies.set(name(base, "globex"), own);
      forged.cookies.set(name(base, "platform"), own);
    }
    await world.unchanged(async () => {
      expect(await world.whoIs(forged, "globex")).toBeNull();
      const sessions = await forged.fork().get("/list-sessions", at("globex"));
      expect(outcome(sessions)).toEqual([401, "UNAUTHORIZED"]);
    });
  });
});

describe("sessionCookies per-tenant", () => {
  const world = shareWorld({ tenant });

  it("rememberMe false keeps a cookie of each tenant's own, for the time of the browser", async () => {
    const { jar, at, signIn, name, expectSignedIn } = await openTabs(world, false);
    const remember = [...jar.cookies.keys()].filter((cookie) => cookie.includes("dont_remember"));
    expect(remember.sort()).toEqual(PLACES.map((place) => name("dont_remember", place)).sort());
    const lines = (await signIn("acme")).headers.getSetCookie();
    const token = lines.find((line) => line.startsWith(`${name("session_token", "acme")}=`));
    expect(token).toMatch(/^[^;]+;/);
    expect(token).not.toMatch(/max-age|expires/i);
    await jar.post("/sign-out", {}, at("acme"));
    expect(jar.cookies.has(name("dont_remember", "acme"))).toBe(false);
    expect(jar.cookies.has(name("dont_remember", "globex"))).toBe(true);
    await expectSignedIn("globex", "platform");
  });

  it("R4: without a name a request runs on the platform", async () => {
    const tab = (await world.as("jane", "acme")).fork({});
    expect(await world.whoIs(tab)).toBeNull();
    const answer = await tab.post("/update-user", { name: "Mine" });
    expect(outcome(answer)).toEqual([401, "UNAUTHORIZED"]);
  });

  it("the plugin's own sign-up and sign-in use the tenant's cookie as well", async () => {
    const somebody = { name: "New", email: "new@example.com", password: "long enough" };
    for (const path of ["/tenant/sign-up/email", "/tenant/sign-in/email"]) {
      const browser = world.browser();
      await browser.post(path, { ...somebody, tenantId: world.ids.acme });
      const cookies = [...browser.cookies.keys()];
      expect(cookies).toEqual([`better-auth.session_token_${world.ids.acme}`]);
    }
  });

  it.each(STATE_STRATEGIES)(
    "so does the social callback, with the state in a %s",
    async (where) => {
      const social = await createSocialWorld({ tenant, stateStrategy: where });
      const browser = social.browser();
      expect((await social.signInAtProvider(browser, "acme")).location).toBe("/welcome");
      const cookies = [...browser.cookies.keys()];
      expect(cookies).toEqual([`better-auth.session_token_${social.ids.acme}`]);
      await social.signInAtProvider(browser, "globex");
      for (const place of ["acme", "globex"] as const) {
        const { tenantId } = (await social.whoIs(browser, place)) ?? {};
        expect(tenantId).toBe(social.ids[place]);
      }
      expect(await social.whoIs(browser, "platform")).toBeNull();
    },
  );

  it("R6: a link in a mail signs in with the tenant's cookie", async () => {
    const auth = { emailVerification: { autoSignInAfterVerification: true } };
    const mailing = await createWorld({ tenant, auth });
    const { email, acme, platform } = await mailing.namesakes();
    await acme.post("/send-verification-email", { email });
    const tab = platform.fork();
    await mailing.touchesOnly("acme", () => tab.get(mailing.lastMail("verification").url));
    const own = `better-auth.session_token_${mailing.ids.acme}`;
    expect([...tab.cookies.keys()].sort()).toEqual(["better-auth.session_token", own]);
  });
});
