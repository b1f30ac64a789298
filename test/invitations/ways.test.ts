import { describe, expect, it } from "vitest";
import type { TenantPolicy } from "../../src/index";
import { INVITATION_HEADER } from "../../src/invitations/index";
import { PASSWORD } from "../support/instance";
import { endpointsThatCall } from "../tenants/endpoint-sources";
import { codeOf, createWays, type WayIn } from "../tenants/ways-in";
import { invitationsWithMailbox } from "./inviting";

/** What makes a user, by itself or for an endpoint that calls it. */
const MAKERS =
  /\.createUser\(|\.createOAuthUser\(|\bhandleOAuthUserInfo\(|create\(\{\s*model: "user"/;

/** Where users are made for whichever endpoint asks. */
const HELPERS = ["internal-adapter", "link-account", "test-utils"];

/** Endpoints that make users and are tried in a file of their own: a tenant's flow does not end there. */
const TRIED_ELSEWHERE = { "/callback/:id/oauth-proxy": "test/guards/oauth-proxy.test.ts" };

type SignUp = NonNullable<TenantPolicy["signUp"]>;

const INVITATIONS = [
  "none",
  "of the address",
  "with its token",
  "of somebody else, with its token",
];
type Invitation = (typeof INVITATIONS)[number];

/** A user who was made: where, and what was known of the address. */
interface Made {
  path: string | undefined;
  email: string;
  emailVerified: boolean;
}

type Ways = Awaited<ReturnType<typeof createInvitedWays>>;

/** All ways in of all official plugins that make somebody new, with invitations. */
async function createInvitedWays() {
  const { plugin, mails } = invitationsWithMailbox();
  const made: Made[] = [];
  const app = await createWays("the database", {
    arrange: (ours, others) => [ours, plugin, ...others],
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
  const { tenantId, person } = app;
  const table = app.database.quote("user");
  await app.database.query(`update ${table} set role = 'admin' where id = ?`, [person.id]);
  let guests = 0;

  const administrator: WayIn = {
    name: ADMINISTRATOR,
    method: null,
    makesUser: true,
    run: ({ headers }) => {
      const email = `guest-${guests}@example.com`;
      const browser = person.browser.fork(headers);
      return browser.post("/admin/create-user", { email, name: "New", password: PASSWORD });
    },
  };
  const makers = [...app.ways.filter(({ makesUser }) => makesUser), administrator];

  /** Somebody new tries a way: whether it makes a user, and what becomes of the invitation. */
  async function attempt(way: WayIn, signUp: SignUp, invitation: Invitation) {
    const name = `guest-${++guests}`;
    const email = /somebody else/.test(invitation)
      ? `other-${name}@example.com`
      : `${name}@example.com`;
    await app.setPolicy(null);
    const invited =
      invitation === "none"
        ? undefined
        : await api.createTenantInvitation({ body: { tenantId, email } });
    await app.setPolicy({ signUp });
    const token = /token/.test(invitation) ? (mails.at(-1)?.token ?? "") : undefined;
    const headers = token ? { [INVITATION_HEADER]: token } : undefined;
    const before = await app.count("user");
    const answer = await app.as(name, () => way.run(app.at(headers)));
    const isMade = (await app.count("user")) > before;
    const status = invited && (await statusOf(invited.id));
    const outcome = isMade ? "made" : (codeOf(answer)?.toUpperCase() ?? String(answer.status));
    return { outcome: status === "accepted" ? `${outcome}, accepted` : outcome, name };
  }

  async function statusOf(id: string) {
    const all = await api.listTenantInvitations({ query: { tenantId, limit: 1000 } });
    return all.find((invitation) => invitation.id === id)?.status;
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

  return { ...app, api, mails, makers, attempt, factsOf };
}

const ADMINISTRATOR = "an administrator";

type Facts = Awaited<ReturnType<Ways["factsOf"]>>;

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
  it("is in the table below, at the endpoint where the instance makes the user", async () => {
    const app = await createInvitedWays();
    const paths = new Set<string | undefined>();
    for (const way of app.makers) paths.add((await app.factsOf(way)).path);
    const known = [...paths, ...Object.keys(TRIED_ELSEWHERE)];
    expect(endpointsThatCall(MAKERS, HELPERS).sort()).toEqual(known.sort());
  });

  it.each<SignUp>(["open", "invited", "closed"])("%s, by whom is invited", async (signUp) => {
    const app = await createInvitedWays();
    const table: Record<string, Record<string, string>> = {};
    const rules: typeof table = {};
    for (const way of app.makers) {
      const facts = await app.factsOf(way);
      const outcomes: Record<string, string> = {};
      for (const invitation of INVITATIONS) {
        outcomes[invitation] = (await app.attempt(way, signUp, invitation)).outcome;
      }
      table[way.name] = outcomes;
      rules[way.name] = Object.fromEntries(
        INVITATIONS.map((invitation) => [invitation, expected(way, facts, signUp, invitation)]),
      );
    }
    expect(table).toEqual(rules);
    // Some know whose the address is, some have a claim, and some have none.
    const outcomes = new Set(Object.values(table).map((row) => Object.values(row).join()));
    expect(outcomes.size).toBe({ open: 3, invited: 4, closed: 2 }[signUp]);
  });

  it("a social flow that began with the token ends with it, verified or not", async () => {
    const app = await createInvitedWays();
    await app.setPolicy({ signUp: "invited" });
    app.idp.addPerson("grace", { email_verified: false });
    const socialWith = async (headers: Record<string, string>) => {
      const browser = app.at(headers);
      const body = { provider: "gitlab", callbackURL: "/in", errorCallbackURL: "/failed" };
      const { data } = await browser.post<{ url: string }>("/sign-in/social", body);
      const back = await app.idp.authorize(data.url, "grace");
      return codeOf(await browser.fork({}).get(back));
    };
    await app.api.createTenantInvitation({
      body: { tenantId: app.tenantId, email: "grace@example.com" },
    });
    expect(await socialWith({})).toBeDefined();
    const token = app.mails.at(-1)?.token ?? "";
    expect(await socialWith({ [INVITATION_HEADER]: token })).toBeUndefined();
    const [user] = await app.database.query(
      `select * from ${app.database.quote("user")} where email = ?`,
      ["grace@example.com"],
    );
    expect(Boolean(user?.emailVerified)).toBe(true);
  });
});
