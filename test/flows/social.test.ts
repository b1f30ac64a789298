import { describe, expect, it } from "vitest";
import { BASE_URL } from "../support/instance";
import { queryOf } from "../support/social";
import { ACTORS, PLACES, type Place } from "./people";
import { createSocialPeople } from "./social-people";

const callbackOf = (place: Place) =>
  `${BASE_URL}${place === "platform" ? "" : "/tenant"}/callback/gitlab`;

const elsewhere = (place: Place) => PLACES.filter((other) => other !== place);

describe.each(ACTORS)("link-social at %s, named by %s", (place, way) => {
  it("by redirect: with the place's credentials and callback, to the person there", async () => {
    const people = await createSocialPeople();
    const { back, authorizationURL } = await people.touchesOnly(place, () =>
      people.link(place, way),
    );
    expect(queryOf(authorizationURL.href)).toMatchObject({
      client_id: people.credentials[place].clientId,
      redirect_uri: callbackOf(place),
    });
    expect(back.location).toBe("/linked");
    expect(people.credentialsSent()).toEqual([people.credentials[place]]);
    const accounts = await people.rowsIn(place, "account");
    expect(accounts.map(({ userId }) => userId)).toEqual(Array(2).fill(people.people[place].id));
    expect(accounts.map(({ providerId }) => providerId).sort()).toEqual(["credential", "gitlab"]);
  });

  it("by id token: issued to the place's client", async () => {
    const people = await createSocialPeople();
    const { clientId } = people.credentials[place];
    const token = people.internet.googleIdToken({ aud: clientId, email: "same@example.com" });
    const answer = await people.touchesOnly(place, () =>
      people.window(place, way).post("/link-social", { provider: "google", idToken: { token } }),
    );
    expect([answer.status, answer.data]).toEqual([200, { url: "", status: true, redirect: false }]);
    const accounts = await people.rowsIn(place, "account");
    const linked = accounts.find(({ providerId }) => providerId === "google");
    expect(linked).toMatchObject({ userId: people.people[place].id, accountId: "google-alice" });
  });

  it("threat: audience confusion: an id token issued to another place's client links nothing", async () => {
    const people = await createSocialPeople();
    for (const other of elsewhere(place)) {
      const aud = people.credentials[other].clientId;
      const token = people.internet.googleIdToken({ aud, email: "same@example.com" });
      const answer = await people.changesNothing(() =>
        people.window(place, way).post("/link-social", { provider: "google", idToken: { token } }),
      );
      expect([answer.status, answer.code]).toEqual([401, "INVALID_TOKEN"]);
    }
  });

  it("sign-in/social on better-auth's own path: the place's credentials and callback", async () => {
    const people = await createSocialPeople();
    const { app, ids, credentials } = people;
    // By its session alone it is a sign-in by somebody who is signed in already.
    const browser = way === "its header" ? people.stranger(place) : people.window(place, way);
    const body = { provider: "gitlab", callbackURL: "/welcome", errorCallbackURL: "/failed" };
    await people.touchesOnly(place, async () => {
      const start = await browser.post<{ url: string }>("/sign-in/social", body);
      expect(start.status).toBe(200);
      expect(queryOf(start.data.url)).toMatchObject({
        client_id: credentials[place].clientId,
        redirect_uri: callbackOf(place),
      });
      const back = await browser.fork({}).get(await app.idp.authorize(start.data.url, "alice"));
      expect([back.status, back.location]).toEqual([302, "/welcome"]);
      expect(back.headers.getSetCookie().join()).toMatch(/session_token=[^;]/);
      expect(people.credentialsSent()).toEqual([credentials[place]]);
    });
    const sessions = await people.rowsIn(place, "session");
    expect(sessions.map(({ userId }) => userId)).toEqual(Array(2).fill(people.people[place].id));
    expect(new Set(sessions.map(({ tenantId }) => tenantId))).toEqual(new Set([ids[place] ?? ""]));
  });
});

describe("link-social across the border", () => {
  it("threat: identity collision: one account at the provider is linked three times", async () => {
    const people = await createSocialPeople();
    const accounts = await people.linkAll();
    expect(new Set(Object.values(accounts)).size).toBe(3);
    for (const place of PLACES) {
      const browser = people.app.browser();
      await people.app.signIn(browser, people.ids[place]);
      const who = await people.app.whoIs(browser, people.ids[place]);
      expect(who?.user.id).toBe(people.people[place].id);
    }
    expect(await people.app.rows("user")).toBe(3);
  });

  it("R6: threat: a link that A's person started is not finished by B's, nor on the platform", async () => {
    const people = await createSocialPeople();
    const start = await people.window("a", "its header").post<{ url: string }>("/link-social", {
      provider: "gitlab",
      callbackURL: "/linked",
      errorCallbackURL: "/failed",
    });
    const url = await people.app.idp.authorize(start.data.url, "alice");
    const platforms = url.replace("/tenant/callback/", "/callback/");
    for (const place of elsewhere("a")) {
      const visitor = people.window(place, "its session alone");
      await people.changesNothing(async () => {
        const answer = await visitor.get(platforms);
        expect(queryOf(answer.location).error).toMatch(/./);
      });
    }
    expect(await people.app.rows("account", "1 = 1")).toBe(3);
  });

  it("R5: a session of elsewhere links nothing", async () => {
    const people = await createSocialPeople();
    const visitor = people.window("b", "its session alone").fork(people.header("a"));
    const answer = await people.changesNothing(() =>
      visitor.post("/link-social", { provider: "gitlab" }),
    );
    expect([answer.status, answer.code]).toEqual([401, "UNAUTHORIZED"]);
  });
});

describe("a social sign-up in a tenant", () => {
  it("R6: sends a verification link that leads back, where the provider has not verified", async () => {
    const people = await createSocialPeople({
      auth: { emailVerification: { sendOnSignUp: true } },
    });
    const { app, ids, mails, stranger, touchesOnly } = people;
    app.idp.addPerson("bob", { email_verified: false });
    await app.signIn(app.browser(), ids.platform, {}, "bob");
    mails.length = 0;
    await touchesOnly("a", async () => {
      await app.signIn(app.browser(), ids.a, {}, "bob");
      expect(mails).toMatchObject([{ to: "bob@example.com", sentIn: ids.a }]);
      await stranger("platform").get(mails[0]?.url ?? "");
    });
    const bobs = await app.database.query(
      `select "tenantId" from "user" where email = 'bob@example.com' and "emailVerified" = 1`,
    );
    expect(bobs).toEqual([{ tenantId: ids.a }]);
  });
});
