import type { AuthContext } from "better-auth";
import { BetterAuthError } from "better-auth";
import * as z from "zod";
import { PLUGIN_ID } from "../constants";
import { type ResolvedOptions, resolveOptions, type TenantAuthOptions } from "../options";
import type { Tenant } from "../tenants/cache";
import type { TenantInvitation } from "../tenants/events";
import type { TenantInvitationsSchema } from "./schema";

/** Who invites. */
export interface Inviter {
  id: string;
  name: string;
  email: string;
  /** Where they belong; null is the platform. */
  tenantId: string | null;
}

/** What a mail to somebody who is invited is made of. */
export interface InvitationMail {
  /** The invitation: its address is where the mail goes. */
  invitation: TenantInvitation;
  /** The link, with the token in it. Nobody but the address may get it. */
  url: string;
  /** The tenant that the link leads into. */
  tenant: Pick<Tenant, "id" | "name" | "slug">;
  /** Who invites; null is the server's own code. */
  inviter: Inviter | null;
}

/** The options of `tenantInvitations()`. A mistake in them is an error at start. */
export interface TenantInvitationsOptions {
  /** Sends the link. Runs inside the tenant: `getTenantId()` is the one that invites. */
  sendInvitationEmail: (mail: InvitationMail, request?: Request) => void | Promise<void>;
  /**
   * How long an invitation is good, in seconds.
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

export type ResolvedInvitationOptions = TenantInvitationsOptions &
  Required<Pick<TenantInvitationsOptions, "expiresIn" | "maxExpiresIn" | "maxPendingInvitations">>;

const DAY = 24 * 60 * 60;
const MAX_PENDING = 100;
const seconds = z.int().positive();
const optionsSchema = z
  .strictObject({
    sendInvitationEmail: z.custom((value) => typeof value === "function", "expected a function"),
    expiresIn: seconds,
    maxExpiresIn: seconds,
    maxPendingInvitations: z.int().positive(),
    schema: z.looseObject({}).optional(),
  })
  .refine(({ expiresIn, maxExpiresIn }) => expiresIn <= maxExpiresIn, {
    path: ["expiresIn"],
    error: "longer than maxExpiresIn",
  });

/** Fills in the defaults. A mistake shows here, at start. */
export function resolveInvitationOptions(
  options: TenantInvitationsOptions,
): ResolvedInvitationOptions {
  const {
    expiresIn = 7 * DAY,
    maxExpiresIn = Math.max(30 * DAY, expiresIn),
    maxPendingInvitations = MAX_PENDING,
  } = options ?? {};
  const resolved = { ...options, expiresIn, maxExpiresIn, maxPendingInvitations };
  const { error } = optionsSchema.safeParse(resolved);
  if (error) throw new BetterAuthError(`tenantInvitations(): ${z.prettifyError(error)}`);
  return resolved;
}

const resolvedFor = new WeakMap<object, ResolvedOptions>();

/** The options of the `tenantAuth()` beside this plugin. */
export function tenantOptions({ options: { plugins = [] } }: AuthContext): ResolvedOptions {
  const core = plugins.find(({ id }) => id === PLUGIN_ID);
  if (!core) {
    throw new BetterAuthError(
      "tenantInvitations() invites to tenants: put tenantAuth() before it in the plugins",
    );
  }
  const known = resolvedFor.get(core);
  if (known) return known;
  const resolved = resolveOptions(core.options as TenantAuthOptions | undefined);
  resolvedFor.set(core, resolved);
  return resolved;
}
