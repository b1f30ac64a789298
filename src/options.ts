import * as z from "zod";
import {
  assertOptions,
  CORE_DEFAULTS,
  type CoreOptions,
  coreChecks,
  isSlugResolver,
  type ResolvedCoreOptions,
} from "./core/options";
import {
  MANAGEMENT_DEFAULTS,
  type ManagementOptions,
  managementChecks,
  type ResolvedManagementOptions,
} from "./features/management/options";
import {
  OAUTH_DEFAULTS,
  type OAuthOptions,
  oauthChecks,
  type ResolvedOAuthOptions,
} from "./features/oauth/options";
import { type PolicyOptions, policyChecks } from "./features/policy/options";
import type { TenantAuthSchema } from "./schema";

/** The options of `tenantAuth()`. Invalid options are an error at startup. */
export interface TenantAuthOptions
  extends CoreOptions,
    ManagementOptions,
    PolicyOptions,
    OAuthOptions {
  /** Other names for the plugin's models and fields. */
  schema?: TenantAuthSchema;
}

/** The options with their defaults. */
export type ResolvedOptions = ResolvedCoreOptions &
  ResolvedManagementOptions &
  PolicyOptions &
  ResolvedOAuthOptions;

const optionsSchema = z
  .strictObject({ ...coreChecks, ...managementChecks, ...policyChecks, ...oauthChecks })
  .refine(
    ({ scopedModels, sharedModels }) => !sharedModels.some((model) => scopedModels.includes(model)),
    { path: ["sharedModels"], error: "a model is either scoped or shared" },
  )
  .refine(
    ({ tenantHeader, slugHeader }) => slugHeader?.toLowerCase() !== tenantHeader.toLowerCase(),
    { path: ["slugHeader"], error: "the tenantHeader is for ids" },
  );

/** Adds the defaults. Throws at startup if an option is invalid. */
export function resolveOptions(options: TenantAuthOptions = {}): ResolvedOptions {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const resolved: ResolvedOptions = {
    ...CORE_DEFAULTS,
    ...MANAGEMENT_DEFAULTS,
    ...OAUTH_DEFAULTS,
    ...Object.fromEntries(given),
  };
  const { resolveTenantId } = resolved;
  const bySlug = isSlugResolver(resolveTenantId) ? resolveTenantId : undefined;
  const checked = { ...resolved, slugHeader: bySlug?.slugHeader };
  const data = assertOptions("tenantAuth", optionsSchema, checked);
  if (data.platformPolicy) resolved.platformPolicy = data.platformPolicy;
  if (!bySlug) return resolved;
  delete resolved.resolveTenantId;
  return { ...resolved, bySlug };
}
