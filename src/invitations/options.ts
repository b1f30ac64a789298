import type { AuthContext } from "better-auth";
import { type BetterAuthPluginDBSchema, mergeSchema } from "better-auth/db";
import type { InferOptionSchema } from "better-auth/types";
import * as z from "zod";
import { assertOptions, coreBeside, fn } from "../options";
import { seconds } from "../policy/schema";
import { date, optionalDate, tenantColumn, text } from "../schema";
import type { Tenant } from "../tenants/cache";
import type { TenantInvitation } from "../tenants/events";

/** The user who invites. */
export interface Inviter {
  id: string;
  name: string;
  email: string;
  /** The tenant of this user; null is the platform. */
  tenantId: string | null;
}

/** What `sendInvitationEmail` gets. */
export interface InvitationMail {
  /** The invitation. The mail goes to its address. */
  invitation: TenantInvitation;
  /** The link, with the token in it. Send it to no other address. */
  url: string;
  /** The tenant that the link leads into. */
  tenant: Pick<Tenant, "id" | "name" | "slug">;
  /** The user who invites; null if your own server code does. */
  inviter: Inviter | null;
}

/** The options of `tenantInvitations()`. A mistake in them is an error at startup. */
export interface TenantInvitationsOptions {
  /** Sends the link. Runs inside the tenant: `getTenantId()` returns the one that invites. */
  sendInvitationEmail: (mail: InvitationMail, request?: Request) => void | Promise<void>;
  /**
   * How long an invitation is valid, in seconds.
   * @default 604800 (seven days)
   */
  expiresIn?: number;
  /**
   * The longest that a single invitation may ask for, in seconds.
   * @default 2592000 (thirty days)
   */
  maxExpiresIn?: number;
  /**
   * How many pending invitations a tenant may have, and how many it may mail within an hour. Expired
   * ones are not pending, and your own server code may exceed both.
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

/** This plugin needs `tenantAuth()` beside it. */
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
  // The address while the invitation is pending, its own id afterwards: so an address has one pending
  // invitation, even if two are created at once. (A unique index takes required columns only.)
  pendingFor: { ...text },
  tokenHash: { ...text, returned: false },
  // Whether the token was sent to the address, which it then proves.
  mailed: { type: "boolean" as const, required: true },
  // When the address was last sent a mail, with this token or an earlier one.
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
