import { getCookieCache, getSessionCookie } from "better-auth/cookies";
import { bearer, multiSession, twoFactor } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { createSocialWorld, STATE_STRATEGIES } from "../support/social";
import {
  createWorld,
  inCookieName,
  outcome,
  PLACES,
  type Place,
  passwordOf,
  shareWorld,
  type World,
} from "../support/world";

const MODES = [
  ["sessions in the database", {}, ["session_token"]],
  ["a cookie cache", { cookieCache: { enabled: true } }, ["session_token", "session_data"]],
] as const;
const tenant = { sessionCookies: "per-tenant" } as const;

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
    `better-auth.${base}${place === "platform" ? "" : `_${inCookieName(world.ids[place])}`}`;

  /** Somebody is signed in at these places, and nobody at others. */
  async function expectSignedIn(...places: Place[]) {
    for (const place of PLACES) {
      const id = places.includes(place) ? people[place].id : undefined;
      expect((await world.whoIs(jar, place))?.id).toBe(id);
    }
  }
  return { people, jar, at, signIn, name, expectSignedIn };
}

describe.each(MODES)("sessionCookies per-tenant, with %s", (_, session, bases) => {
  const world = shareWorld({ tenant, auth: { session } });

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

  it.each(["acme", "platform", "nowhere"] as const)(
    "signing out at %s leaves the others",
    async (where) => {
      const { jar, expectSignedIn } = await openTabs(world);
      const isHere = where !== "nowhere";
      // Where nobody is, nothing happens.
      const headers = world.naming(isHere ? where : (await world.createTenant()).id);
      const signOut = () => jar.post("/sign-out", {}, { headers });
      await (isHere ? world.touchesOnly(where, signOut) : world.unchanged(signOut));
      await expectSignedIn(...PLACES.filter((other) => other !== where));
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

it("sessionCookies per-tenant: rememberMe false keeps a cookie of each tenant's own, and R4: nothing leads there unnamed", async () => {
  const world = await createWorld({ tenant });
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

  const unnamed = (await world.as("jane", "acme")).fork({});
  expect(await world.whoIs(unnamed)).toBeNull();
  const answer = await unnamed.post("/update-user", { name: "Mine" });
  expect(outcome(answer)).toEqual([401, "UNAUTHORIZED"]);
});

it("sessionCookies per-tenant: second factors of two tenants are asked for side by side, and each trusts its devices", async () => {
  const world = await createWorld({
    tenant,
    plugins: (send) => [
      twoFactor({ skipVerificationOnEnable: true, otpOptions: { sendOTP: send("second") } }),
    ],
  });
  const people = await world.namesakes();
  const jar = world.browser();
  const post = (place: Place, path: string, body: object) =>
    jar.post<{ twoFactorRedirect?: true }>(path, body, { headers: world.naming(place) });
  const isAsked = async (place: Place) => {
    const person = { email: people.email, password: passwordOf(place) };
    return (await post(place, "/sign-in/email", person)).data.twoFactorRedirect === true;
  };
  for (const place of PLACES) {
    await people[place].post("/two-factor/enable", { password: passwordOf(place) });
    expect(await isAsked(place)).toBe(true);
  }
  for (const place of PLACES) {
    await post(place, "/two-factor/send-otp", {});
    const body = { code: world.mails.at(-1)?.code, trustDevice: true };
    expect(outcome(await post(place, "/two-factor/verify-otp", body))).toEqual([200, undefined]);
    expect((await world.whoIs(jar, place))?.id).toBe(people[place].id);
  }
  for (const place of PLACES) expect(await isAsked(place)).toBe(false);
});

it.each(STATE_STRATEGIES)(
  "sessionCookies per-tenant: the social callback uses them, with the state in a %s",
  async (stateStrategy) => {
    const world = await createSocialWorld({ tenant, stateStrategy });
    const browser = world.browser();
    for (const place of ["acme", "globex"]) await world.signInAtProvider(browser, place);
    for (const place of PLACES) {
      const { tenantId } = (await world.whoIs(browser, place)) ?? {};
      expect(tenantId).toBe(world.ids[place] ?? undefined);
    }
    const names = [world.ids.acme, world.ids.globex].map(
      (id) => `better-auth.session_token_${inCookieName(id)}`,
    );
    expect([...browser.cookies.keys()].sort()).toEqual(names.sort());
  },
);

it("sessionCookies per-tenant: multiSession drops its cookies at sign-out, and those of no other tenant", async () => {
  const world = await createWorld({ tenant, plugins: [multiSession({ maximumSessions: 3 })] });
  const { jar, at, signIn, name, expectSignedIn } = await openTabs(world);
  // More often than there may be cookies: one that stayed would be in the way.
  for (let time = 0; time < 4; time++) {
    const listed = await jar.get<unknown[]>("/multi-session/list-device-sessions", at("acme"));
    expect(listed.data).toHaveLength(1);
    await jar.post("/sign-out", {}, at("acme"));
    const left = [...jar.cookies.keys()].filter((key) => key.includes(name("", "acme").slice(12)));
    expect(left).toEqual([]);
    await expectSignedIn("globex", "platform");
    expect((await signIn("acme")).status).toBe(200);
  }
});

// docs/several-tenants.md shows how.
it("sessionCookies per-tenant: better-auth's cookie helpers find a tenant's cookie by its name", async () => {
  const auth = { session: { cookieCache: { enabled: true } } };
  const world = await createWorld({ tenant, auth });
  const { jar, people } = await openTabs(world);
  const request = new Headers({ cookie: jar.cookieHeader() });
  const { secret } = world.context;
  for (const place of ["acme", "globex"] as const) {
    const cookieName = (base: string) => `${base}_${inCookieName(world.ids[place])}`;
    const token = getSessionCookie(request, { cookieName: cookieName("session_token") });
    expect(token).toEqual(expect.any(String));
    const name = { cookieName: cookieName("session_data") };
    const cached = await getCookieCache(request, { ...name, secret, isSecure: false });
    expect(cached?.session).toMatchObject({ userId: people[place].id, tenantId: world.ids[place] });
  }
});

it("sessionCookies per-tenant: ids that differ in case alone give each tenant a name of its own", async () => {
  const ids = ["a_b-1", "A_b-1", "a_B-1", "a_b_1", "a-b-1"];
  // The plugin draws one when it starts, to check it.
  const given = ["drawn", ...ids];
  const generateId = ({ model }: { model: string }) =>
    (model === "tenant" && given.shift()) || crypto.randomUUID();
  const auth = { advanced: { database: { generateId } } };
  const world = await createWorld({ tenant, auth, plugins: [bearer()] });
  for (const _ of ids.slice(2)) await world.createTenant();
  const names = new Set<string>();
  for (const id of ids) {
    const { token, cookies, ...person } = await world.as("jane", id);
    for (const name of cookies.keys()) names.add(name);
    const caller = world.browser({ ...world.naming(id), authorization: `Bearer ${token}` });
    expect(await world.whoIs(caller)).toMatchObject({ id: person.id, tenantId: id });
  }
  expect(names.size).toBe(ids.length);
  for (const name of names) expect(name).toMatch(/^[a-z0-9._%-]+$/);
});
