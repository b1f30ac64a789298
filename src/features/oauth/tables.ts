import type { BetterAuthPluginDBSchema } from "better-auth/db";
import { timestamps } from "../../core/schema";

/** The table of tenants' OAuth configs. */
export const oauthTables = () =>
  ({
    tenantOauthConfig: {
      fields: {
        tenantId: {
          type: "string",
          required: true,
          references: { model: "tenant", field: "id", onDelete: "cascade" },
        },
        providerId: { type: "string", required: true },
        clientId: { type: "string", required: true, returned: false },
        clientSecret: { type: "string", required: true, returned: false },
        options: { type: "string", required: false, returned: false },
        secretChangedAt: { type: "date", required: false },
        // JSON in a text column: a list column of Prisma cannot be null, and null differs from an
        // empty list.
        scopes: {
          type: "string",
          required: false,
          transform: {
            input: (list) => (list ? JSON.stringify(list) : list),
            output: (stored) => (typeof stored === "string" ? JSON.parse(stored) : stored),
          },
        },
        redirectURI: { type: "string", required: false },
        enabled: { type: "boolean", required: true, defaultValue: true },
        ...timestamps(),
      },
      indexes: [{ fields: ["tenantId", "providerId"], unique: true }],
    },
  }) satisfies BetterAuthPluginDBSchema;
