import { tenantInvitations } from "../../../src/features/invitations/index";
import type { InvitationMail } from "../../../src/features/invitations/options";
import { getTenantId, type TenantEvent, type TenantPolicy } from "../../../src/index";
import type { Browser } from "../../support/browser";
import { PASSWORD } from "../../support/instance";
import {
  createWorld,
  queryOf,
  shareMade,
  type Where,
  type WorldOptions,
} from "../../support/world";

export const INVITED = "ada@example.com";
const ADA = { name: "Ada", password: PASSWORD };

interface SentMail extends InvitationMail {
  token: string;
  /** The tenant that the sender ran in. */
  inTenant: string | null;
}

type Options = Parameters<typeof tenantInvitations>[0];

/** The plugin, and the invitations that it has mailed. */
export function invitationsWithMailbox(options: Partial<Options> = {}) {
  const sent: SentMail[] = [];
  const plugin = tenantInvitations({
    sendInvitationEmail: (mail) =>
      void sent.push({ ...mail, token: tokenIn(mail.url), inTenant: getTenantId() }),
    ...options,
  });
  return { sent, plugin };
}

export const tokenIn = (url: string) => queryOf(url).token ?? "";

interface InvitingOptions extends WorldOptions {
  invitations?: Partial<Options>;
}

export type Inviting = Awaited<ReturnType<typeof createInviting>>;

interface Accepted {
  token: string | null;
  user: { id: string; email: string; emailVerified: boolean; role?: string; tenantId: string };
  session: { tenantId: string } | null;
}

/** A world with invitations, where both tenants are by invitation only. */
export async function createInviting(options: InvitingOptions = {}) {
  const { invitations, plugins = [], tenant, ...rest } = options;
  const { sent, plugin } = invitationsWithMailbox(invitations);
  const events: TenantEvent[] = [];
  const world = await createWorld({
    ...rest,
    plugins: (send) => [plugin, ...(typeof plugins === "function" ? plugins(send) : plugins)],
    tenant: { onTenantEvent: (event) => void events.push(event), ...tenant },
  });
  const api = world.api as typeof world.api & (typeof plugin)["endpoints"];
  const setPolicy = (where: Where, policy: TenantPolicy | null) => world.change(where, { policy });
  for (const place of ["acme", "globex"]) await setPolicy(place, { signUp: "invited" });

  const list = (where: Where) =>
    api.listTenantInvitations({ query: { tenantId: world.idOf(where) ?? "", limit: 1000 } });

  /** Invites as the server does; the token was mailed or returned. */
  async function invite(where: Where, email = INVITED, more: Record<string, unknown> = {}) {
    const body = { tenantId: world.idOf(where) ?? "", email, ...more };
    const invitation = await api.createTenantInvitation({ body });
    const { url } = invitation;
    return { ...invitation, token: url ? tokenIn(url) : (sent.at(-1)?.token ?? "") };
  }

  const accept = (token: unknown, more: object = {}, browser: Browser = world.browser()) =>
    browser.post<Accepted>("/tenant/invitation/accept", { ...ADA, token, ...more });

  return {
    ...world,
    api,
    sent,
    events,
    setPolicy,
    invite,
    accept,
    list,
    open: (token: string, browser = world.browser()) =>
      browser.get<{ emailAndPassword: object }>("/tenant/invitation/get", { query: { token } }),
    statusOf: async (where: Where) => (await list(where)).map(({ status }) => status),
    /** How many users a place has, with this address. */
    users: async (where: Where, email = INVITED) =>
      (await world.rowsIn(where, "user")).filter((user) => user.email === email).length,

    /** The owner of an address has verified it, everywhere. */
    verify: (email: string) => world.write("user", { emailVerified: true }, { email }),

    /** Every address can be sent a mail again. */
    aMinuteLater: () => world.write("tenantInvitation", { mailedAt: null }),

    /** An invitation has expired. */
    expire(id: string) {
      const expiresAt = new Date(Date.now() - 1000).toISOString();
      return world.write("tenantInvitation", { expiresAt }, { id });
    },

    /** A tenant of a test's own, by invitation only. */
    async home() {
      const { id } = await world.createTenant();
      await setPolicy(id, { signUp: "invited" });
      return id;
    },

    /** Somebody who has come with a role. */
    async member(where: Where, role: string) {
      const email = `${crypto.randomUUID()}@example.com`;
      const { token } = await invite(where, email, { role, send: false });
      const browser = world.browser();
      const { data } = await accept(token, {}, browser);
      return Object.assign(browser, { id: data.user.id });
    },
  };
}

/** One of them for all tests of a file. */
export const shareInviting = (options: InvitingOptions = {}): Inviting =>
  shareMade((database) => createInviting({ ...options, database }));
