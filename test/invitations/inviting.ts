import type { BetterAuthPlugin } from "better-auth";
import { getTenantId, type TenantEvent, type TenantPolicy } from "../../src/index";
import { type InvitationMail, tenantInvitations } from "../../src/invitations/index";
import type { Answer, Browser } from "../support/browser";
import { createInstance, type InstanceOptions, PASSWORD } from "../support/instance";

export const INVITED = "ada@example.com";

interface SentMail extends InvitationMail {
  token: string;
  /** The tenant that the sender ran in. */
  inTenant: string | null;
}

export const tokenIn = (url: string) => new URL(url).searchParams.get("token") ?? "";

/** The plugin, and the mails that it has sent. */
export function invitationsWithMailbox(
  options: Partial<Parameters<typeof tenantInvitations>[0]> = {},
) {
  const mails: SentMail[] = [];
  const plugin = tenantInvitations({
    sendInvitationEmail: (mail) =>
      void mails.push({ ...mail, token: tokenIn(mail.url), inTenant: getTenantId() }),
    ...options,
  });
  return { mails, plugin };
}

interface InvitingOptions extends InstanceOptions {
  invitations?: Parameters<typeof invitationsWithMailbox>[0];
  /** False where nobody can sign up by themselves: the server invites. */
  operator?: false;
}

export type Inviting = Awaited<ReturnType<typeof createInviting>>;

/** An instance with invitations, two tenants that are by invitation only, and an operator. */
export async function createInviting({
  invitations,
  plugins = [],
  tenant,
  operator: hasOperator,
  ...options
}: InvitingOptions = {}) {
  const { mails, plugin } = invitationsWithMailbox(invitations);
  const events: TenantEvent[] = [];
  const instance = await createInstance({
    ...options,
    plugins: [plugin, ...plugins] as BetterAuthPlugin[],
    tenant: { onTenantEvent: (event) => void events.push(event), ...tenant },
  });
  const api = instance.api as typeof instance.api & (typeof plugin)["endpoints"];
  const inviteOnly = async (slug: string, policy: TenantPolicy = { signUp: "invited" }) => {
    const { id } = await instance.createTenant(slug);
    await setPolicy(id, policy);
    return id;
  };
  const setPolicy = (tenantId: string, policy: TenantPolicy | null) =>
    api.updateTenant({ body: { tenantId, policy } });
  const a = await inviteOnly("aa");
  const b = await inviteOnly("bb");
  const operator = hasOperator === false ? instance.browser() : (await instance.operator()).browser;

  return {
    ...instance,
    api,
    mails,
    events,
    ids: { a, b },
    operator,
    setPolicy,

    /** Invites as an operator, or as the server; the link that was mailed or returned. */
    async invite(tenantId: string, email = INVITED, more: Record<string, unknown> = {}) {
      const body = { tenantId, email, ...more };
      const invitation =
        hasOperator === false
          ? await api.createTenantInvitation({ body })
          : await inviteAs(operator, body);
      const { url } = invitation;
      const token = url ? tokenIn(url) : (mails.at(-1)?.token ?? "");
      return { ...invitation, token };
    },

    accept: (token: string, more: Record<string, unknown> = {}, browser = instance.browser()) =>
      browser.post<Accepted>("/tenant/invitation/accept", {
        token,
        name: "Ada",
        password: PASSWORD,
        ...more,
      }),

    /** How many users a tenant has, with this address. */
    users: (tenantId: string, email = INVITED) =>
      instance.rows("user", `${instance.database.quote("tenantId")} = ? and email = ?`, [
        tenantId,
        email,
      ]),

    statusOf: async (tenantId: string) =>
      (await api.listTenantInvitations({ query: { tenantId } })).map(({ status }) => status),
  };
}

async function inviteAs(browser: Browser, body: object) {
  const answer = await browser.post<{ id: string; url?: string }>(
    "/tenant/invitation/create",
    body,
  );
  if (answer.status !== 200) throw new Error(`invite: ${JSON.stringify(answer.data)}`);
  return answer.data;
}

interface Accepted {
  token: string | null;
  user: { id: string; email: string; emailVerified: boolean; role?: string; tenantId: string };
  session: { tenantId: string } | null;
}

/** Who a browser is in a tenant. */
export async function whoIs(browser: Browser, tenantId: string) {
  const { data } = await browser.get<{ user: { email: string; tenantId: string } } | null>(
    "/get-session",
    { headers: { "x-tenant-id": tenantId } },
  );
  return data?.user;
}

export const outcome = ({ status, code }: Answer<unknown>) => [status, code];
