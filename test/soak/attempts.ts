import type { Account, Person } from "./person";
import type { Answer, Call, Place } from "./world";

type Attempt = (person: Person, account: Account, other: Place, twin?: Account) => Promise<void>;

/** Tries, with what is somebody's own, what must not work elsewhere. */
export async function tryElsewhere(person: Person, account: Account): Promise<void> {
  const found = person.elsewhere(account);
  if (!found) return;
  const attempt = person.random.pick([
    sessionElsewhere,
    sessionElsewhere,
    passwordElsewhere,
    resetTokenElsewhere,
    codeElsewhere,
    manageTenants,
    sessionsOfStrangers,
  ]);
  await attempt(person, account, found.other, found.twin);
}

/** A request in which nothing of another place may show, and which must not be granted. */
async function refused(
  person: Person,
  what: string,
  other: Place,
  call: Call,
  isRefused = ({ status }: Answer) => status >= 400,
): Promise<void> {
  const { world, random } = person;
  const answer = await world.ask({ home: other, ...call }, random);
  if (!answer) return;
  world.ledger.count(`tried: ${what}`);
  if (!isRefused(answer) && !answer.crossed)
    world.ledger.fail("crossing", `${what} worked: ${answer.text}`);
}

/** The session of one tenant at another, which is named by header or query. */
const sessionElsewhere: Attempt = async (person, { sessions }, other) => {
  const { random } = person;
  const session = random.pick(sessions);
  const by = random.pick(["cookie", "bearer"] as const);
  const named = random.oneIn(2) ? { at: other } : { query: { tenantId: other.id ?? "" } };
  const call = { session, by, ...named };
  const isNobody = ({ status, data }: Answer) => status >= 400 || data === null;
  await refused(person, "a session elsewhere", other, { path: "/get-session", ...call }, isNobody);
  const [path, body] = random.pick([
    ["/list-sessions", undefined],
    ["/update-user", { name: "somebody of elsewhere" }],
    ["/revoke-sessions", {}],
  ] as const);
  const request: Call = { path, ...call, ...(body ? { body } : {}) };
  await refused(person, `${path} elsewhere`, other, request);
};

/** The same e-mail is somebody else there, or nobody. */
const passwordElsewhere: Attempt = async (person, { email, password }, other) => {
  const body = { email, password, tenantId: other.id };
  await refused(person, "a password elsewhere", other, { path: "/tenant/sign-in/email", body });
};

const resetTokenElsewhere: Attempt = async (person, account, other, twin) => {
  const token = await person.askForReset(account);
  if (!token) return;
  const body = { token, newPassword: person.newPassword() };
  const call = { path: "/reset-password", at: other, body };
  await refused(person, "a reset token elsewhere", other, call);
  // It is still good where it belongs, and has changed nothing for the other one.
  await person.finishReset(account, token);
  if (twin) await person.confirmPassword(twin);
};

const codeElsewhere: Attempt = async (person, account, other) => {
  const otp = await person.askForCode(account);
  if (!otp) return;
  const body = { email: account.email, otp };
  const call = { path: "/sign-in/email-otp", at: other, body };
  await refused(person, "a code elsewhere", other, call);
};

/** Also a tenant's own admin manages no tenants: not this one, and not another. */
const manageTenants: Attempt = async (person, { place, email, sessions }, other) => {
  // On the platform an admin is an operator.
  if (place.id === null && email.startsWith("boss-")) return;
  const session = person.random.pick(sessions);
  const tenantId = person.random.pick([other.id, place.id ?? other.id]);
  const [path, body] = person.random.pick([
    ["/tenant/delete", { tenantId }],
    ["/tenant/update", { tenantId, name: "Taken over" }],
    ["/tenant/oauth-config/delete", { tenantId, providerId: "google" }],
  ] as const);
  await refused(person, "to manage a tenant", place, { path, body, session });
};

/** A tenant's admin asks for the sessions of somebody else's user. */
const sessionsOfStrangers: Attempt = async (person, { place, email, sessions }, other) => {
  if (place.id === null || !email.startsWith("boss-")) return;
  const { world, random } = person;
  const strangers = world.sessions.filter((one) => one.place === other || one.place.id === null);
  if (strangers.length === 0) return;
  const { userId } = random.pick(strangers);
  const session = random.pick(sessions);
  const call = { path: "/admin/list-user-sessions", body: { userId }, session };
  const isEmpty = ({ status, data }: Answer) =>
    status >= 400 || (Array.isArray(data?.sessions) && data.sessions.length === 0);
  await refused(person, "an admin looks at sessions elsewhere", place, call, isEmpty);
};
