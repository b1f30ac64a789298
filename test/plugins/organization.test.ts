import { organization } from "better-auth/plugins";
import { expect, it } from "vitest";
import { runInTenant } from "../../src/index";
import { createDatabase } from "../support/database";
import { mapStorage } from "../support/stores";
import {
  createWorld,
  ELSEWHERE,
  EMAIL,
  expectRefused,
  outcome,
  PLACES,
  type Where,
  type World,
  type WorldOptions,
} from "../support/world";

const MODELS = ["organization", "member", "invitation"];

const NOT_IN_TENANT = { statusCode: 403, body: { code: "USER_NOT_IN_TENANT" } };

const createOrganizations = (
  kind: "scopedModels" | "sharedModels",
  { teams = false, ...options }: WorldOptions & { teams?: boolean } = {},
) =>
  createWorld({
    ...options,
    tenant: { [kind]: teams ? [...MODELS, "team", "teamMember"] : MODELS },
    plugins: (send) => [
      organization({
        sendInvitationEmail: send("invitation"),
        requireEmailVerificationOnInvitation: false,
        teams: { enabled: teams },
      }),
    ],
  });

interface Named {
  id: string;
  slug: string;
}

/** An organization, whose owner has invited an e-mail that exists in all three places. */
async function invite(world: World, slug: string, where: Where = "acme", hasTeam = false) {
  await world.janes();
  // better-auth shows invitations to verified addresses only, which all people here have.
  await world.database.query('update "user" set "emailVerified" = 1');
  const owner = await world.as("owner", where);
  const { data: org } = await owner.post<Named>("/organization/create", { name: "Club", slug });
  const create = { name: "Team", organizationId: org.id };
  const team = hasTeam
    ? (await owner.post<Named>("/organization/create-team", create)).data
    : undefined;
  const body = { email: EMAIL, role: "member", organizationId: org.id, teamId: team?.id };
  const { data, status } = await owner.post<Named>("/organization/invite-member", body);
  expect(status).toBe(200);
  return { owner, org, team, invitationId: data.id };
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
// their members to one tenant.
it("organization with shared models invites where its members are, and no session travels", async () => {
  const world = await createOrganizations("sharedModels");
  const { owner, org, invitationId } = await invite(world, "club");
  for (const place of PLACES) {
    expect(await invitations(world, place)).toEqual(place === "acme" ? [invitationId] : []);
  }
  const elsewhere = await world.at("globex", owner).get("/organization/list");
  expect(outcome(elsewhere)).toEqual([401, "UNAUTHORIZED"]);

  const answerWith = async (answer: "accept" | "reject", where: Where) =>
    (await world.as("jane", where)).post(`/organization/${answer}-invitation`, { invitationId });
  const accept = (where: Where) => answerWith("accept", where);
  for (const place of ELSEWHERE) {
    for (const answer of ["accept", "reject"] as const) {
      const refused = await world.unchanged(() => answerWith(answer, place));
      expect([refused.status, refused.code]).toEqual([400, expect.stringMatching(/INVITATION/i)]);
    }
  }
  // better-auth could show the members to nobody any more.
  const { id } = await world.as("jane", "globex");
  const body = { userId: id, role: "member" as const, organizationId: org.id };
  const { addMember } = world.api as unknown as { addMember(call: object): Promise<unknown> };
  const added = runInTenant(world.ids.globex, () => addMember({ body }));
  await expect(added).rejects.toMatchObject(NOT_IN_TENANT);
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
  // The others go on as before.
  const { data: sent } = await owner.get<Named[]>("/organization/list-invitations", { query });
  expect(sent.map(({ id: sentId }) => sentId)).toEqual([invitationId]);
  const removed = { memberIdOrEmail: member?.id, ...query };
  const answer = await owner.post("/organization/remove-member", removed);
  expectRefused(answer, 400, "MEMBER_NOT_FOUND");
});

it("of two shared organizations of two tenants each invites, and has teams, in its own", async () => {
  const world = await createOrganizations("sharedModels", { teams: true });
  const homes = ["acme", "globex"] as const;
  const clubs = {
    acme: await invite(world, "club", "acme", true),
    globex: await invite(world, "circle", "globex", true),
  };
  expect(await invitations(world, "platform")).toEqual([]);
  for (const home of homes) {
    const { owner, org, invitationId } = clubs[home];
    expect(await invitations(world, home)).toEqual([invitationId]);
    // Whoever has invited may be gone.
    const set = 'update "invitation" set "inviterId" = ? where "organizationId" = ?';
    const { id } = await world.as("jane", "platform");
    await world.database.query(set, [id, org.id]);
    expect([await invitations(world, home), await invitations(world, "platform")]).toEqual([
      [invitationId],
      [],
    ]);
    const jane = await world.as("jane", home);
    const accepted = await jane.post("/organization/accept-invitation", { invitationId });
    expect(accepted.status).toBe(200);
    const query = { organizationId: org.id };
    const { data } = await owner.get<Named[]>("/organization/list-invitations", { query });
    expect(data).toHaveLength(1);
    const teams = 'select * from "teamMember" where "userId" = ?';
    expect(await world.database.query(teams, [jane.id])).toMatchObject([
      { teamId: clubs[home].team?.id },
    ]);
    const ofTeam = { query: { teamId: String(clubs[home].team?.id) } };
    const { data: mates } = await jane.get("/organization/list-team-members", ofTeam);
    expect(mates).toContainEqual(expect.objectContaining({ userId: jane.id }));
  }
});

it("shared members are told apart inside a transaction of the application's own", async () => {
  const seen: number[] = [];
  const world = await createWorld({
    tenant: { sharedModels: MODELS },
    plugins: () => [
      organization({
        organizationHooks: {
          beforeCreateInvitation: () =>
            world.context.adapter.transaction(async (transaction) => {
              seen.push((await transaction.findMany({ model: "member" })).length);
            }),
        },
      }),
    ],
  });
  const create = async (where: Where) => {
    const owner = await world.as("owner", where);
    const body = { name: "Club", slug: `${where}-club` };
    return { owner, org: (await owner.post<Named>("/organization/create", body)).data };
  };
  await create("globex");
  const { owner, org } = await create("acme");
  const body = { email: EMAIL, role: "member", organizationId: org.id };
  expect((await owner.post("/organization/invite-member", body)).status).toBe(200);
  expect(seen).toEqual([1]);
});

it("takeover: an organization that everybody has left is open to no other tenant", async () => {
  const world = await createOrganizations("sharedModels");
  const { org, invitationId } = await invite(world, "club");
  await world.database.query('delete from "member" where "organizationId" = ?', [org.id]);
  const accept = async (where: Where) =>
    (await world.as("jane", where)).post("/organization/accept-invitation", { invitationId });
  for (const place of ELSEWHERE) {
    expectRefused(await world.unchanged(() => accept(place)), 400, "INVITATION_NOT_FOUND");
  }
  expect(await invitations(world, "acme")).toEqual([invitationId]);
});

it.each<[name: string, options: () => Promise<WorldOptions>]>([
  [
    "without transactions",
    async () => {
      const database = await createDatabase("sqlite");
      database.option.transaction = false;
      return { database };
    },
  ],
  ["in secondary storage", async () => ({ auth: { secondaryStorage: mapStorage().storage } })],
  ["in a cookie", async () => ({ auth: { session: { cookieCache: { enabled: true } } } })],
])("takeover: no session %s is in a team of an organization of elsewhere", async (_, options) => {
  const world = await createOrganizations("sharedModels", { teams: true, ...(await options()) });
  const { team, invitationId } = await invite(world, "club", "acme", true);
  const [jane, namesake] = [await world.as("jane", "acme"), await world.as("jane", "globex")];
  const teamOf = async (person: typeof jane) => {
    const { status } = await person.post("/organization/accept-invitation", { invitationId });
    const query = `select * from "teamMember" where "userId" = ?`;
    const rows = await world.database.query(query, [person.id]);
    type Active = { session: { activeTeamId?: string | null } };
    const { session } = (await person.get<Active>("/get-session")).data;
    return [status, rows.length, session.activeTeamId ?? null];
  };
  expect(await teamOf(namesake)).toEqual([400, 0, null]);
  expect(await teamOf(jane)).toEqual([200, 1, team?.id]);

  // Nor by the server's own code.
  const { adapter } = world.context;
  const row = { model: "teamMember", data: { teamId: team?.id, userId: namesake.id } };
  const added = runInTenant(world.ids.globex, () => adapter.create(row));
  await expect(added).rejects.toMatchObject(NOT_IN_TENANT);
});
