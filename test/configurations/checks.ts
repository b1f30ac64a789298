import type { BetterAuthOptions } from "better-auth";
import { expect } from "vitest";
import { createPlaces, EMAIL, type Place } from "../plugins/places";
import { createMailbox } from "../scope/mailbox";
import { type InstanceOptions, PASSWORD } from "../support/instance";

type SessionOptions = NonNullable<BetterAuthOptions["session"]>;

export type Places = Awaited<ReturnType<typeof createPlaces>>;

/** Two tenants and the platform, whose mails are kept. */
export async function createMailPlaces({ plugins = [], auth, ...rest }: InstanceOptions) {
  const { mails, auth: senders } = createMailbox();
  const places = await createPlaces(plugins, { ...rest, auth: { ...senders, ...auth } });
  return { ...places, mails };
}

export type MailPlaces = Awaited<ReturnType<typeof createMailPlaces>>;

/** The three ways better-auth encodes a session that it caches in a cookie. */
export const CACHES: [name: string, session: SessionOptions][] = (
  ["compact", "jwt", "jwe"] as const
).map((strategy) => [
  `a cached cookie (${strategy})`,
  { cookieCache: { enabled: true, maxAge: 300, strategy } },
]);

/** Sign-up and sign-in work in both tenants and on the platform, with one address in all three. */
export async function expectSignUpWorks({ at, signUp, ids, whoIs }: Places) {
  for (const place of ["a", "b", "platform"] as const) {
    const person = await signUp(place);
    expect(person.user.tenantId ?? null).toBe(ids[place]);
    const tab = at(place);
    const answer = await tab.post("/sign-in/email", { email: EMAIL, password: PASSWORD });
    expect(answer.status, place).toBe(200);
    const tenantId = ids[place];
    expect(await whoIs(tab, place), place).toMatchObject({ id: person.user.id, tenantId });
  }
}

/** R5: a session of A is one at A and none at B, and stays alive meanwhile. */
export async function expectSessionsApart({ signUp, whoIs, naming }: Places) {
  const people = {
    a: await signUp("a", "a@example.com"),
    b: await signUp("b", "b@example.com"),
    platform: await signUp("platform", "platform@example.com"),
  };
  for (const [home, elsewhere] of ELSEWHERE_OF) {
    const { browser, user } = people[home];
    expect(await whoIs(browser, home), `${home} at home`).toMatchObject({ id: user.id });
    expect(await whoIs(browser, elsewhere), `${home} at ${elsewhere}`).toBe(null);
    const change = await browser.fork(naming(elsewhere)).post("/update-user", { name: "Moved" });
    expect(change.status, `${home} at ${elsewhere}`).toBe(401);
    expect(await whoIs(browser, home), `${home} at home again`).toMatchObject({ id: user.id });
  }
}

// The platform has no name: a session of a tenant is the tenant's there (R4).
const ELSEWHERE_OF: [Place, Place][] = [
  ["a", "b"],
  ["b", "a"],
  ["platform", "a"],
];

/** R6: a reset link of A, opened where nothing names a tenant, changes the password at A alone. */
export async function expectResetLinksLeadHome({ at, signUp, mails, naming }: MailPlaces) {
  const email = "only-at-a@example.com";
  await signUp("a", email);
  await at("a").post("/request-password-reset", { email, redirectTo: "/new-password" });
  const stranger = at("platform");
  const { location } = await stranger.get(mails.at(-1)?.url ?? "");
  const target = new URL(location ?? "", "http://localhost:3000");
  expect([target.pathname, target.searchParams.get("error")]).toEqual(["/new-password", null]);
  const token = target.searchParams.get("token");
  const reset = await stranger.post("/reset-password", { token, newPassword: "a new password" });
  expect(reset.status).toBe(200);
  const signIn = (place: Place, password: string) =>
    stranger.fork(naming(place)).post("/sign-in/email", { email, password });
  expect((await signIn("a", "a new password")).status).toBe(200);
  expect((await signIn("a", PASSWORD)).status).toBe(401);
}

/** R6: a verification link of A verifies the address at A alone. */
export async function expectVerificationLinksLeadHome(places: MailPlaces) {
  const { at, signUp, mails, rows, ids } = places;
  for (const place of ["a", "b", "platform"] as const) await signUp(place);
  await at("a").post("/send-verification-email", { email: EMAIL });
  await at("platform").get(mails.at(-1)?.url ?? "");
  expect(await rows("user", '"emailVerified" = 1 and "tenantId" = ?', [ids.a])).toBe(1);
  expect(await rows("user", '"emailVerified" = 1')).toBe(1);
}

/** The names in an answer, in their order, objects inside included. */
export function keysInOrder(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return "";
  return Object.entries(value).map(([key, inner]) => [key, keysInOrder(inner)]);
}

/** Somebody with the admin role, who signed in once they had it: sessions may carry the role. */
export async function createAdmin({ signUp, setRole, at }: Places, place: Place) {
  const email = `admin-${place}@example.com`;
  const { user } = await signUp(place, email);
  await setRole(user.id, "admin");
  const browser = at(place);
  const { data } = await browser.post<{ token: string }>("/sign-in/email", {
    email,
    password: PASSWORD,
  });
  return { user, browser, token: data.token };
}
