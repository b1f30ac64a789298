import { organization } from "better-auth/plugins";
import { expect, it } from "vitest";
import { createWorld, ELSEWHERE, EMAIL, expectRefused, type Place } from "../support/world";

const MODELS = ["organization", "member", "invitation"];

it("R3: organizations with scoped models invite inside a tenant only, and go with it", async () => {
  const world = await createWorld({
    tenant: { scopedModels: MODELS },
    plugins: (send) => [
      organization({
        sendInvitationEmail: send("invitation"),
        requireEmailVerificationOnInvitation: false,
      }),
    ],
  });
  const janes = await world.janes();
  // better-auth shows invitations to verified addresses only, which all people here have.
  await world.write("user", { emailVerified: true });
  const club = { name: "Club", slug: "club" };
  const owner = await world.as("owner", "acme");
  const { data: org } = await owner.post<{ id: string }>("/organization/create", club);
  // An email that exists in all three places.
  const body = { email: EMAIL, role: "member", organizationId: org.id };
  const { data } = await owner.post<{ id: string }>("/organization/invite-member", body);
  expect(world.lastMail("invitation")).toMatchObject({ to: EMAIL, sentIn: world.ids.acme });
  const listed = async (place: Place) =>
    (await janes[place].get<object[]>("/organization/list-user-invitations")).data;
  const accept = (place: Place) =>
    janes[place].post("/organization/accept-invitation", { invitationId: data.id });
  for (const place of ELSEWHERE) {
    expect(await listed(place)).toEqual([]);
    expectRefused(await world.unchanged(() => accept(place)), 400, "INVITATION_NOT_FOUND");
  }
  expect(await listed("acme")).toMatchObject([{ id: data.id }]);
  expect((await accept("acme")).status).toBe(200);
  expect(await world.rows("member", '"organizationId" = ?', [org.id])).toBe(2);
  expect((await janes.globex.post("/organization/create", club)).data).toMatchObject(club);
  await world.api.deleteTenant({ body: { tenantId: world.ids.acme } });
  for (const model of MODELS) expect(await world.rowsIn("acme", model)).toEqual([]);
  expect(await world.rowsIn("globex", "organization")).toHaveLength(1);
});
