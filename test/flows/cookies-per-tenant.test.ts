import { describe, expect, it } from "vitest";
import { createSocialInstance } from "../support/social";
import {
  createPeople,
  EMAIL,
  type PeopleOptions,
  PLACES,
  type Place,
  passwordOf,
  populate,
  type SessionAnswer,
} from "./people";

const tenant = { sessionCookies: "per-tenant" } as const;
const cached: PeopleOptions = {
  tenant,
  auth: { session: { cookieCache: { enabled: true, maxAge: 300 } } },
};

/** One browser in which somebody signs in at all three places, each in a tab of its own. */
async function createTabs(options: PeopleOptions = { tenant }, rememberMe = true) {
  const people = await createPeople(options);
  const jar = people.instance.browser();
  const headersOf = (place: Place) => ({ headers: people.header(place) });
  const signIn = (place: Place, password = passwordOf(place)) =>
    jar.post("/sign-in/email", { email: EMAIL, password, rememberMe }, headersOf(place));
  for (const place of PLACES) expect((await signIn(place)).status).toBe(200);
  return {
    ...people,
    jar,
    signIn,
    headersOf,
    /** Who is signed in at each of the places. */
    async signedIn() {
      const users: (string | undefined)[] = [];
      for (const place of PLACES) {
        const { data } = await jar.get<SessionAnswer | null>("/get-session", headersOf(place));
        users.push(data?.user.id);
      }
      return users;
    },
  };
}

describe.each([
  ["sessions in the database", { tenant }],
  ["a cookie cache", cached],
] as [string, PeopleOptions][])("sessionCookies per-tenant, with %s", (_, options) => {
  it("A, B and the platform are open at once in one browser", async () => {
    const { signedIn, people, jar, headersOf } = await createTabs(options);
    expect(await signedIn()).toEqual(PLACES.map((place) => people[place].id));
    for (const place of PLACES) {
      const path = "/list-sessions";
      const { data } = await jar.get<{ userId: string }[]>(path, headersOf(place));
      expect(data.map(({ userId }) => userId)).toEqual([people[place].id, people[place].id]);
    }
  });

  it.each(PLACES)("signing out of %s leaves the others", async (place) => {
    const { signedIn, people, jar, headersOf, touchesOnly } = await createTabs(options);
    await touchesOnly(place, () => jar.post("/sign-out", {}, headersOf(place)));
    expect(await signedIn()).toEqual(
      PLACES.map((other) => (other === place ? undefined : people[other].id)),
    );
  });

  it("gives every cookie of a tenant the tenant's name, and no other", async () => {
    const { jar, ids } = await createTabs(options);
    const names = [...jar.cookies.keys()];
    for (const place of PLACES) {
      const suffix = ids[place] === null ? "" : `_${ids[place]}`;
      expect(names).toContain(`better-auth.session_token${suffix}`);
    }
    const bases = options === cached ? ["session_token", "session_data"] : ["session_token"];
    const expected = bases.flatMap((base) =>
      PLACES.map((place) => `better-auth.${base}${ids[place] === null ? "" : `_${ids[place]}`}`),
    );
    expect(names.sort()).toEqual(expected.sort());
  });

  it("a sign-out at a tenant where nobody is signed in drops nothing", async () => {
    const { signedIn, people, jar, instance, changesNothing } = await createTabs(options);
    const third = await instance.createTenant("cc");
    const headers = { "x-tenant-id": third.id };
    await changesNothing(() => jar.post("/sign-out", {}, { headers }));
    expect(await signedIn()).toEqual(PLACES.map((place) => people[place].id));
  });

  it("R5: threat: a cookie of A under B's name is no session", async () => {
    const { jar, ids, headersOf, changesNothing } = await createTabs(options);
    const forged = jar.fork();
    for (const base of ["session_token", "session_data"]) {
      const own = jar.cookies.get(`better-auth.${base}_${ids.a}`);
      if (own) forged.cookies.set(`better-auth.${base}_${ids.b}`, own);
      if (own) forged.cookies.set(`better-auth.${base}`, own);
    }
    await changesNothing(async () => {
      expect((await forged.fork().get("/get-session", headersOf("b"))).data).toBeNull();
      const sessions = await forged.fork().get("/list-sessions", headersOf("b"));
      expect([sessions.status, sessions.code]).toEqual([401, "UNAUTHORIZED"]);
    });
  });
});

describe("sessionCookies per-tenant", () => {
  it("rememberMe false keeps a cookie of each tenant's own, for the time of the browser", async () => {
    const { jar, ids, signedIn, people, signIn, headersOf } = await createTabs({ tenant }, false);
    const remember = [...jar.cookies.keys()].filter((name) => name.includes("dont_remember"));
    expect(remember.sort()).toEqual(
      PLACES.map(
        (place) => `better-auth.dont_remember${ids[place] === null ? "" : `_${ids[place]}`}`,
      ).sort(),
    );
    const lines = (await signIn("a")).headers.getSetCookie();
    const token = lines.find((line) => line.startsWith(`better-auth.session_token_${ids.a}=`));
    expect(token).toMatch(/^[^;]+;/);
    expect(token).not.toMatch(/max-age|expires/i);
    await jar.post("/sign-out", {}, headersOf("a"));
    expect(jar.cookies.has(`better-auth.dont_remember_${ids.a}`)).toBe(false);
    expect(jar.cookies.has(`better-auth.dont_remember_${ids.b}`)).toBe(true);
    expect(await signedIn()).toEqual([undefined, people.b.id, people.platform.id]);
  });

  it("R4: without a name a request runs on the platform", async () => {
    const { people } = await createTabs();
    const tab = people.a.browser.fork({});
    expect((await tab.get("/get-session")).data).toBeNull();
    const answer = await tab.post("/update-user", { name: "Mine" });
    expect([answer.status, answer.code]).toEqual([401, "UNAUTHORIZED"]);
  });

  it("the plugin's own sign-in and sign-up use the tenant's cookie as well", async () => {
    const { instance, ids } = await createPeople({ tenant });
    const body = {
      tenantId: ids.a,
      name: "New",
      email: "new@example.com",
      password: "long enough",
    };
    const browser = instance.browser();
    await browser.post("/tenant/sign-up/email", body);
    expect([...browser.cookies.keys()]).toEqual([`better-auth.session_token_${ids.a}`]);
    const again = instance.browser();
    await again.post("/tenant/sign-in/email", body);
    expect([...again.cookies.keys()]).toEqual([`better-auth.session_token_${ids.a}`]);
  });

  it.each(["database", "cookie", "secondary storage"] as const)(
    "the social callback sets the tenant's cookie, with the state in a %s",
    async (stateStrategy) => {
      const app = await createSocialInstance({ tenant, stateStrategy });
      const { ids } = await populate(app);
      const browser = app.browser();
      const back = await app.signIn(browser, ids.a);
      expect(back.location).toBe("/welcome");
      expect([...browser.cookies.keys()]).toEqual([`better-auth.session_token_${ids.a}`]);
      expect((await app.whoIs(browser, ids.a))?.session.tenantId).toBe(ids.a);
      await app.signIn(browser, ids.b);
      expect((await app.whoIs(browser, ids.a))?.session.tenantId).toBe(ids.a);
      expect((await app.whoIs(browser, ids.b))?.session.tenantId).toBe(ids.b);
      expect(await app.whoIs(browser, null)).toBeNull();
    },
  );

  it("R6: a link in a mail signs in with the tenant's cookie", async () => {
    const people = await createPeople({
      tenant,
      auth: { emailVerification: { autoSignInAfterVerification: true } },
    });
    const body = { email: EMAIL };
    await people.window("a", "its header").post("/send-verification-email", body);
    const tab = people.window("platform", "its session alone");
    await people.touchesOnly("a", () => tab.get(people.lastMail("verification").url));
    expect([...tab.cookies.keys()].sort()).toEqual([
      "better-auth.session_token",
      `better-auth.session_token_${people.ids.a}`,
    ]);
  });
});
