import type { AuthContext } from "better-auth";
import { type BetterAuthPluginDBSchema, mergeSchema } from "better-auth/db";
import type { InferOptionSchema } from "better-auth/types";
import * as z from "zod";
import { assertOptions, coreBeside, fn } from "../../core/options";
import { date, optionalDate, tenantColumn, text } from "../../core/schema";
import type { TenantInvitation } from "../management/events";
import type { Tenant } from "../management/tenant";
import { seconds } from "../policy/schema";

/** The user who invites. */
export interface Inviter {
  id: string;
  name: string;
  email: string;
  /** The tenant of this user; null is the platform. */
  tenantId: string | null;
}

/** The argument of `sendInvitationEmail`. */
export interface InvitationMail {
  /** The invitation. Send the mail to its `email`. */
  invitation: TenantInvitation;
  /** The link, with the token in it. Send it to no other address. */
  url: string;
  /** The tenant that the link leads into. */
  tenant: Pick<Tenant, "id" | "name" | "slug">;
  /** The user who invites. Null for your own server code, and for callers without a session. */
  inviter: Inviter | null;
}

/** The options of `tenantInvitations()`. Invalid options are an error at startup. */
export interface TenantInvitationsOptions {
  /** Mails the link. Runs inside the tenant that invites, so `getTenantId()` returns its id. */
  sendInvitationEmail: (mail: InvitationMail, request?: Request) => void | Promise<void>;
  /**
   * How long an invitation is valid, in seconds.
   * @default 604800 (seven days)
   */
  expiresIn?: number;
  /**
   * The longest `expiresIn` that a call may set for one invitation, in seconds.
   * @default 2592000 (thirty days)
   */
  maxExpiresIn?: number;
  /**
   * How many pending invitations a tenant may have, and how many it may mail within an hour.
   * Expired invitations do not count as pending. Your own server code may exceed both limits.
   * @default 100
   */
  maxPendingInvitations?: number;
  /** Other names for the table and its columns. */
  schema?: TenantInvitationsSchema;
}

export type ResolvedInvitationOptions = ReturnType<typeof resolveInvitationOptions>;

const NAME = "tenantInvitations";
const DAY = 24 * 60 * 60;
const optionsSchema = z
  .strictObject({
    sendInvitationEmail: fn,
    expiresIn: seconds({}),
    maxExpiresIn: seconds({}),
    maxPendingInvitations: z.int().positive(),
    schema: z.looseObject({}).optional(),
  })
  .refine(({ expiresIn, maxExpiresIn }) => expiresIn <= maxExpiresIn, {
    path: ["expiresIn"],
    error: "longer than maxExpiresIn",
  });

export function resolveInvitationOptions(options: TenantInvitationsOptions) {
  const {
    expiresIn = 7 * DAY,
    maxExpiresIn = Math.max(30 * DAY, expiresIn),
    maxPendingInvitations = 100,
  } = options ?? {};
  const resolved = { ...options, expiresIn, maxExpiresIn, maxPendingInvitations };
  assertOptions(NAME, optionsSchema, resolved);
  return resolved;
}

/** Refuses a setup without `tenantAuth()` before this plugin. */
export const assertSetup = (ctx: AuthContext) => void coreBeside(NAME, ctx);

/** Renames the table and its columns, as in better-auth's own plugins. */
export type TenantInvitationsSchema = InferOptionSchema<{
  tenantInvitation: { fields: ReturnType<typeof fields> };
}>;

export interface StoredInvitation extends Omit<TenantInvitation, "status"> {
  /** An expired invitation is still pending: it can be sent again. */
  status: "pending" | "accepted" | "revoked";
  pendingFor: string;
  tokenHash: string;
  mailed: boolean;
  mailedAt?: Date | null;
}

const optionalText = { type: "string", required: false } as const;

const fields = () => ({
  tenantId: { ...tenantColumn },
  email: { ...text },
  role: { ...optionalText },
  status: { ...text },
  // The address while the invitation is pending, afterwards the id of the row. The unique index
  // then allows one pending invitation for an address. (Unique indexes need required columns.)
  pendingFor: { ...text },
  tokenHash: { ...text, returned: false },
  // Whether the token was mailed to the address. A mailed token proves the address.
  mailed: { type: "boolean" as const, required: true },
  // When the plugin last mailed the address, with this token or an earlier one.
  mailedAt: { ...optionalDate },
  inviterId: { ...optionalText },
  inviterName: { ...optionalText },
  userId: { ...optionalText },
  redirectTo: { ...optionalText },
  expiresAt: { ...date },
  acceptedAt: { ...optionalDate },
  createdAt: { ...date },
  updatedAt: { ...date },
});

export function invitationSchema(names?: TenantInvitationsSchema): BetterAuthPluginDBSchema {
  const index = { fields: ["tenantId", "pendingFor"], unique: true } as const;
  return mergeSchema({ tenantInvitation: { fields: fields(), indexes: [index] } }, names);
}
