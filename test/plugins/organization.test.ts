import { organization } from "better-auth/plugins";
import { expect, it } from "vitest";
import { runInTenant } from "../../src/index";
import {
  createWorld,
  ELSEWHERE,
  EMAIL,
  expectRefused,
  outcome,
  PLACES,
  type Where,
  type World,
} from "../support/world";

const MODELS = ["organization", "member", "invitation"];

const createOrganizations = (kind: "scopedModels" | "sharedModels") =>
  createWorld({
    tenant: { [kind]: MODELS },
    plugins: (send) => [
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
  const body = { email: EMAIL, role: "member", organizationId: org.id };
  const { data, status } = await owner.post<Named>("/organization/invite-member", body);
  expect(status).toBe(200);
  return { owner, org, invitationId: data.id };
}

const invitations = async (world: World, where: Where) => {
  const jane = await world.as("jane", where);
  const { data } = await jane.get<Named[]>("/organization/list-user-invitations");
  return data.map(({ id }) => id);
};

it("R3: organizations with scoped models invite inside a tenant only, and go with it", async () => {
  const world = await createOrganizations("scopedModels");
  const { invitationId, org } = await invite(world, "club");
  expect(world.lastMail("invitation")).toMatchObject({ to: EMAIL, sentIn: world.ids.acme });
  const accept = async (where: Where) =>
    (await world.as("jane", where)).post("/organization/accept-invitation", { invitationId });
  for (const place of ELSEWHERE) {
    expect(await invitations(world, place)).toEqual([]);
    expectRefused(await world.unchanged(() => accept(place)), 400, "INVITATION_NOT_FOUND");
  }
  expect(await invitations(world, "acme")).toEqual([invitationId]);
  expect((await accept("acme")).status).toBe(200);
  expect(await world.rows("member", '"organizationId" = ?', [org.id])).toBe(2);

  // The plugin's own unique index is over the slug alone.
  const jane = await world.as("jane", "globex");
  const create = (slug: string) => jane.post("/organization/create", { name: "Other", slug });
  expect((await world.unchanged(() => create("club"))).status).toBeGreaterThanOrEqual(400);
  expect((await create("other-club")).status).toBe(200);

  await world.api.deleteTenant({ body: { tenantId: String(world.ids.acme) } });
  for (const model of MODELS) expect(await world.rowsIn("acme", model)).toEqual([]);
  expect(await world.rowsIn("globex", "organization")).toHaveLength(1);
});

// What docs/organizations.md says about it: shared organizations belong to the application, and
// whoever has the invited e-mail, in whichever tenant, is invited.
it("organization with shared models invites an e-mail in every place, and no session travels", async () => {
  const world = await createOrganizations("sharedModels");
  const { owner, org, invitationId } = await invite(world, "club");
  for (const place of PLACES) expect(await invitations(world, place)).toEqual([invitationId]);
  const elsewhere = await world.at("globex", owner).get("/organization/list");
  expect(outcome(elsewhere)).toEqual([401, "UNAUTHORIZED"]);

  // better-auth could show the members to nobody any more.
  const accept = async (where: Where) =>
    (await world.as("jane", where)).post("/organization/accept-invitation", { invitationId });
  for (const place of ELSEWHERE) {
    expectRefused(await world.unchanged(() => accept(place)), 403, "USER_NOT_IN_TENANT");
  }
  const { id } = await world.as("jane", "globex");
  const body = { userId: id, role: "member" as const, organizationId: org.id };
  const { addMember } = world.api as unknown as { addMember(call: object): Promise<unknown> };
  const added = runInTenant(world.ids.globex, () => addMember({ body }));
  await expect(added).rejects.toMatchObject({ body: { code: "USER_NOT_IN_TENANT" } });
  const query = { organizationId: org.id };
  const stranger = await world.as("jane", "globex");
  expectRefused(
    await stranger.get("/organization/get-full-organization", { query }),
    403,
    "USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION",
  );
  expect((await accept("acme")).status).toBe(200);
  for (const path of ["list-members", "get-full-organization"]) {
    const { data } = await owner.get<{ members: unknown[] }>(`/organization/${path}`, { query });
    expect(data.members).toHaveLength(2);
  }

  // One from before this was refused.
  const [member] = await world.database.query('select * from "member" where "role" = \'member\'');
  await world.database.query('update "member" set "userId" = ? where id = ?', [id, member?.id]);
  for (const path of ["list-members", "get-full-organization"]) {
    const { data } = await owner.get<{ members: unknown[] }>(`/organization/${path}`, { query });
    expect(data.members).toHaveLength(1);
  }
  const removed = { memberIdOrEmail: member?.id, ...query };
  const answer = await owner.post("/organization/remove-member", removed);
  expectRefused(answer, 400, "MEMBER_NOT_FOUND");
});
