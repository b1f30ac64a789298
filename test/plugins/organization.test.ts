import { organization } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { TenantAuthOptions } from "../../src/index";
import { createPlaces, ELSEWHERE, EMAIL, expectRefused, PLACES } from "./places";

const SCOPED = ["organization", "member", "invitation"];

interface Named {
  id: string;
  slug: string;
}

/** An organization at A, whose owner has invited an e-mail that exists in all three places. */
async function createInvitation(tenant: TenantAuthOptions = { scopedModels: SCOPED }) {
  const mails: { id: string; email: string }[] = [];
  const places = await createPlaces(
    [
      organization({
        sendInvitationEmail: async ({ id, email }) => void mails.push({ id, email }),
        requireEmailVerificationOnInvitation: false,
      }),
    ],
    { tenant },
  );
  const owner = await places.signUp("a", "owner@example.com");
  const invited = {
    a: await places.signUp("a"),
    b: await places.signUp("b"),
    platform: await places.signUp("platform"),
  };
  // better-auth shows invitations to verified addresses only, which both people here have.
  await places.instance.database.query('update "user" set "emailVerified" = 1');
  const { data: org } = await owner.browser.post<Named>("/organization/create", {
    name: "Club",
    slug: "club",
  });
  const invitation = await owner.browser.post<{ id: string }>("/organization/invite-member", {
    email: EMAIL,
    role: "member",
    organizationId: org.id,
  });
  expect(invitation.status).toBe(200);
  return { ...places, owner, invited, org, invitationId: invitation.data.id, mails };
}

describe("organization with scoped models", () => {
  it("invites, lists and accepts inside a tenant", async () => {
    const { invited, invitationId, org, rows, mails } = await createInvitation();
    expect(mails).toEqual([{ id: invitationId, email: EMAIL }]);
    const { browser, user } = invited.a;
    const { data } = await browser.get<Named[]>("/organization/list-user-invitations");
    expect(data.map(({ id }) => id)).toEqual([invitationId]);
    const accepted = await browser.post("/organization/accept-invitation", { invitationId });
    expect(accepted.status).toBe(200);
    const where = '"userId" = ? and "organizationId" = ?';
    expect(await rows("member", where, [user.id, org.id])).toBe(1);
  });

  it.each(ELSEWHERE)("R3: the invitation does not reach the same e-mail on %s", async (place) => {
    const { invited, invitationId, org, unchanged } = await createInvitation();
    const { browser } = invited[place];
    const list = await browser.get("/organization/list-user-invitations");
    expect(list.data).toEqual([]);
    for (const path of ["/organization/accept-invitation", "/organization/reject-invitation"]) {
      const refused = await unchanged(() => browser.post(path, { invitationId }));
      expectRefused(refused, 400, "INVITATION_NOT_FOUND");
    }
    const query = { id: invitationId };
    const got = await browser.get("/organization/get-invitation", { query });
    expect(got.status).toBe(400);
    expect(JSON.stringify(got.data)).not.toContain(org.id);
  });

  it.each(ELSEWHERE)("R3: the organization is unknown on %s", async (place) => {
    const { invited, org, unchanged, rows } = await createInvitation();
    const { browser } = invited[place];
    const byId = { query: { organizationId: org.id } };
    const bySlug = { query: { organizationSlug: org.slug } };
    for (const query of [byId, bySlug]) {
      const full = await browser.get("/organization/get-full-organization", query);
      expect(JSON.stringify(full.data) ?? "").not.toContain("Club");
    }
    expect((await browser.get("/organization/list")).data).toEqual([]);
    const body = { organizationId: org.id };
    const active = await browser.post("/organization/set-active", body);
    expect(active.status).toBeGreaterThanOrEqual(400);
    expect(await rows("session", '"activeOrganizationId" = ?', [org.id])).toBe(1);
    for (const path of ["delete", "leave"]) {
      const refused = await unchanged(() => browser.post(`/organization/${path}`, body));
      expect(refused.status, path).toBeGreaterThanOrEqual(400);
    }
  });

  it("R5: the owner is nobody at B", async () => {
    const { owner, naming, org, unchanged } = await createInvitation();
    const browser = owner.browser.fork(naming("b"));
    const body = { organizationId: org.id };
    const refused = await unchanged(() => browser.post("/organization/delete", body));
    expectRefused(refused, 401);
  });

  // The plugin's own unique index is over the slug alone.
  it("its unique column stays global: a slug of A is taken at B", async () => {
    const { invited, unchanged, rows } = await createInvitation();
    const { browser } = invited.b;
    const body = { name: "Other club", slug: "club" };
    const refused = await unchanged(() => browser.post("/organization/create", body));
    expect(refused.status).toBeGreaterThanOrEqual(400);
    const other = await browser.post("/organization/create", { ...body, slug: "club-b" });
    expect(other.status).toBe(200);
    expect(await rows("organization")).toBe(2);
  });

  it("goes with its tenant", async () => {
    const { instance, ids, rows } = await createInvitation();
    await instance.api.deleteTenant({ body: { tenantId: ids.a ?? "" } });
    for (const model of SCOPED) expect(await rows(model)).toBe(0);
  });
});

// What docs/organizations.md says about it: shared organizations belong to the application, and whoever has
// the invited e-mail, in whichever tenant, is invited.
describe("organization with shared models", () => {
  it("invites an e-mail in every place", async () => {
    const { invited, invitationId } = await createInvitation({ sharedModels: SCOPED });
    for (const place of PLACES) {
      const { data } = await invited[place].browser.get<Named[]>(
        "/organization/list-user-invitations",
      );
      expect(data.map(({ id }) => id)).toEqual([invitationId]);
    }
  });

  it("R5: a session of A is none at B all the same", async () => {
    const { owner, naming } = await createInvitation({ sharedModels: SCOPED });
    const answer = await owner.browser.fork(naming("b")).get("/organization/list");
    expectRefused(answer, 401, "UNAUTHORIZED");
  });
});
