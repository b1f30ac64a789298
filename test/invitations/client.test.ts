import { createAuthClient } from "better-auth/client";
import { describe, expect, it } from "vitest";
import { tenantAuthClient } from "../../src/client";
import {
  INVITATION_HEADER,
  TENANT_INVITATION_ERROR_CODES,
  tenantInvitationsClient,
} from "../../src/invitations/client";
import { BASE_URL, PASSWORD } from "../support/instance";
import { createInviting, INVITED } from "./inviting";

describe("authClient.tenant.invitation", () => {
  it("invites, lists, sends again, opens, accepts and takes back", async () => {
    const app = await createInviting();
    const { a } = app.ids;
    const clientOf = (browser = app.browser()) =>
      createAuthClient({
        baseURL: BASE_URL,
        plugins: [tenantAuthClient(), tenantInvitationsClient()],
        fetchOptions: { customFetchImpl: browser.fetch },
      });
    const manager = clientOf(app.operator).tenant;
    const { data: sent } = await manager.invitation.create({ tenantId: a, email: INVITED });
    await manager.invitation.create({ tenantId: a, email: "other@example.com" });
    await manager.invitation.resend({ id: sent?.id ?? "" });
    const token = app.mails.at(-1)?.token ?? "";

    const browser = app.browser();
    const { tenant, getSession } = clientOf(browser);
    const { data: opened } = await tenant.invitation.get({ query: { token } });
    expect([opened?.tenant.name, opened?.email]).toEqual(["AA", INVITED]);
    const { data: accepted } = await tenant.invitation.accept({
      token,
      name: "Ada",
      password: PASSWORD,
    });
    expect(accepted?.user.email).toBe(INVITED);
    expect((await getSession()).data?.session.tenantId).toBe(a);
    const { error } = await tenant.invitation.get({ query: { token } });
    expect(error?.code).toBe(TENANT_INVITATION_ERROR_CODES.INVITATION_ALREADY_ACCEPTED.code);

    const { data: pending } = await manager.invitation.list({
      query: { tenantId: a, status: "pending", limit: 10 },
    });
    expect(pending).toHaveLength(1);
    const { data: revoked } = await manager.invitation.revoke({ id: pending?.[0]?.id ?? "" });
    expect(revoked?.status).toBe("revoked");
    expect(INVITATION_HEADER).toBe("x-tenant-invitation");
  });
});
