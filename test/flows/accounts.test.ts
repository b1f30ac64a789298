import { describe, expect, it } from "vitest";
import { ACTORS, EMAIL, PLACES } from "./people";
import { type Account, createSocialPeople } from "./social-people";

interface Tokens {
  accessToken: string;
  refreshToken: string;
}

describe.each(ACTORS)("accounts at %s, named by %s", (place, way) => {
  const others = PLACES.filter((other) => other !== place);

  async function createLinked({ expiresIn = 7200 } = {}) {
    const people = await createSocialPeople();
    people.app.idp.rules.expiresIn = expiresIn;
    const accounts = await people.linkAll();
    people.app.idp.rules.expiresIn = 7200;
    return { ...people, accounts, me: people.window(place, way) };
  }

  it("list-accounts: the person's own", async () => {
    const { me, people, touchesOnly, accounts } = await createLinked();
    const { data } = await touchesOnly(place, () => me.get<Account[]>("/list-accounts"));
    expect(data.map(({ providerId }) => providerId).sort()).toEqual(["credential", "gitlab"]);
    expect(data.every(({ userId }) => userId === people[place].id)).toBe(true);
    expect(data.map(({ id }) => id)).toContain(accounts[place]);
  });

  it("unlink-account: the person's own, and no namesake's", async () => {
    const { me, touchesOnly, changesNothing, accounts, rowsIn, app, ids } = await createLinked();
    for (const other of others) {
      const accountId = accounts[other];
      const refused = await changesNothing(() => me.post("/unlink-account", { accountId }));
      expect([refused.status, refused.code]).toEqual([400, "ACCOUNT_NOT_FOUND"]);
    }
    const answer = await touchesOnly(place, () =>
      me.post("/unlink-account", { accountId: accounts[place] }),
    );
    expect(answer.status).toBe(200);
    const left = await rowsIn(place, "account");
    expect(left.map(({ providerId }) => providerId)).toEqual(["credential"]);
    // At the others the account still opens the door.
    for (const other of others) {
      const browser = app.browser();
      await app.signIn(browser, ids[other]);
      expect((await app.whoIs(browser, ids[other]))?.user.email).toBe(EMAIL);
    }
  });

  it("get-access-token: a token that the provider knows, without asking it", async () => {
    const { me, touchesOnly, accounts, app } = await createLinked();
    const { data, status } = await touchesOnly(place, () =>
      me.post<Tokens>("/get-access-token", { accountId: accounts[place] }),
    );
    expect(status).toBe(200);
    expect(app.idp.exchanges()).toEqual([]);
    const authorization = `Bearer ${data.accessToken}`;
    const profile = await fetch(`${app.idp.issuer}/api/v4/user`, { headers: { authorization } });
    expect(await profile.json()).toMatchObject({ username: "alice" });
  });

  it("get-access-token: an old one is refreshed with the place's client id and secret", async () => {
    const { me, touchesOnly, accounts, credentials, credentialsSent, rowsIn, app } =
      await createLinked({ expiresIn: 1 });
    const answer = await touchesOnly(place, () =>
      me.post<Tokens>("/get-access-token", { accountId: accounts[place] }),
    );
    expect(answer.status).toBe(200);
    expect(app.idp.exchanges()).toMatchObject([{ params: { grant_type: "refresh_token" } }]);
    expect(credentialsSent()).toEqual([credentials[place]]);
    const row = (await rowsIn(place, "account")).find(({ id }) => id === accounts[place]);
    expect(row?.accessToken).toBe(answer.data.accessToken);
  });

  it("refresh-token: goes out with the place's client id and secret", async () => {
    const { me, touchesOnly, accounts, credentials, credentialsSent, rowsIn, app } =
      await createLinked();
    const { data, status } = await touchesOnly(place, () =>
      me.post<Tokens>("/refresh-token", { accountId: accounts[place] }),
    );
    expect(status).toBe(200);
    expect(app.idp.exchanges()).toMatchObject([{ params: { grant_type: "refresh_token" } }]);
    expect(credentialsSent()).toEqual([credentials[place]]);
    const row = (await rowsIn(place, "account")).find(({ id }) => id === accounts[place]);
    expect(row).toMatchObject({ accessToken: data.accessToken, refreshToken: data.refreshToken });
  });

  it("account-info: the profile at the provider", async () => {
    const { me, touchesOnly, accounts } = await createLinked();
    const query = { accountId: accounts[place] };
    const { data, status } = await touchesOnly(place, () => me.get("/account-info", { query }));
    expect(status).toBe(200);
    expect(data).toMatchObject({
      user: { email: EMAIL },
      account: { id: accounts[place], providerId: "gitlab" },
      data: { username: "alice" },
    });
  });

  it("threat: object ownership: the account of a namesake gives nothing, and nobody is asked", async () => {
    const { me, changesNothing, accounts, people, app } = await createLinked();
    for (const other of others) {
      const accountId = accounts[other];
      // A user id in the request grants nothing either.
      const queries: Record<string, string>[] = [
        { accountId },
        { accountId, userId: people[other].id },
      ];
      for (const query of queries) {
        const answers = await changesNothing(() =>
          Promise.all([
            me.post("/get-access-token", query),
            me.post("/refresh-token", query),
            me.get("/account-info", { query }),
          ]),
        );
        for (const { status, code } of answers) {
          expect([status, code]).toEqual([400, "ACCOUNT_NOT_FOUND"]);
        }
      }
    }
    expect(app.idp.requests).toEqual([]);
  });
});

describe("a tenant's credentials and its accounts", () => {
  it("a refresh fails when they are gone, and does not go out with the application's", async () => {
    const people = await createSocialPeople({ gitlab: false });
    await people.link("a");
    const [account] = (await people.rowsIn("a", "account")).filter(
      ({ providerId }) => providerId === "gitlab",
    );
    const accountId = account?.id;
    people.app.idp.requests.length = 0;
    await people.app.api.deleteTenantOAuthConfig({
      body: { tenantId: people.ids.a ?? "", providerId: "gitlab" },
    });
    const me = people.window("a", "its session alone");
    const answer = await people.changesNothing(() => me.post("/refresh-token", { accountId }));
    expect([answer.status, answer.code]).toEqual([400, "PROVIDER_NOT_SUPPORTED"]);
    expect(people.app.idp.requests).toEqual([]);
  });

  it("R5: a session of elsewhere gets at no account", async () => {
    const people = await createSocialPeople();
    const accounts = await people.linkAll();
    for (const place of ["b", "platform"] as const) {
      const visitor = people.window(place, "its session alone").fork(people.header("a"));
      const answers = await people.changesNothing(() =>
        Promise.all([
          visitor.get("/list-accounts"),
          visitor.post("/unlink-account", { accountId: accounts.a }),
          visitor.post("/get-access-token", { accountId: accounts.a, userId: people.people.a.id }),
          visitor.post("/refresh-token", { accountId: accounts.a, userId: people.people.a.id }),
          visitor.get("/account-info", { query: { accountId: accounts.a } }),
        ]),
      );
      for (const { status } of answers) expect(status).toBe(401);
    }
    expect(people.app.idp.requests).toEqual([]);
  });
});
