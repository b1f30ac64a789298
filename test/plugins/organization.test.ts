import { organization } from "better-auth/plugins";
import { expect, it } from "vitest";
import {
  createWorld,
  ELSEWHERE,
  EMAIL,
  expectRefused,
  type Where,
  type World,
} from "../support/world";

const MODELS = ["organization", "member", "invitation"];

const createOrganizations = () =>
  createWorld({
    tenant: { scopedModels: MODELS },
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
async function invite(world: World) {
  await world.janes();
  // better-auth shows invitations to verified addresses only, which all people here have.
  await world.database.query('update "user" set "emailVerified" = 1');
  const owner = await world.as("owner", "acme");
  const create = { name: "Club", slug: "club" };
  const { data: org } = await owner.post<Named>("/organization/create", create);
  const body = { email: EMAIL, role: "member", organizationId: org.id };
  const { data, status } = await owner.post<Named>("/organization/invite-member", body);
  expect(status).toBe(200);
  return { org, invitationId: data.id };
}

const invitations = async (world: World, where: Where) => {
  const jane = await world.as("jane", where);
  const { data } = await jane.get<Named[]>("/organization/list-user-invitations");
  return data.map(({ id }) => id);
};

it("R3: organizations with scoped models invite inside a tenant only, and go with it", async () => {
  const world = await createOrganizations();
  const { invitationId, org } = await invite(world);
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

  const jane = await world.as("jane", "globex");
  const other = { name: "Other", slug: "club" };
  expect((await jane.post("/organization/create", other)).data).toMatchObject(other);

  await world.api.deleteTenant({ body: { tenantId: String(world.ids.acme) } });
  for (const model of MODELS) expect(await world.rowsIn("acme", model)).toEqual([]);
  expect(await world.rowsIn("globex", "organization")).toHaveLength(1);
});
