import { organization } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { TenantAuthOptions } from "../../src/index";
import {
  createWorld,
  ELSEWHERE,
  EMAIL,
  expectRefused,
  outcome,
  PLACES,
  type Send,
  shareWorld,
  type Where,
  type World,
} from "../support/world";

const MODELS = ["organization", "member", "invitation"];
const options = (tenant: TenantAuthOptions) => ({
  tenant,
  plugins: (send: Send) => [
    organization({
      sendInvitationEmail: send("invitation"),
      requireEmailVerificationOnInvitation: false,
    }),
  ],
});

interface Named {
  id: string;
  slug: string;
}

/** An organization, whose owner has invited an e-mail that exists in all three places. */
async function invite(world: World, slug: string, where: Where = "acme") {
  await world.janes();
  // better-auth shows invitations to verified addresses only, which all people here have.
  await world.database.query('update "user" set "emailVerified" = 1');
  const owner = await world.as("owner", where);
  const { data: org } = await owner.post<Named>("/organization/create", { name: "Club", slug });
  const { data, status } = await owner.post<Named>("/organization/invite-member", {
    email: EMAIL,
    role: "member",
    organizationId: org.id,
  });
  expect(status).toBe(200);
  return { owner, org, invitationId: data.id };
}

const invitations = async (world: World, where: Where) => {
  const jane = await world.as("jane", where);
  const { data } = await jane.get<Named[]>("/organization/list-user-invitations");
  return data.map(({ id }) => id);
};

describe("organization with scoped models", () => {
  const world = shareWorld(options({ scopedModels: MODELS }));

  it("invites, lists and accepts inside a tenant", async () => {
    const { invitationId, org } = await invite(world, "accepted");
    expect(world.lastMail("invitation")).toMatchObject({ to: EMAIL, sentIn: world.ids.acme });
    expect(await invitations(world, "acme")).toEqual([invitationId]);
    const jane = await world.as("jane", "acme");
    const accepted = await jane.post("/organization/accept-invitation", { invitationId });
    expect(accepted.status).toBe(200);
    const where = '"userId" = ? and "organizationId" = ?';
    expect(await world.rows("member", where, [jane.id, org.id])).toBe(1);
  });

  it.each(ELSEWHERE)("R3: the invitation does not reach the same e-mail on %s", async (place) => {
    const { invitationId } = await invite(world, `club-${place}`);
    const jane = await world.as("jane", place);
    expect(await invitations(world, place)).toEqual([]);
    const accept = () => jane.post("/organization/accept-invitation", { invitationId });
    expectRefused(await world.unchanged(accept), 400, "INVITATION_NOT_FOUND");
  });

  // The plugin's own unique index is over the slug alone.
  it("its unique column stays global: a slug of one tenant is taken at another", async () => {
    await invite(world, "club");
    const jane = await world.as("jane", "globex");
    const create = (slug: string) => jane.post("/organization/create", { name: "Other", slug });
    expect((await world.unchanged(() => create("club"))).status).toBeGreaterThanOrEqual(400);
    expect((await create("other-club")).status).toBe(200);
  });

  it("goes with its tenant", async () => {
    const { id } = await world.createTenant();
    await invite(world, "leaving", id);
    expect(await world.rowsIn(id, "invitation")).toHaveLength(1);
    await world.api.deleteTenant({ body: { tenantId: id } });
    for (const model of MODELS) expect(await world.rowsIn(id, model)).toEqual([]);
  });
});

// What docs/organizations.md says about it: shared organizations belong to the application, and
// whoever has the invited e-mail, in whichever tenant, is invited.
it("organization with shared models invites an e-mail in every place, and no session travels", async () => {
  const world = await createWorld(options({ sharedModels: MODELS }));
  const { owner, invitationId } = await invite(world, "club");
  for (const place of PLACES) expect(await invitations(world, place)).toEqual([invitationId]);
  const elsewhere = await world.at("globex", owner).get("/organization/list");
  expect(outcome(elsewhere)).toEqual([401, "UNAUTHORIZED"]);
});
