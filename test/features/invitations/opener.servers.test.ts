import { describe, expect, it } from "vitest";
import { INVITATION_HEADER } from "../../../src/features/invitations/error-codes";
import type { TenantPolicy } from "../../../src/index";
import { PASSWORD } from "../../support/instance";
import { everyCase } from "../../support/matrix";
import { codeOf, createWays, endpointsThatCall, type WayIn } from "../policy/sign-ins";
import { createInviting, invitationsWithMailbox } from "./world";

/** What makes a user, by itself or for an endpoint that calls it. */
const MAKERS =
  /\.createUser\(|\.createOAuthUser\(|\bhandleOAuthUserInfo\(|create\(\{\s*model: "user"/;

/** Where users are made for whichever endpoint asks. */
const HELPERS = ["internal-adapter", "link-account", "test-utils"];

/** Makes users and is tried in a file of its own: a tenant's flow does not end there. */
const TRIED_ELSEWHERE = "/callback/:id/oauth-proxy";

type SignUp = NonNullable<TenantPolicy["signUp"]>;

const INVITATIONS = [
  "none",
  "of the address",
  "with its token",
  "of another user, with its token",
] as const;
type Invitation = (typeof INVITATIONS)[number];

const ADMINISTRATOR = "an administrator";

/** All ways in of all official plugins that make somebody new, with invitations. */
async function createInvitedWays() {
  const { plugin, sent } = invitationsWithMailbox();
  const made: { path: string | undefined; email: string; emailVerified: boolean }[] = [];
  const app = await createWays("the database", {
    plugins: [plugin],
    auth: {
      databaseHooks: {
        user: {
          create: {
            before: async ({ email, emailVerified }, ctx) =>
              void made.push({ path: ctx?.path, email, emailVerified }),
          },
        },
      },
    },
  });
  const api = app.api as typeof app.api & (typeof plugin)["endpoints"];
  const tenantId = app.ids.acme;
  await app.setRole(app.person.id, "admin");
  let guests = 0;

  const administrator: WayIn = {
    name: ADMINISTRATOR,
    method: null,
    makesUser: true,
    run: ({ headers }) => {
      const email = `guest-${guests}@example.com`;
      const browser = app.person.fork(headers);
      return browser.post("/admin/create-user", { email, name: "New", password: PASSWORD });
    },
  };

  /** Somebody new tries a way: whether it makes a user, and what becomes of the invitation. */
  async function attempt(
    way: WayIn,
    signUp: SignUp,
    invitation: Invitation,
    meanwhile: (email: string) => Promise<unknown> = async () => {},
  ) {
    const name = `guest-${++guests}`;
    const email = `${/somebody else/.test(invitation) ? "other-" : ""}${name}@example.com`;
    await app.setPolicy(null);
    const isInvited = invitation !== "none";
    const { id } = isInvited
      ? await api.createTenantInvitation({ body: { tenantId, email } })
      : { id: undefined };
    await app.setPolicy({ signUp });
    await meanwhile(email);
    const token = /token/.test(invitation) ? sent.at(-1)?.token : undefined;
    const before = (await app.people()).users;
    const visitor = app.visitor(token ? { [INVITATION_HEADER]: token } : {});
    const answer = await app.calling(name, () => way.run(visitor));
    const isMade = (await app.people()).users > before;
    const all = await api.listTenantInvitations({ query: { tenantId, limit: 1000 } });
    const isAccepted = all.find((one) => one.id === id)?.status === "accepted";
    const outcome = isMade ? "made" : (codeOf(answer)?.toUpperCase() ?? String(answer.status));
    return { outcome: isAccepted ? `${outcome}, accepted` : outcome, name };
  }

  /** What better-auth knows of somebody new: where they are made, and whether the address is theirs. */
  async function factsOf(way: WayIn) {
    made.length = 0;
    const { outcome, name } = await attempt(way, "open", "none");
    const [user] = made;
    expect([way.name, outcome, made.length]).toEqual([way.name, "made", 1]);
    const hasAddress = user?.email === `${name}@example.com`;
    return { path: user?.path, hasAddress, isVerified: hasAddress && user.emailVerified };
  }

  const makers = [...app.ways.filter(({ makesUser }) => makesUser), administrator];
  return { ...app, api, sent, makers, attempt, factsOf };
}

type Facts = Awaited<ReturnType<Awaited<ReturnType<typeof createInvitedWays>>["factsOf"]>>;

/** R13, in one place: what becomes of somebody new, by what is known of them. */
function expected(way: WayIn, facts: Facts, signUp: SignUp, invitation: Invitation): string {
  const isAdministrators = way.name === ADMINISTRATOR;
  if (signUp === "closed" && !isAdministrators) return "SIGN_UP_CLOSED";
  if (/token/.test(invitation)) {
    const isTheirs = facts.hasAddress && !/somebody else/.test(invitation);
    return isTheirs ? "made, accepted" : "INVITATION_EMAIL_MISMATCH";
  }
  // Administrators make users in any case.
  if (isAdministrators) return "made";
  // An address that nobody has verified lets nobody in who has no token.
  if (invitation !== "none" && facts.isVerified) return "made, accepted";
  return signUp === "open" ? "made" : "INVITATION_REQUIRED";
}

describe("R13: every way of making a user that the official plugins have", () => {
  it("is in this table, at the endpoint where the instance creates the invited user", async () => {
    const app = await createInvitedWays();
    const paths = new Set<string | undefined>([TRIED_ELSEWHERE]);
    const tried = new Set<string>();
    for (const way of app.makers) {
      const facts = await app.factsOf(way);
      paths.add(facts.path);
      // One of each kind, unless every case is tried: they all end where the user is made.
      const kind = JSON.stringify([way.name === ADMINISTRATOR, facts.hasAddress, facts.isVerified]);
      if (tried.has(kind) && !everyCase) continue;
      tried.add(kind);
      for (const signUp of ["open", "invited", "closed"] as const) {
        const row: string[] = [];
        for (const invitation of INVITATIONS) {
          row.push((await app.attempt(way, signUp, invitation)).outcome);
        }
        const rules = INVITATIONS.map((invitation) => expected(way, facts, signUp, invitation));
        expect([way.name, signUp, ...row]).toEqual([way.name, signUp, ...rules]);
      }
    }
    expect(endpointsThatCall(MAKERS, HELPERS).sort()).toEqual([...paths].sort());
    // Some know whose the address is, some have a claim, and some have none.
    expect(tried.size).toBe(4);
  });

  it("an unverified user with the address stops no way that has the mailed token", async () => {
    const app = await createInvitedWays();
    const squat = (email: string) => app.signUp("acme", email);
    const withoutToken: string[] = [];
    for (const way of app.makers) {
      if (way.name === ADMINISTRATOR || !(await app.factsOf(way)).hasAddress) continue;
      const { outcome } = await app.attempt(way, "open", "with its token", squat);
      expect([way.name, outcome]).toEqual([way.name, "made, accepted"]);
      const known = await app.attempt(way, "open", "of the address", squat);
      if (known.outcome === "made, accepted") withoutToken.push(way.name);
      else expect(known.outcome).not.toContain("made");
    }
    // These prove the address by a mail of their own.
    expect(withoutToken).toEqual(["a magic link, new", "a code by mail, new"]);
  });

  it("a social flow that began with the token ends with it, verified or not", async () => {
    const app = await createInvitedWays();
    await app.setPolicy({ signUp: "invited" });
    app.idp.addPerson("grace", { email_verified: false });
    const socialWith = async (headers: Record<string, string>) => {
      const browser = app.visitor(headers);
      const body = { provider: "gitlab", callbackURL: "/in", errorCallbackURL: "/failed" };
      const { data } = await browser.post<{ url: string }>("/sign-in/social", body);
      const back = await app.idp.authorize(data.url, "grace");
      return codeOf(await browser.fork({}).get(back));
    };
    const email = "grace@example.com";
    await app.api.createTenantInvitation({ body: { tenantId: app.ids.acme, email } });
    expect(await socialWith({})).toBeDefined();
    const token = app.sent.at(-1)?.token ?? "";
    expect(await socialWith({ [INVITATION_HEADER]: token })).toBeUndefined();
    const user = (await app.rowsIn("acme", "user")).find((one) => one.email === email);
    expect(Boolean(user?.emailVerified)).toBe(true);
  });
});

it("a value that is no text is refused, by better-auth or by us, and is no 500", async () => {
  const world = await createInviting({ auth: { user: { changeEmail: { enabled: true } } } });
  const { token } = await world.invite("acme", "new@example.com");
  await world.setPolicy("acme", { emailDomains: ["example.com"] });
  const person = { name: "New", email: "new@example.com", password: PASSWORD };
  const noText = { toString: 1, valueOf: 1 };
  const headers = { [INVITATION_HEADER]: token };
  for (const [path, body, status] of [
    ["/sign-up/email", { ...person, password: noText }, 400],
    ["/tenant/sign-up/email", { ...person, password: [noText] }, 400],
    ["/sign-up/email", { ...person, email: noText }, 403],
    ["/tenant/invitation/accept", { ...person, token, email: noText }, 403],
    ["/change-email", { newEmail: noText }, 403],
  ] as const) {
    const answer = await world.at("acme").post(path, body, { headers });
    expect([path, answer.status, typeof answer.code]).toEqual([path, status, "string"]);
  }
});
