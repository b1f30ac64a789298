import { describe, expect, it } from "vitest";
import type { TenantPolicy } from "../../src/index";
import { INVITATION_HEADER } from "../../src/invitations/index";
import { codeOf, createWays, type WayIn } from "../tenants/ways-in";
import { invitationsWithMailbox } from "./inviting";

/** Ways that know whose address it is. The other ones have only a claim, or no address at all. */
const VERIFIED = [
  "an id token",
  "one tap",
  "a social callback",
  "generic OAuth",
  "a magic link, new",
  "a code by mail, new",
];

/** All ways in of all official plugins, with invitations. */
async function createInvitedWays() {
  const { plugin, mails } = invitationsWithMailbox();
  const app = await createWays("the database", {
    arrange: (ours, others) => [ours, plugin, ...others],
  });
  const api = app.api as typeof app.api & (typeof plugin)["endpoints"];
  const { tenantId } = app;
  const invite = (email: string) =>
    api.createTenantInvitation({ body: { tenantId, email } }).catch(() => undefined);
  const makers = app.ways.filter(({ makesUser }) => makesUser);

  /** Whether a way makes a user, and how it is refused otherwise. */
  async function attempt(way: WayIn, headers?: Record<string, string>) {
    const before = await app.count("user");
    const answer = await way.run(app.at(headers));
    const made = (await app.count("user")) - before;
    return made === 1 ? "made" : (codeOf(answer)?.toUpperCase() ?? answer.status);
  }

  async function attemptAll(headers?: Record<string, string>) {
    const outcomes: Record<string, unknown> = {};
    for (const way of makers) outcomes[way.name] = await attempt(way, headers);
    return outcomes;
  }

  return {
    ...app,
    api,
    makers,
    attemptAll,
    mails,
    /** Everybody whom the ways are going to try. */
    async inviteAll() {
      for (let n = 1; n < 60; n++) await invite(`person-${n}@example.com`);
    },
  };
}

const table = (makers: WayIn[], outcome: (isVerified: boolean) => string) =>
  Object.fromEntries(makers.map(({ name }) => [name, outcome(VERIFIED.includes(name))]));

describe("R13: every way of making a user that the official plugins have", () => {
  it.each<[NonNullable<TenantPolicy["signUp"]>, string, string]>([
    ["open", "made", "made"],
    ["invited", "INVITATION_REQUIRED", "made"],
    ["closed", "SIGN_UP_CLOSED", "SIGN_UP_CLOSED"],
  ])("%s: without an invitation %s, with one %s", async (signUp, without, invited) => {
    const app = await createInvitedWays();
    expect(app.makers.length).toBeGreaterThan(8);
    await app.setPolicy({ signUp });
    expect(await app.attemptAll()).toEqual(table(app.makers, () => without));
    await app.setPolicy(null);
    await app.inviteAll();
    await app.setPolicy({ signUp });
    expect(await app.attemptAll()).toEqual(
      // An address that nobody has verified lets nobody in who has no token.
      table(app.makers, (isVerified) => (isVerified ? invited : without)),
    );
    const accepted = await app.api.listTenantInvitations({
      query: { tenantId: app.tenantId, status: "accepted" },
    });
    expect(accepted).toHaveLength(invited === "made" ? VERIFIED.length : 0);
  });

  it.each(["open", "invited"] as const)("%s: nobody by somebody else's token", async (signUp) => {
    const app = await createInvitedWays();
    await app.setPolicy({ signUp });
    await app.api.createTenantInvitation({
      body: { tenantId: app.tenantId, email: "somebody-else@example.com" },
    });
    const token = app.mails.at(-1)?.token ?? "";
    const outcomes = await app.attemptAll({ [INVITATION_HEADER]: token });
    expect(outcomes).toEqual(table(app.makers, () => "INVITATION_EMAIL_MISMATCH"));
    const pending = await app.api.listTenantInvitations({
      query: { tenantId: app.tenantId, status: "pending" },
    });
    expect(pending).toHaveLength(1);
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
