import type { BetterAuthPluginDBSchema } from "better-auth/db";
import type { ResolvedCoreOptions } from "./core/options";
import { type coreTables, storedSchema } from "./core/schema";
import { directoryColumns } from "./features/enterprise/tables";
import { oauthTables } from "./features/oauth/tables";
import { policyColumns } from "./features/policy/tables";

type Tables = ReturnType<typeof coreTables> &
  ReturnType<typeof oauthTables> &
  ReturnType<typeof policyColumns>;

/**
 * Renames the plugin's models and fields, as in better-auth's own plugins. The tables of users,
 * sessions, accounts and verifications are renamed in better-auth's own options, those of
 * `scopedModels` in the options of their plugins.
 */
export type TenantAuthSchema = OwnNames | ScopedNames;

type OwnNames = {
  [Model in keyof Tables]?: {
    fields?: { [Field in keyof Tables[Model]["fields"]]?: string };
  } & (Model extends "tenant" | "tenantOauthConfig" ? { modelName?: string } : unknown);
};

/** Separate from `OwnNames`, so that TypeScript checks the names of the plugin's own models. */
type ScopedNames = { [scopedModel: string]: { fields?: { tenantId?: string } } };

/** Returns the tables and columns of the core and of every feature. */
export const schemaFor = (options: ResolvedCoreOptions): BetterAuthPluginDBSchema =>
  storedSchema(options, [policyColumns(), oauthTables(), directoryColumns(options.scopedModels)]);
