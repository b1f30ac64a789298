import { betterAuth } from "better-auth";
import { createAuthClient } from "better-auth/client";
import { admin } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { tenantAuthClient } from "../../../src/client";
import {
  INVITATION_HEADER,
  TENANT_INVITATION_ERROR_CODES,
  tenantInvitationsClient,
} from "../../../src/features/invitations/client";
import { tenantInvitations } from "../../../src/features/invitations/index";
import { tenantAuth } from "../../../src/index";
import { BASE_URL, PASSWORD } from "../../support/instance";
import { createInviting, INVITED } from "./world";

const sendInvitationEmail = () => {};

describe("start", () => {
  it("without tenantAuth(), or with a decision about its table, is refused in words that help", async () => {
    const alone = betterAuth({ plugins: [tenantInvitations({ sendInvitationEmail })] });
    await expect(alone.$context).rejects.toThrow("put tenantAuth() before it in the plugins");
    const sharing = tenantAuth({ sharedModels: ["tenantInvitation"] });
    const decided = betterAuth({ plugins: [sharing, tenantInvitations({ sendInvitationEmail })] });
    await expect(decided.$context).rejects.toThrow('"tenantInvitation" needs no decision');
  });

  it.each<[string, object | undefined]>([
    ["sendInvitationEmail", {}],
    ["sendInvitationEmail", undefined],
    ["expiresIn", { sendInvitationEmail, expiresIn: 0 }],
    ["longer than maxExpiresIn", { sendInvitationEmail, expiresIn: 9, maxExpiresIn: 3 }],
    ["expires", { sendInvitationEmail, expires: 9 }],
  ])("is refused with options that make no sense: %s, %j", (message, options) => {
    expect(() => tenantInvitations(options as never)).toThrow(message);
  });
});

const NAMES = { email: "address", tenantId: "tenant_id", pendingFor: "pending_for" };
it.each<[string, () => Parameters<typeof createInviting>[0]]>([
  [
    "the admin plugin last, and other names",
    () => ({
      arrange: (ours, [first, ...rest]) => [ours, ...rest, first ?? admin()],
      invitations: { schema: { tenantInvitation: { modelName: "invites", fields: NAMES } } },
    }),
  ],
  ["tenantAuth() last", () => ({ arrange: (ours, others) => [...others, ours] })],
  ["a cookie for each tenant", () => ({ tenant: { sessionCookies: "per-tenant" } })],
])(
  "with %s, an invited user signs up in the tenant, and has no session in others",
  async (_, options) => {
    const app = await createInviting(options());
    const { token } = await app.invite("acme", INVITED, { role: "user" });
    await app.invite("globex");
    const browser = app.browser();
    const { acme: tenantId } = app.ids;
    expect((await app.accept(token, {}, browser)).data.user).toMatchObject({ tenantId });
    expect(await app.whoIs(browser, "acme")).toMatchObject({ email: INVITED, tenantId });
    expect(await app.whoIs(browser, "globex")).toBeNull();
    expect(await app.statusOf("acme")).toEqual(["accepted"]);
    expect(await app.statusOf("globex")).toEqual(["pending"]);
  },
);

it("the server may fail to send a mail: that is logged, and the invitation can be sent again", async () => {
  let fails = true;
  const sent: string[] = [];
  const inviters: unknown[] = [];
  const app = await createInviting({
    invitations: {
      sendInvitationEmail: ({ invitation, inviter }) => {
        inviters.push(inviter);
        if (fails) throw new Error("no mail server");
        sent.push(invitation.email);
      },
    },
  });
  const { id } = await app.invite("acme");
  expect(app.logs.join()).toContain("no mail server");
  fails = false;
  await app.aMinuteLater();
  const again = await (await app.operator()).post("/tenant/invitation/resend", { id });
  expect([again.status, sent]).toEqual([200, [INVITED]]);
  expect(inviters).toMatchObject([null, { tenantId: null }]);
});

it("authClient.tenant.invitation invites, lists, sends again, opens, accepts and takes back", async () => {
  const app = await createInviting();
  const tenantId = app.ids.acme;
  const clientOf = (browser = app.browser()) =>
    createAuthClient({
      baseURL: BASE_URL,
      plugins: [tenantAuthClient(), tenantInvitationsClient()],
      fetchOptions: { customFetchImpl: browser.fetch },
    });
  const { invitation: manager } = clientOf(await app.operator()).tenant;
  const { data: sent } = await manager.create({ tenantId, email: INVITED });
  await manager.create({ tenantId, email: "other@example.com" });
  const early = await manager.resend({ id: sent?.id ?? "" });
  expect(early.error?.code).toBe(TENANT_INVITATION_ERROR_CODES.INVITATION_RECENTLY_SENT.code);
  await app.aMinuteLater();
  await manager.resend({ id: sent?.id ?? "" });
  const token = app.sent.at(-1)?.token ?? "";

  const { tenant, getSession } = clientOf();
  const { data: opened } = await tenant.invitation.get({ query: { token } });
  expect([opened?.tenant.name, opened?.email]).toEqual(["ACME", INVITED]);
  const body = { token, name: "Ada", password: PASSWORD };
  const { data: accepted } = await tenant.invitation.accept(body);
  expect(accepted?.user.email).toBe(INVITED);
  expect((await getSession()).data?.session.tenantId).toBe(tenantId);
  const { error } = await tenant.invitation.get({ query: { token } });
  expect(error?.code).toBe(TENANT_INVITATION_ERROR_CODES.INVITATION_ALREADY_ACCEPTED.code);

  const query = { tenantId, status: "pending" as const, limit: 10 };
  const { data: pending } = await manager.list({ query });
  expect(pending).toHaveLength(1);
  const { data: revoked } = await manager.revoke({ id: pending?.[0]?.id ?? "" });
  expect(revoked?.status).toBe("revoked");
  expect(INVITATION_HEADER).toBe("x-tenant-invitation");
});
