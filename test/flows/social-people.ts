import { expect } from "vitest";
import { fakeGoogleAndGitHub } from "../support/providers";
import { createSocialInstance, GLOBAL, type SocialOptions } from "../support/social";
import {
  EMAIL,
  type PeopleOptions,
  PLACES,
  type Place,
  populate,
  type Way,
  withMailbox,
} from "./people";

/** An account of the fake provider in the answer of /list-accounts. */
export interface Account {
  id: string;
  providerId: string;
  accountId: string;
  userId: string;
}

/**
 * The three people, and Alice at the provider, who has their e-mail. A has credentials of its own
 * at the provider, B has others, and the platform has the application's.
 */
export async function createSocialPeople(options: SocialOptions & PeopleOptions = {}) {
  const internet = fakeGoogleAndGitHub();
  const mailbox = withMailbox(options);
  const { auth } = mailbox.options;
  const socialProviders = { google: GLOBAL };
  const app = await createSocialInstance({ ...options, auth, socialProviders });
  app.idp.rules.refreshTokens = true;
  app.idp.addPerson("alice", { email: EMAIL });
  const people = await populate(app, mailbox.mails);
  const { database } = app;
  // Accounts are linked to people whose address is known to be theirs.
  const verified = `${database.quote("emailVerified")} = ${database.kind === "postgres" ? true : 1}`;
  await database.query(`update ${database.quote("user")} set ${verified}`);
  const credentials: Record<Place, { clientId: string; clientSecret: string }> = {
    a: { clientId: "client-of-a", clientSecret: "secret-of-a" },
    b: { clientId: "client-of-b", clientSecret: "secret-of-b" },
    platform: GLOBAL,
  };
  for (const place of ["a", "b"] as const) {
    for (const providerId of ["gitlab", "google"]) {
      await app.configure(people.ids[place] ?? "", { ...credentials[place], providerId });
    }
  }

  /** Links Alice's account to the person at a place, all the way to the provider and back. */
  async function link(place: Place, way: Way = "its session alone") {
    const me = people.window(place, way);
    const start = await me.post<{ url: string }>("/link-social", {
      provider: "gitlab",
      callbackURL: "/linked",
      errorCallbackURL: "/failed",
    });
    if (start.status !== 200) throw new Error(`link: ${JSON.stringify(start.data)}`);
    const back = await me.get(await app.idp.authorize(start.data.url, "alice"));
    return { start, back, authorizationURL: new URL(start.data.url) };
  }

  return {
    ...people,
    app,
    internet,
    credentials,
    link,

    /** Everybody has linked; answers the row of each account. */
    async linkAll(): Promise<Record<Place, string>> {
      const ids: [Place, string][] = [];
      for (const place of PLACES) {
        expect((await link(place)).back.location).toBe("/linked");
        const accounts = await people.rowsIn(place, "account");
        const linked = accounts.find(({ providerId }) => providerId === "gitlab");
        ids.push([place, String(linked?.id)]);
      }
      app.idp.requests.length = 0;
      return Object.fromEntries(ids) as Record<Place, string>;
    },

    /** The client id and secret that each request to the token endpoint came with. */
    credentialsSent: () =>
      app.idp.exchanges().map(({ params }) => ({
        clientId: params.client_id,
        clientSecret: params.client_secret,
      })),
  };
}
