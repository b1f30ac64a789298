import { describe, expect, it } from "vitest";
import type { Answer, Browser } from "../support/browser";
import { databases } from "../support/database";
import { EMAIL_CHANGE_SIGNS_IN, USED_EMAIL_CHANGE } from "../support/differences";
import { turnOf } from "../support/matrix";
import {
  ACTORS,
  createWorld,
  type Mail,
  outcome,
  PLACES,
  type Place,
  passwordOf,
  queryOf,
  shareWorld,
  type Way,
  type World,
} from "../support/world";

const NEW_PASSWORD = "a brand new password";
const callbackURL = "/page";

type Namesakes = Awaited<ReturnType<World["namesakes"]>>;

/** A link that better-auth sends in a mail. */
interface Link {
  kind: string;
  ask(me: Browser, email: string): Promise<Answer>;
  /** Anybody may ask for it; for the others somebody has to be signed in. */
  byAnybody?: boolean;
  /** The link alone is not enough: the person's session is needed, too. */
  needsSession?: boolean;
  /** Whether the address has to be verified already. */
  isVerified?: boolean;
  to?(email: string): string;
  /** Sends its token by itself. */
  use(browser: Browser, token: string): Promise<Answer>;
  refused: [status: number, code: string];
  /** The second time. */
  again: [status: number, code?: string];
  expectDone(people: Namesakes, place: Place): Promise<void>;
}

/**
 * What the reader of a mail can send instead of its token: better-auth's own token, without what
 * binds it to its tenant. Nothing binds a token of the platform.
 */
function bareTokens({ token, sentIn }: Mail): string[] {
  if (sentIn === null) return [token];
  const jwts = token.match(/[\w-]+\.[\w-]+\.[\w-]+/g) ?? [];
  return [...new Set([...token.split("~"), ...jwts])].filter((part) => part !== token);
}

const movedFrom = (email: string) => `moved-${email}`;
const use: Link["use"] = (browser, token) => browser.get("/verify-email", { query: { token } });
const change = {
  ask: (me, email) => me.post("/change-email", { newEmail: movedFrom(email), callbackURL }),
  use,
  refused: [401, "INVALID_TOKEN"],
  again: [302, USED_EMAIL_CHANGE],
  async expectDone(people, place) {
    await people.expectSignsIn(place, passwordOf(place), movedFrom(people.email));
    await people.expectLockedOut(place);
  },
} satisfies Partial<Link>;

const LINKS: Record<string, Link> = {
  "password reset": {
    kind: "reset",
    byAnybody: true,
    ask: (me, email) => me.post("/request-password-reset", { email, redirectTo: "/page" }),
    use: (browser, token) =>
      browser.post("/reset-password", { newPassword: NEW_PASSWORD }, { query: { token } }),
    refused: [400, "INVALID_TOKEN"],
    again: [400, "INVALID_TOKEN"],
    async expectDone(people, place) {
      await people.expectSignsIn(place, NEW_PASSWORD);
      await people.expectLockedOut(place);
    },
  },
  verification: {
    kind: "verification",
    byAnybody: true,
    ask: (me, email) => me.post("/send-verification-email", { email, callbackURL }),
    use,
    refused: [401, "INVALID_TOKEN"],
    again: [302],
    async expectDone(people, place) {
      const [user] = await people.rowsOf(place, "user");
      expect(Boolean(user?.emailVerified)).toBe(true);
    },
  },
  "e-mail change": { ...change, kind: "verification", to: movedFrom },
  "e-mail change of a verified address": { ...change, kind: "change", isVerified: true },
  deletion: {
    kind: "deletion",
    needsSession: true,
    ask: (me) => me.post("/delete-user", { callbackURL }),
    use: (browser, token) => browser.post("/delete-user", { token }),
    refused: [404, "INVALID_TOKEN"],
    again: [404, "FAILED_TO_GET_USER_INFO"],
    async expectDone(people, place) {
      for (const model of ["user", "session", "account"]) {
        expect(await people.rowsOf(place, model)).toEqual([]);
      }
      await people.expectLockedOut(place);
    },
  },
};
/** Where somebody asks, and how: at Globex, if they may, without being signed in. */
const CASES: [Place, Way][] = [...ACTORS, ["globex", "its header"]];

async function open(world: World, { isVerified = false }: Link) {
  const people = await world.namesakes();
  const { quote, query } = world.database;
  const update = `update ${quote("user")} set ${quote("emailVerified")} = ${isVerified}`;
  await query(`${update} where email = ?`, [people.email]);
  return people;
}

/** Somebody asks for the link: one mail goes out, in the tenant, to them. */
async function askFor(world: World, link: Link, people: Namesakes, place: Place, way?: Way) {
  world.mails.length = 0;
  const isStranger = link.byAnybody && place === "globex";
  const me = isStranger ? world.at(place) : people.window(place, way);
  expect((await link.ask(me, people.email)).status).toBe(200);
  const to = link.to?.(people.email) ?? people.email;
  const sent = { kind: link.kind, to, userId: people[place].id, sentIn: world.ids[place] };
  expect(world.mails).toMatchObject([sent]);
  const mail = world.lastMail(link.kind);
  expect(mail.url).toContain(mail.token);
  // Nothing in it has to be escaped, so it survives whatever a mail template does to it.
  expect(encodeURIComponent(mail.token)).toBe(mail.token);
  return mail;
}

/** Clicks the link, and goes on to where it has done what it is for. */
async function follow(world: World, link: Link, browser: Browser, mail: Mail) {
  const { status, location } = await browser.get(mail.url);
  const { pathname } = new URL(location ?? "", "http://localhost");
  const isReset = link.kind === "reset";
  const query = isReset ? { token: mail.token } : {};
  expect([status, pathname, queryOf(location)]).toEqual([302, "/page", query]);
  if (isReset) expect((await link.use(browser, mail.token)).data).toEqual({ status: true });
  if (link.kind !== "change") return;
  const next = world.lastMail("verification");
  expect(next).toMatchObject({ to: movedFrom(mail.to), sentIn: mail.sentIn });
  expect((await browser.get(next.url)).location).toBe("/page");
}

describe.each(databases)("on %s", (database) => {
  const world = shareWorld({ deletionByMail: true }, database);

  describe.each(Object.entries(LINKS))("the link of a %s", (name, link) => {
    const turn = Object.keys(LINKS).indexOf(name);
    const browserOf = (people: Namesakes, place: Place, headers = {}) =>
      link.needsSession ? people[place].fork(headers) : world.browser(headers);

    it.each(turnOf(CASES, 2, turn))(
      "R6: of %s, asked for by %s, opened where nothing is named",
      async (place, way) => {
        const people = await open(world, link);
        const [browser, copy] = [browserOf(people, place), browserOf(people, place)];
        const mail = await world.touchesOnly(place, async () => {
          const sent = await askFor(world, link, people, place, way);
          await follow(world, link, browser, sent);
          return sent;
        });
        await link.expectDone(people, place);
        if (link.needsSession) expect(browser.cookies.size).toBe(0);
        const again = await world.unchanged(() =>
          link.kind === "reset" ? link.use(copy, mail.token) : copy.get(mail.url),
        );
        const [status, code] = link.again;
        const told = [again.status, again.code ?? queryOf(again.location).error];
        expect(told).toEqual([status, code]);
      },
    );

    it("threat: R6: is refused with any part of it altered, or elsewhere, and good as it is", async () => {
      const people = await open(world, link);
      const ofGlobex = await askFor(world, link, people, "globex");
      const mail = await askFor(world, link, people, "acme");
      const { url, token } = mail;
      const expectRefused = ({ status, code, location }: Answer, what: string) => {
        if (link.needsSession) expect([what, status, code]).toEqual([what, ...link.refused]);
        else expect([what, queryOf(location)]).toEqual([what, { error: "INVALID_TOKEN" }]);
      };
      await world.unchanged(async () => {
        for (const [what, other] of Object.entries(alterations(token, ofGlobex.token))) {
          const altered = url.replace(token, encodeURIComponent(other));
          expectRefused(await browserOf(people, "acme").get(altered), what);
        }
      });
      // In another tenant that the request names, and in one that is not there.
      const query = { tenantId: world.ids.globex };
      for (const click of [
        () => browserOf(people, "acme", world.naming("globex")).get(url),
        () => browserOf(people, "acme").get(url, { query }),
      ]) {
        const { status, location } = await world.unchanged(click);
        expect(status).toBe(link.needsSession ? 404 : 302);
        expect(queryOf(location).token).toBeUndefined();
      }
      const nowhere = browserOf(people, "acme", { "x-tenant-id": "nowhere" });
      const lost = await world.unchanged(() => nowhere.get(url));
      expect(outcome(lost)).toEqual([404, "TENANT_NOT_FOUND"]);
      await follow(world, link, browserOf(people, "acme"), mail);
      await link.expectDone(people, "acme");
    });

    it.each(turnOf(PLACES, 2, turn))(
      "threat: R6: account takeover: no part of that of %s is good elsewhere",
      async (from) => {
        const people = await open(world, link);
        const mail = await askFor(world, link, people, from);
        world.mails.length = 0;
        const parts = bareTokens(mail);
        expect(parts).not.toEqual([]);
        await world.unchanged(async () => {
          for (const place of PLACES.filter((other) => other !== from)) {
            // The whole link leads home where nothing else is named.
            for (const token of place === "platform" ? parts : [mail.token, ...parts]) {
              const browser = link.needsSession ? people[place].fork() : world.at(place);
              const answer = await link.use(browser, token);
              expect([place, ...outcome(answer)]).toEqual([place, ...link.refused]);
              expect(answer.headers.getSetCookie()).toEqual([]);
            }
          }
        });
        expect(world.mails).toEqual([]);
      },
    );

    if (link.needsSession) return;

    // A reset token of the platform says nothing of its place: there the session does.
    const visits: [Place, Place][] = [
      ["acme", "globex"],
      ["acme", "platform"],
      ["platform", "acme"],
    ];
    it.each(turnOf(visits.slice(0, link.kind === "reset" ? 2 : 3), 1, turn))(
      "R4, R5, R6: of %s, clicked by the namesake at %s, is for its own person",
      async (from, at) => {
        const people = await open(world, link);
        const mail = await askFor(world, link, people, from);
        const visitor = people.window(at);
        await world.touchesOnly(from, () => follow(world, link, visitor, mail));
        await link.expectDone(people, from);
        const { id, email } = people[at];
        expect(await world.whoIs(people.window(at))).toMatchObject({ id, email });
        // An e-mail change signs its person in where the link belongs; the others leave one be.
        const signsIn = !link.byAnybody && EMAIL_CHANGE_SIGNS_IN;
        const now = signsIn ? people[from] : people[at];
        expect((await world.whoIs(visitor))?.id).toBe(now.id);
      },
    );
  });

  it("R6: a deletion needs the session of its person: with none, or another's, nothing happens", async () => {
    const people = await world.namesakes();
    const { url } = await askFor(world, LINKS.deletion as Link, people, "acme");
    for (const browser of [
      world.at("platform"),
      world.at("acme"),
      people.window("globex"),
      people.window("globex", "its header"),
      people.window("platform"),
      people.acme.fork(world.naming("globex")),
    ]) {
      const cookies = browser.cookieHeader();
      const { status, code } = await world.unchanged(() => browser.get(url));
      expect(status).toBe(404);
      expect(["INVALID_TOKEN", "FAILED_TO_GET_USER_INFO"]).toContain(code);
      expect(browser.cookieHeader()).toBe(cookies);
    }
    await follow(world, LINKS.deletion as Link, people.window("acme"), world.lastMail("deletion"));
  });
});

it("a deletion finds the tenant's own cookie with sessionCookies per-tenant", async () => {
  const tenant = { sessionCookies: "per-tenant" } as const;
  const world = await createWorld({ deletionByMail: true, tenant });
  const people = await world.namesakes();
  const link = LINKS.deletion as Link;
  const mail = await askFor(world, link, people, "acme", "its header");
  const tab = people.window("acme");
  await world.touchesOnly("acme", () => follow(world, link, tab, mail));
  await link.expectDone(people, "acme");
  expect(tab.cookies.size).toBe(0);
});

it("threat: a link that changes the address of a deleted user does not change the next one's", async () => {
  const world = await createWorld();
  const email = "next@example.com";
  const ask = async (person: Browser) => {
    await person.post("/change-email", { newEmail: movedFrom(email), callbackURL });
    return world.lastMail("verification").url;
  };
  const first = await world.signUp("acme", email);
  const stale = await ask(first);
  await world.at("acme", await world.operator()).post("/admin/remove-user", { userId: first.id });
  const next = await world.signUp("acme", email);
  const thief = world.at("acme");
  expect(queryOf((await thief.get(stale)).location)).toEqual({ error: "USER_NOT_FOUND" });
  expect(await world.whoIs(thief)).toBeNull();
  expect(await world.whoIs(next)).toMatchObject({ id: next.id, email });
  // The next one's own link does.
  await next.get(await ask(next));
  expect(await world.whoIs(next)).toMatchObject({ email: movedFrom(email) });
});

/** What somebody who holds the link can do to its token; whatever its parts stand for. */
function alterations(token: string, ofGlobex: string): Record<string, string> {
  const parts = token.split("~");
  const others = ofGlobex.split("~");
  const swap = (index: number, part = "") => parts.with(index, part).join("~");
  /** Another character of the same kind, in the middle, where every bit of it counts. */
  const flip = (text: string) => {
    const at = Math.floor(text.length / 2);
    return `${text.slice(0, at)}${text[at] === "x" ? "y" : "x"}${text.slice(at + 1)}`;
  };
  const altered: Record<string, string> = {
    "something before": `x${token}`,
    "something behind": `${token}x`,
    "its last character gone": token.slice(0, -1),
    "sealed twice": `${token}~${parts.slice(1).join("~")}`,
  };
  for (const [index, part] of parts.entries()) {
    altered[`part ${index} changed`] = swap(index, flip(part));
    altered[`part ${index} empty`] = swap(index);
    // A token of Globex that the same person may well hold: nothing of it goes together with
    // Acme's, but two signed e-mail addresses of one second are the same.
    const swapped = swap(index, others[index]);
    if (swapped === token || swapped === ofGlobex) continue;
    altered[`part ${index} taken from Globex's`] = swapped;
  }
  return altered;
}
