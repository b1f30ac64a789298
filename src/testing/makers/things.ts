import { KIT_DOMAIN, proofOf } from "../instance/domains";
import { ok } from "../sides/browser";
import { type Person, signIn } from "../sides/people";
import { inAnHour, maker } from "./maker";

type Row = { id: string };

/** An organization of the main user with the second one in it, and one that invites the main user. */
export const organization = maker(
  "organization",
  ["/organization/create", "/organization/invite-member"],
  async (side) => {
    const { main, second, workshop, things } = side;
    const { paths, subject } = workshop;
    const of = `${workshop.mark} of ${side.name}`;
    const post = ({ browser }: Person, path: string, body: object) =>
      ok<Row & { slug: string }>(browser.post(`/organization/${path}`, body));
    const create = (person: Person, word: string) => {
      const slug = `${word}-${workshop.mark}-${side.name}`;
      return post(person, "create", { name: `${word} ${of}`, slug });
    };
    const { id: organizationId, slug: organizationSlug } = await create(main, "organization");
    const member = { organizationId, userId: second.userId, role: "member" };
    const added = await side.inside(async () =>
      subject.api.addMember?.({ body: member, ...side.serverCall() }),
    );
    const { id: memberId } = Object(added) as Partial<Row>;
    Object.assign(things, {
      organizationId,
      organizationSlug,
      memberId,
      memberIdOrEmail: memberId,
    });
    if (paths.has("/organization/create-team")) {
      const { id } = await post(main, "create-team", { name: `team ${of}`, organizationId });
      things.teamId = id;
      const ofTeam = { teamId: id, userId: main.userId, organizationId };
      await main.browser.post("/organization/add-team-member", ofTeam);
    }
    const other = await create(second, "other-organization");
    const invite = async (inviter: Person, email: string, organizationId: string) =>
      (await post(inviter, "invite-member", { email, role: "member", organizationId })).id;
    things.invitationId = await invite(second, main.email, other.id);
    things.ownInvitationId = await invite(main, side.newcomerEmail, organizationId);
  },
);

/** An account at a provider beside the password, as a social sign-in leaves it. */
export const account = maker("account", ["/list-accounts"], async (side) => {
  const { main, things, workshop, name } = side;
  const { adapter } = workshop.subject.ctx;
  const accountId = `account-${workshop.mark}-${name}`;
  const claims = { aud: accountId, sub: accountId, email: main.email };
  const data = {
    userId: main.userId,
    providerId: "google",
    accountId,
    accessToken: `access-${accountId}`,
    refreshToken: `refresh-${accountId}`,
    idToken: await workshop.providers.googleIdToken(claims),
    accessTokenExpiresAt: inAnHour(),
    createdAt: new Date(),
    updatedAt: new Date(),
  };
  const create = () => adapter.create<typeof data, Row>({ model: "account", data });
  things.accountId = (await side.inside(create)).id;
});

export const impersonation = maker(
  "impersonated session",
  ["/admin/impersonate-user", "/admin/stop-impersonating"],
  async (side) => {
    if (side.place.tenantId === null) return;
    const { main, second, sessions } = side;
    const { browser } = await signIn(side.fresh(), main.userId, main.email);
    const { userId } = second;
    await ok(browser.post("/admin/impersonate-user", { userId }));
    sessions.push({ name: "impersonated session", userId, cookies: browser.cookies });
  },
);

export const anonymous = maker("anonymous session", ["/sign-in/anonymous"], async (side) => {
  const browser = side.fresh();
  const { user } = await ok<{ user: Row }>(browser.post("/sign-in/anonymous"));
  side.sessions.push({ name: "anonymous session", userId: user.id, cookies: browser.cookies });
});

export const apiKey = maker("API key", ["/api-key/create"], async (side) => {
  const body = { name: `key ${side.workshop.mark} of ${side.name}` };
  const { id, key } = await ok<Row & { key: string }>(
    side.main.browser.post("/api-key/create", body),
  );
  side.things.keyId = id;
  side.apiKey = key;
  side.secrets.push(key);
});

/** A domain of each tenant, with the proof that the kit answers with in place of name servers. */
export const domain = maker("domain", ["/tenant/domain/verify"], async (side) => {
  const { place, name, workshop, things } = side;
  if (place.tenantId === null) return;
  things.tenantDomain = `${name}-${workshop.mark}.${KIT_DOMAIN}`;
  const token = proofOf(String(things.tenantDomain));
  const [createdAt, updatedAt] = [new Date(), new Date()];
  const state = { token, verifiedDomain: token, discoverable: true, host: true };
  const data = { domain: things.tenantDomain, ...state, createdAt, updatedAt };
  const { adapter } = workshop.subject.ctx;
  await side.inside(() => adapter.create({ model: "tenantDomain", data }));
});
