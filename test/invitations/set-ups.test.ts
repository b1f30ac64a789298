import { betterAuth } from "better-auth";
import { admin } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { tenantAuth } from "../../src/index";
import { tenantInvitations } from "../../src/invitations/index";
import { createStorage } from "../configurations/storages";
import { createDatabase } from "../support/database";
import { PASSWORD } from "../support/instance";
import { createInviting, INVITED, outcome, whoIs } from "./inviting";

const sendInvitationEmail = () => {};

describe("start", () => {
  it("without tenantAuth() is refused, in words that help", async () => {
    const auth = betterAuth({ plugins: [tenantInvitations({ sendInvitationEmail })] });
    await expect(auth.$context).rejects.toThrow("put tenantAuth() before it in the plugins");
  });

  it("is refused with options that make no sense", () => {
    expect(() => tenantInvitations({} as never)).toThrow("sendInvitationEmail");
    expect(() => tenantInvitations(undefined as never)).toThrow("sendInvitationEmail");
    expect(() => tenantInvitations({ sendInvitationEmail, expiresIn: 0 })).toThrow("expiresIn");
    expect(() => tenantInvitations({ sendInvitationEmail, expiresIn: 9, maxExpiresIn: 3 })).toThrow(
      "longer than maxExpiresIn",
    );
    expect(() => tenantInvitations({ sendInvitationEmail, expires: 9 } as never)).toThrow(
      "expires",
    );
  });

  it("needs no decision about its table, and refuses one", async () => {
    const auth = betterAuth({
      plugins: [
        tenantAuth({ sharedModels: ["tenantInvitation"] }),
        tenantInvitations({ sendInvitationEmail }),
      ],
    });
    await expect(auth.$context).rejects.toThrow('"tenantInvitation" needs no decision');
  });
});

describe.each<[string, Parameters<typeof createInviting>[0]]>([
  ["the plugins in another order", { arrange: (ours, others) => [...others, ours] }],
  [
    "the admin plugin last",
    { arrange: (ours, [first, ...rest]) => [ours, ...rest, first ?? admin()] },
  ],
  ["a cookie for each tenant", { tenant: { sessionCookies: "per-tenant" } }],
  [
    "sessions in secondary storage",
    // The role of a signed-in operator is in the storage: it would not be seen to change.
    { operator: false, auth: { secondaryStorage: createStorage({}) } },
  ],
  ["a cookie cache", { auth: { session: { cookieCache: { enabled: true } } } }],
  ["numbers as ids", { auth: { advanced: { database: { generateId: "serial" } } } }],
  [
    "other names",
    {
      invitations: {
        schema: {
          tenantInvitation: {
            modelName: "invites",
            fields: { email: "address", tenantId: "tenant_id", pendingFor: "pending_for" },
          },
        },
      },
    },
  ],
])("with %s", (_, options) => {
  it("somebody is invited, comes in, and stays in their tenant", async () => {
    const app = await createInviting(options);
    const { a, b } = app.ids;
    const { token } = await app.invite(a, INVITED, { role: "user" });
    await app.invite(b);
    const browser = app.browser();
    expect((await app.accept(token, {}, browser)).data.user).toMatchObject({ tenantId: a });
    expect(await whoIs(browser, a)).toMatchObject({ email: INVITED, tenantId: a });
    expect((await whoIs(browser, b)) ?? null).toBeNull();
    expect(await app.statusOf(a)).toEqual(["accepted"]);
    expect(await app.statusOf(b)).toEqual(["pending"]);
  });
});

describe("the server's own code", () => {
  it("invites and accepts without a request; the policy counts for whoever accepts", async () => {
    const app = await createInviting();
    const { a } = app.ids;
    await app.api.createTenantInvitation({ body: { tenantId: a, email: INVITED } });
    expect(app.mails[0]?.inviter).toBeNull();
    const token = app.mails[0]?.token ?? "";
    const body = { token, name: "Ada", password: PASSWORD };
    const { user, session } = await app.api.acceptTenantInvitation({ body });
    expect([user.tenantId, session?.tenantId]).toEqual([a, a]);
    await expect(app.api.acceptTenantInvitation({ body })).rejects.toMatchObject({
      body: { code: "INVITATION_ALREADY_ACCEPTED" },
    });
  });

  it("a mail that cannot be sent is logged, and the invitation can be sent again", async () => {
    let fails = true;
    const sent: string[] = [];
    const app = await createInviting({
      invitations: {
        sendInvitationEmail: ({ invitation }) => {
          if (fails) throw new Error("no mail server");
          sent.push(invitation.email);
        },
      },
    });
    const { id } = await app.invite(app.ids.a);
    expect(app.logs.join()).toContain("no mail server");
    fails = false;
    expect((await app.operator.post("/tenant/invitation/resend", { id })).status).toBe(200);
    expect(sent).toEqual([INVITED]);
  });
});

it("without transactions, nobody stays who came by an invitation that was revoked midway", async () => {
  const database = await createDatabase("sqlite");
  database.option.transaction = false;
  let revoke = async () => {};
  const app = await createInviting({
    database,
    auth: {
      databaseHooks: { user: { create: { before: async () => await revoke() } } },
    },
  });
  const { id, token } = await app.invite(app.ids.a);
  revoke = async () => {
    const table = database.quote("tenantInvitation");
    await database.query(`update ${table} set status = 'revoked' where id = ?`, [id]);
  };
  expect(outcome(await app.accept(token))).toEqual([404, "INVITATION_NOT_FOUND"]);
  expect(await app.users(app.ids.a)).toBe(0);
  await database.close();
});
