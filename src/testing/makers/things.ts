import { ok } from "../sides/browser";
import { type Person, signIn } from "../sides/people";
import type { Maker } from "./maker";

type Organization = { id: string; slug: string; members: { id: string }[] };

/** An organization of the main person with the second one in it, and one that invites the main person. */
export const organization: Maker = {
  name: "organization",
  paths: ["/organization/create", "/organization/invite-member"],
  async make(side) {
    const { main, second, workshop, things, name } = side;
    const { mark, paths, subject } = workshop;
    const create = ({ browser }: Person, word: string) =>
      ok<Organization>(
        browser.post("/organization/create", {
          name: `${word} ${mark} of ${name}`,
          slug: `${word}-${mark}-${name}`,
        }),
      );
    const own = await create(main, "organization");
    const organizationId = own.id;
    Object.assign(things, { organizationId, organizationSlug: own.slug });
    const member = { organizationId, userId: second.userId, role: "member" };
    const added = await side.inside(async () =>
      subject.api.addMember?.({ body: member, ...side.serverCall() }),
    );
    things.memberId = (added as { id?: string } | undefined)?.id;
    things.memberIdOrEmail = things.memberId;
    if (paths.has("/organization/create-team")) {
      const team = { name: `team ${mark} of ${name}`, organizationId };
      const { id } = await ok<{ id: string }>(main.browser.post("/organization/create-team", team));
      things.teamId = id;
      const ofTeam = { teamId: id, userId: main.userId, organizationId };
      await main.browser.post("/organization/add-team-member", ofTeam);
    }
    const other = await create(second, "other-organization");
    const invite = async ({ browser }: Person, email: string, of: string) => {
      const invitation = { email, role: "member", organizationId: of };
      return (await ok<{ id: string }>(browser.post("/organization/invite-member", invitation))).id;
    };
    things.invitationId = await invite(second, main.email, other.id);
    things.ownInvitationId = await invite(main, side.newcomerEmail, organizationId);
  },
};

/** An account at a provider beside the password, as a social sign-in leaves it. */
export const account: Maker = {
  name: "account",
  paths: ["/list-accounts"],
  async make(side) {
    const { main, things, workshop, name } = side;
    const { adapter } = workshop.subject.ctx;
    const accountId = `account-${workshop.mark}-${name}`;
    const data = {
      userId: main.userId,
      providerId: "google",
      accountId,
      accessToken: `access-${accountId}`,
      refreshToken: `refresh-${accountId}`,
      idToken: await workshop.providers.googleIdToken({
        aud: accountId,
        sub: accountId,
        email: main.email,
      }),
      accessTokenExpiresAt: new Date(Date.now() + 3_600_000),
      createdAt: new Date(),
      updatedAt: new Date(),
    };
    const { id } = await side.inside(() =>
      adapter.create<typeof data, { id: string }>({ model: "account", data }),
    );
    things.accountId = id;
  },
};

export const impersonation: Maker = {
  name: "impersonated session",
  paths: ["/admin/impersonate-user", "/admin/stop-impersonating"],
  async make(side) {
    if (side.place.tenantId === null) return;
    const { subject } = side.workshop;
    const { browser } = await signIn(subject, side.place, side.main.userId, side.main.email);
    await ok(browser.post("/admin/impersonate-user", { userId: side.second.userId }));
    const { userId } = side.second;
    side.sessions.push({ name: this.name, userId, cookies: browser.cookies });
  },
};

export const anonymous: Maker = {
  name: "anonymous session",
  paths: ["/sign-in/anonymous"],
  async make(side) {
    const browser = side.fresh();
    const { user } = await ok<{ user: { id: string } }>(browser.post("/sign-in/anonymous"));
    side.sessions.push({ name: this.name, userId: user.id, cookies: browser.cookies });
  },
};

export const apiKey: Maker = {
  name: "API key",
  paths: ["/api-key/create"],
  async make(side) {
    const { mark } = side.workshop;
    const body = { name: `key ${mark} of ${side.name}` };
    const made = await ok<{ id: string; key: string }>(
      side.main.browser.post("/api-key/create", body),
    );
    side.things.keyId = made.id;
    side.apiKey = made.key;
    side.secrets.push(made.key);
  },
};
