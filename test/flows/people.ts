import type { BetterAuthOptions } from "better-auth";
import { expect } from "vitest";
import { getTenantId } from "../../src/index";
import type { Browser } from "../support/browser";
import { createInstance, type Instance, type InstanceOptions } from "../support/instance";

/** The three sides of the border. */
export const PLACES = ["a", "b", "platform"] as const;
export type Place = (typeof PLACES)[number];

/** One e-mail, three people: each has a password of their own. */
export const EMAIL = "same@example.com";
export const passwordOf = (place: Place) => `password of ${place}`;

/** How a request gets into its tenant: the platform is where no request names one. */
export type Way = "its header" | "its session alone";
export const ACTORS: [place: Place, way: Way][] = [
  ["a", "its header"],
  ["a", "its session alone"],
  ["platform", "its session alone"],
];

export interface Mail {
  kind: "reset" | "verification" | "change" | "deletion";
  to: string;
  userId: string;
  /** Where the sender says it runs. */
  sentIn: string | null;
  url: string;
  token: string;
}

/**
 * What somebody who holds a mail can send in place of its token: better-auth's own token, with
 * whatever binds it to its tenant taken off. A token of the platform is bound by nothing.
 */
export function bareTokens({ token, sentIn }: Mail): string[] {
  if (sentIn === null) return [token];
  const jwts = token.match(/[\w-]+\.[\w-]+\.[\w-]+/g) ?? [];
  return [...new Set([...token.split("~"), ...jwts])].filter((part) => part !== token);
}

export interface SessionAnswer {
  session: { id: string; token: string; userId: string; tenantId: string | null; theme?: string };
  user: { id: string; email: string; name: string; tenantId: string | null };
}

export interface PeopleOptions extends InstanceOptions {
  /** Accounts are deleted by a link in a mail, not at once. */
  deletionByMail?: boolean;
}

/** Options that make better-auth send all its mails here. */
function createMailbox({ deletionByMail = false }: PeopleOptions = {}) {
  const mails: Mail[] = [];
  type Data = { user: { id: string; email: string }; url: string; token: string };
  const put =
    (kind: Mail["kind"]) =>
    async ({ user, url, token }: Data) => {
      mails.push({ kind, to: user.email, userId: user.id, sentIn: getTenantId(), url, token });
    };
  const auth = {
    emailAndPassword: { enabled: true, sendResetPassword: put("reset") },
    emailVerification: { sendVerificationEmail: put("verification") },
    user: {
      changeEmail: { enabled: true, sendChangeEmailConfirmation: put("change") },
      deleteUser: {
        enabled: true,
        ...(deletionByMail && { sendDeleteAccountVerification: put("deletion") }),
      },
    },
    session: { additionalFields: { theme: { type: "string", required: false } } },
  } satisfies Partial<BetterAuthOptions>;
  return { mails, auth };
}

/** The mailbox, and on top of it what the test wants. */
export function withMailbox(options: PeopleOptions = {}) {
  const { mails, auth } = createMailbox(options);
  const more = options.auth ?? {};
  const merged: Partial<BetterAuthOptions> = {
    ...auth,
    ...more,
    emailAndPassword: { ...auth.emailAndPassword, ...more.emailAndPassword },
    emailVerification: { ...auth.emailVerification, ...more.emailVerification },
    session: { ...auth.session, ...more.session },
    user: {
      ...auth.user,
      ...more.user,
      changeEmail: { ...auth.user.changeEmail, ...more.user?.changeEmail },
      deleteUser: { ...auth.user.deleteUser, ...more.user?.deleteUser },
    },
  };
  const { deletionByMail: _, ...rest } = options;
  return { mails, options: { ...rest, auth: merged } };
}

/** One e-mail in two tenants and on the platform, all signed in. */
export async function createPeople(options: PeopleOptions = {}) {
  const mailbox = withMailbox(options);
  return populate(await createInstance(mailbox.options), mailbox.mails);
}

export type People = Awaited<ReturnType<typeof createPeople>>;

export async function populate<I extends Instance>(instance: I, mails: Mail[] = []) {
  const { database } = instance;
  const ids: Record<Place, string | null> = {
    a: (await instance.createTenant("aa")).id,
    b: (await instance.createTenant("bb")).id,
    platform: null,
  };
  const header = (place: Place): Record<string, string> => {
    const id = ids[place];
    return id === null ? {} : { "x-tenant-id": id };
  };

  /** A browser without cookies, at a place. */
  const stranger = (place: Place) => instance.browser(header(place));

  async function signUp(place: Place) {
    const browser = stranger(place);
    const body = { name: place, email: EMAIL, password: passwordOf(place) };
    const { status, data } = await browser.post<{ user: { id: string } }>("/sign-up/email", body);
    if (status !== 200) throw new Error(`sign-up: ${JSON.stringify(data)}`);
    return { id: data.user.id, browser };
  }

  const people: Record<Place, { id: string; browser: Browser }> = {
    a: await signUp("a"),
    b: await signUp("b"),
    platform: await signUp("platform"),
  };
  mails.length = 0;

  const rowsIn = (place: Place, table: string) =>
    database.query(
      `select * from ${database.quote(table)} where ${database.quote("tenantId")} = ?
       order by ${database.quote("id")}`,
      [ids[place] ?? ""],
    );

  /** Everything that a place holds, read past the border. */
  async function everythingIn(place: Place) {
    const content: Record<string, Record<string, unknown>[]> = {};
    for (const table of ["user", "session", "account", "verification"]) {
      content[table] = await rowsIn(place, table);
    }
    return content;
  }

  /** Signs in from a new browser. */
  async function signIn(place: Place, password = passwordOf(place), email = EMAIL) {
    const browser = stranger(place);
    const answer = await browser.post<{ token: string; user: { id: string } }>("/sign-in/email", {
      email,
      password,
    });
    return { ...answer, browser };
  }

  async function expectSignsIn(place: Place, password?: string, email?: string) {
    const { status, data } = await signIn(place, password, email);
    expect([status, data.user?.id]).toEqual([200, people[place].id]);
  }

  async function expectRefused(place: Place, password?: string, email?: string) {
    const { status, code } = await signIn(place, password, email);
    expect([status, code]).toEqual([401, "INVALID_EMAIL_OR_PASSWORD"]);
  }

  return {
    instance,
    mails,
    ids,
    people,
    header,
    stranger,
    rowsIn,
    everythingIn,
    signIn,
    expectSignsIn,
    expectRefused,

    /** A window of somebody who is signed in, which names the tenant or does not. */
    window: (place: Place, way: Way) =>
      people[place].browser.fork(way === "its header" ? header(place) : {}),

    /** The row of the person at a place. */
    async userAt(place: Place) {
      const users = await rowsIn(place, "user");
      return users.find(({ id }) => id === people[place].id);
    },

    /** The last mail, which has to be of this kind. */
    lastMail(kind: Mail["kind"]): Mail {
      const mail = mails.at(-1);
      if (mail?.kind !== kind) throw new Error(`no mail: ${JSON.stringify(mails)}`);
      return mail;
    },

    /** Runs a flow of one person: the other two of that e-mail keep every row and their password. */
    async touchesOnly<T>(place: Place, run: () => Promise<T>): Promise<T> {
      const others = PLACES.filter((other) => other !== place);
      const before = await Promise.all(others.map(everythingIn));
      const result = await run();
      expect(await Promise.all(others.map(everythingIn))).toEqual(before);
      for (const other of others) await expectSignsIn(other);
      return result;
    },

    /** Runs something that has to be refused everywhere: not a row changes. */
    async changesNothing<T>(run: () => Promise<T>): Promise<T> {
      const before = await Promise.all(PLACES.map(everythingIn));
      const result = await run();
      expect(await Promise.all(PLACES.map(everythingIn))).toEqual(before);
      return result;
    },
  };
}
