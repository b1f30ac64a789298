import type { BetterAuthPluginDBSchema } from "better-auth/db";
import { mergeSchema } from "better-auth/db";
import { tenantColumn } from "../schema";
import type { TenantInvitation } from "../tenants/events";

/** Renames the table and its columns, as in better-auth's own plugins. */
export type TenantInvitationsSchema = {
  tenantInvitation?: {
    modelName?: string;
    fields?: { [Field in keyof ReturnType<typeof fields>]?: string };
  };
};

/** A row of the table. */
export interface StoredInvitation extends Omit<TenantInvitation, "status"> {
  /** One that has expired is still pending: it can be sent again. */
  status: "pending" | "accepted" | "revoked";
  pendingFor: string;
  tokenHash: string;
  mailed: boolean;
  mailedAt?: Date | null;
}

const text = { type: "string", required: true } as const;
const optionalText = { type: "string", required: false } as const;
const date = { type: "date", required: true } as const;

const fields = () => ({
  tenantId: { ...tenantColumn },
  email: { ...text },
  role: { ...optionalText },
  status: { ...text },
  // The address while the invitation is pending, its own id afterwards: an address has one pending
  // invitation, also where two are made at once. (A unique index takes required columns only.)
  pendingFor: { ...text },
  tokenHash: { ...text, returned: false },
  // Whether the token was sent to the address, so that it proves who has it.
  mailed: { type: "boolean" as const, required: true },
  // When the address was last sent a mail, also by an earlier token.
  mailedAt: { type: "date" as const, required: false },
  inviterId: { ...optionalText },
  inviterName: { ...optionalText },
  userId: { ...optionalText },
  redirectTo: { ...optionalText },
  expiresAt: { ...date },
  acceptedAt: { type: "date" as const, required: false },
  createdAt: { ...date },
  updatedAt: { ...date },
});

export function invitationSchema(names?: TenantInvitationsSchema): BetterAuthPluginDBSchema {
  const schema: BetterAuthPluginDBSchema = {
    tenantInvitation: {
      fields: fields(),
      indexes: [{ fields: ["tenantId", "pendingFor"], unique: true }],
    },
  };
  return mergeSchema(schema, names);
}
