import { serializeSignedCookie } from "better-call";
import type { Subject } from "../instance/subject";
import type { Values } from "../options";
import type { Browser } from "./browser";
import { inside, type Place } from "./places";

export const PASSWORD = "correct horse battery staple 4711";

export interface Person {
  userId: string;
  email: string;
  token: string;
  browser: Browser;
}

/** Fields of users that have to be given, with something plausible in them. */
export function requiredFields({ ctx }: Subject, text: string, isInput = false): Values {
  const isWanted = (name: string, input = true) =>
    !isInput || (input && !["name", "email", "tenantId"].includes(name));
  const fields = Object.entries(ctx.tables.user?.fields ?? {}).filter(
    ([name, { required, defaultValue, input }]) =>
      required && defaultValue === undefined && isWanted(name, input),
  );
  return Object.fromEntries(
    fields.map(([name, { type }]) => [name, plausible(type, `${text} ${name}`)]),
  );
}

/** Adds a user to a side with the server's own code, because sign-up may be closed. */
export async function createPerson(
  subject: Subject,
  place: Place,
  { email, name, values }: { email: string; name: string; values: Values },
): Promise<string> {
  const { internalAdapter, password, tables, options } = subject.ctx;
  const known = Object.entries(values).filter(([field]) => tables.user?.fields[field]);
  const data = { ...requiredFields(subject, name), ...Object.fromEntries(known), name, email };
  return inside(place, async () => {
    const user = await internalAdapter.createUser(
      { emailVerified: true, ...data },
      { method: "admin" },
    );
    if (!user) {
      throw new Error(
        "checkIsolation(): a hook of the application refuses new users: `databaseHooks.user.create.before` returned false. Pass what it checks, `person: { … }`, or let it pass in tests",
      );
    }
    const { id } = user;
    if (options.emailAndPassword?.enabled) {
      const hash = await password.hash(PASSWORD);
      const account = { userId: id, accountId: id, providerId: "credential", password: hash };
      await internalAdapter.linkAccount(account);
    }
    return id;
  });
}

function plausible(type: unknown, text: string): unknown {
  if (Array.isArray(type)) return type[0];
  const values: Values = { number: 1, boolean: true, date: new Date(), json: {} };
  return values[String(type)] ?? (String(type).endsWith("[]") ? [] : text);
}

/** Signs a user in with a password, or with the server's own code if there are none. */
export async function signIn(browser: Browser, userId: string, email: string): Promise<Person> {
  const { data } = await browser.post("/sign-in/email", { email, password: PASSWORD });
  const { token, twoFactorSetupRequired } = Object(data) as Record<string, string | undefined>;
  if (token && !twoFactorSetupRequired) return { userId, email, browser, token };
  return { userId, email, browser, token: await issueSession(browser, userId) };
}

/** A session made by the server's own code, and its cookie. */
export async function issueSession(browser: Browser, userId: string): Promise<string> {
  const { ctx } = browser.subject;
  const { session, name } = await inside(browser.place, async () => ({
    session: await ctx.internalAdapter.createSession(userId).catch(explainPolicy),
    name: ctx.authCookies.sessionToken.name,
  }));
  if (!session) {
    throw new Error(
      "checkIsolation(): no user can sign in, because a hook of the application refuses sessions: `databaseHooks.session.create.before` returned false. Pass what it checks, `person: { … }`, or let it pass in tests",
    );
  }
  const { token } = session;
  const cookie = await serializeSignedCookie(name, token, ctx.secret);
  browser.cookies.set(name, cookie.slice(name.length + 1).split(";")[0] ?? "");
  // Cached sessions are made when the session is first asked for.
  await browser.get("/get-session");
  return token;
}

/** The tenants of a run have no policy, but the platform may. */
function explainPolicy(error: { body?: { code?: string } }): never {
  if (!/^(SIGN_IN_METHOD_NOT_ALLOWED|TWO_FACTOR_REQUIRED)$/.test(error.body?.code ?? ""))
    throw error;
  throw new Error(
    "checkIsolation(): platformPolicy lets no user of the platform sign in with a password alone. Leave its `methods` and `twoFactor` out in tests",
  );
}

/** Whether a response is about a user. A short number may stand for anything. */
export const tellsOf = (userId: string, text: string) =>
  userId.length >= 8
    ? text.includes(userId)
    : new RegExp(`"(userId|id)":"?${userId}"?[,}]`).test(text);
