import { serializeSignedCookie } from "better-call";
import type { Subject } from "../instance/subject";
import type { Values } from "../options";
import { Browser } from "./browser";
import { inside, namedAtHome, type Place } from "./places";

export const PASSWORD = "correct horse battery staple 4711";

/** Somebody who is signed in. */
export interface Person {
  userId: string;
  email: string;
  token: string;
  browser: Browser;
}

export const browserAt = (subject: Subject, place: Place) =>
  new Browser(subject, place, namedAtHome(place, subject.tenantOptions));

export interface Newcomer {
  email: string;
  name: string;
  values: Values;
}

/** Fields of users that have to be given, with something plausible in them. */
export function requiredFields({ ctx }: Subject, text: string, isInput = false): Values {
  const fields = Object.entries(ctx.tables.user?.fields ?? {}).filter(
    ([name, { required, defaultValue, input }]) =>
      required &&
      defaultValue === undefined &&
      !(isInput && (input === false || ["name", "email", "tenantId"].includes(name))),
  );
  return Object.fromEntries(
    fields.map(([name, { type }]) => [name, plausible(type, `${text} ${name}`)]),
  );
}

/** Adds somebody to a side with the server's own code, because sign-up may be closed. */
export async function createPerson(
  subject: Subject,
  place: Place,
  { email, name, values }: Newcomer,
): Promise<string> {
  const { internalAdapter, password, tables, options } = subject.ctx;
  const fields = tables.user?.fields ?? {};
  const known = Object.entries(values).filter(([field]) => fields[field]);
  return inside(place, async () => {
    const user = await internalAdapter.createUser(
      {
        emailVerified: true,
        ...requiredFields(subject, name),
        ...Object.fromEntries(known),
        name,
        email,
      },
      { method: "admin" },
    );
    if (!user) {
      throw new Error(
        "checkIsolation(): a hook of the application refuses new users: `databaseHooks.user.create.before` returned false. Pass what it checks, `person: { … }`, or let it pass in tests",
      );
    }
    if (options.emailAndPassword?.enabled) {
      const { id } = user;
      await internalAdapter.linkAccount({
        userId: id,
        accountId: id,
        providerId: "credential",
        password: await password.hash(PASSWORD),
      });
    }
    return user.id;
  });
}

function plausible(type: unknown, text: string): unknown {
  if (type === "number") return 1;
  if (type === "boolean") return true;
  if (type === "date") return new Date();
  if (Array.isArray(type)) return type[0];
  if (type === "string[]" || type === "number[]") return [];
  return type === "json" ? {} : text;
}

/** Signs somebody in with a password, or by the hand of the server where there are none. */
export async function signIn(
  subject: Subject,
  place: Place,
  userId: string,
  email: string,
): Promise<Person> {
  const browser = browserAt(subject, place);
  const { data } = await browser.post("/sign-in/email", { email, password: PASSWORD });
  const { token } = (data ?? {}) as { token?: string };
  if (token) return { userId, email, token, browser };
  return { userId, email, browser, token: await issueSession(subject, place, userId, browser) };
}

/** A session by the hand of the server, and its cookie. */
export async function issueSession(
  { ctx }: Subject,
  place: Place,
  userId: string,
  browser: Browser,
): Promise<string> {
  const { session, name } = await inside(place, async () => ({
    session: (await ctx.internalAdapter.createSession(userId)) as { token: string } | null,
    name: ctx.authCookies.sessionToken.name,
  }));
  if (!session) {
    throw new Error(
      "checkIsolation(): nobody can be signed in, because a hook of the application refuses sessions: `databaseHooks.session.create.before` returned false. Give people what it goes by, `person: { … }`, or let it pass in tests",
    );
  }
  const { token } = session;
  const cookie = await serializeSignedCookie(name, token, ctx.secret);
  browser.cookies.set(name, cookie.slice(name.length + 1).split(";")[0] ?? "");
  // Cached sessions are made when the session is first asked for.
  await browser.get("/get-session");
  return token;
}

/** Whether an answer is about somebody. A number may stand for anything. */
export const tellsOf = (userId: string, text: string) =>
  userId.length >= 8
    ? text.includes(userId)
    : new RegExp(`"(userId|id)":"?${userId}"?[,}]`).test(text);
