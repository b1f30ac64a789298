import type { AuthContext, BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import type { BetterAuthPluginDBSchema } from "better-auth/db";
import { PLUGIN_ID } from "../constants";
import { notStarted } from "../errors";
import type { Hooks } from "../framework";
import { findKeyStorages, sessionsOfKeys } from "../integrations/api-key";
import { isolateAdapter, rawAdapter } from "../isolation/adapter";
import { nameCookiesPerTenant } from "../isolation/cookies";
import { guardInternalAdapter } from "../isolation/internal-adapter";
import {
  type Isolation,
  isMySQL,
  isolationOf,
  type Part,
  setIsolation,
} from "../isolation/isolation";
import { sealLinks } from "../isolation/links";
import { verifyInsertedRow } from "../isolation/mysql";
import { isolateCachedSessions } from "../isolation/sessions";
import { guardReservations } from "../isolation/single-use";
import { isolateStorage } from "../isolation/storage";
import { findUniqueFields, withUniqueValues } from "../isolation/unique-values";
import { configuredOptions, noteProviders } from "../oauth/application-providers";
import { withTenantOptions } from "../oauth/provider";
import { noteAccounts } from "../oauth/tokens";
import type { ResolvedOptions } from "../options";
import { guardUsers } from "../policy/admission";
import { assertPlatformPolicy } from "../policy/input";
import { trustOwnAddresses } from "../request/addresses";
import { effectiveScope } from "../request/endpoint";
import { limitTenantRoutes } from "../request/rewrite";
import { prepareScopes } from "../request/scope";
import { signIn } from "../request/tenant-routes";
import { isolatedModels, refuse, runtimeSchema } from "../schema";
import { checkSetup } from "./checks";
import { trustMailedInvitations } from "./overrides";
import { pluginsAtRunTime } from "./pipeline";

/**
 * What the plugin does when better-auth starts, and the only place that changes better-auth's
 * context. A plugin's `init` cannot change the options for good: as soon as one plugin returns
 * options, better-auth goes on with a copy, and later plugins may bring more. Everything is there at
 * the end, when better-auth assigns `context.options`.
 */
export async function install(
  ctx: AuthContext,
  schema: BetterAuthPluginDBSchema,
  options: ResolvedOptions,
  hooksOf: (ctx: AuthContext, parts: Part[]) => Hooks,
) {
  // A plugin whose `init` returns all options makes better-auth list every plugin twice.
  const ours = [...new Set(ctx.options.plugins)].filter(({ id }) => id === PLUGIN_ID);
  if (ours.length === 0) throw notStarted();
  if (ours.length > 1) refuse("it is in `plugins` more than once. Remove all but one.");
  await prepareScopes();
  await findKeyStorages(ctx.options.plugins);
  if (isMySQL(ctx.adapter) && ctx.options.advanced?.database?.generateId === "serial") {
    verifyInsertedRow(ctx.adapter);
  }
  const names = isolatedNames(ctx, options);
  const isolatedModel = (name: string) => names.get(name);
  const stored = rawAdapter(ctx.adapter);
  const uniqueFields = findUniqueFields(ctx, options);
  const raw = withUniqueValues({ isolatedModel, uniqueFields }, stored);
  const isolation: Isolation = {
    ctx,
    options,
    raw,
    stored,
    uniqueFields,
    isolatedModel,
    guards: [],
  };
  const parts = await loadParts(isolation);
  for (const { identityProviders, directory } of parts) {
    isolation.identityProviders ??= identityProviders;
    isolation.directory ??= directory;
  }
  isolation.guards = [
    ...parts.flatMap(({ guards }) => guards),
    guardReservations(isolation),
    noteAccounts,
    guardUsers(isolation),
  ];
  isolateAdapter(ctx.adapter, isolation);
  setIsolation(ctx, isolation);
  const runtime = runtimeSchema(schema, isolatedModels(options), () => effectiveScope().tenantId);
  const early = ctx.internalAdapter;
  const providerOptions = await configuredOptions(ctx.options);
  whenOptionsAreComplete(ctx, (complete) => {
    checkSetup(ctx, options);
    if (isolationOf(ctx.adapter) !== isolation) {
      refuse(
        "another plugin has replaced the database adapter of the context. Put tenantAuth() after it in the plugins.",
      );
    }
    keepSignIn(complete);
    noteProviders(ctx, complete, providerOptions);
    assertPlatformPolicy(ctx, options.platformPolicy);
    complete.socialProviders = withTenantOptions(complete, providerOptions);
    const plugins = pluginsAtRunTime(complete, runtime, hooksOf(ctx, parts));
    sealLinks(ctx, complete);
    trustMailedInvitations(complete);
    isolateCachedSessions(complete, isolation);
    complete.plugins = plugins.map(sessionsOfKeys);
    ctx.rateLimit.customRules = limitTenantRoutes(ctx.rateLimit.customRules);
    guardInternalAdapter(ctx, isolation);
    // A plugin may keep the internal adapter that it saw in its `init`, which runs no plugin hooks:
    // neither R8 nor R14 would hold for sessions that it creates.
    Object.assign(early, ctx.internalAdapter);
    for (const storage of [complete.secondaryStorage, ctx.secondaryStorage]) {
      if (storage) isolateStorage(storage, isolation);
    }
    if (options.sessionCookies === "per-tenant") nameCookiesPerTenant(ctx);
    if (options.resolveTenantId) ctx.isTrustedOrigin = trustOwnAddresses(ctx);
    for (const { finish } of parts) finish?.();
  });
  return { options: { [OURS]: true } as BetterAuthOptions };
}

/** In the options that better-auth goes on with once our `init` is done, which no plugin sees. */
const OURS = "better-auth-tenant";

/**
 * Calls back when better-auth assigns the options to its context, which is then a plain property
 * again: better-auth copies the context's properties for each request. A later plugin may assign the
 * options as well, by returning its whole context: those are not the last, and lack our mark.
 *
 * Guarded by "better-auth assigns what all plugins have brought, after all of them".
 */
function whenOptionsAreComplete(ctx: AuthContext, run: (options: BetterAuthOptions) => void): void {
  let { options } = ctx;
  const isProperty = { configurable: true, enumerable: true };
  Object.defineProperty(ctx, "options", {
    ...isProperty,
    get: () => options,
    set: (value: BetterAuthOptions & { [OURS]?: true | undefined }) => {
      options = value;
      if (!value[OURS]) return;
      value[OURS] = undefined;
      Object.defineProperty(ctx, "options", { ...isProperty, writable: true, value });
      run(value);
    },
  });
}

const INTEGRATED =
  "expo electron stripe oauth-provider oauth-proxy oauth-popup api-key device-authorization";

/** Whole parts that few applications have. */
async function loadParts(isolation: Isolation): Promise<Part[]> {
  const installed = isolation.ctx.options.plugins ?? [];
  const has = (ids: string) => installed.some(({ id }) => ids.split(" ").includes(id));
  const parts: Part[] = [];
  if (has("sso scim")) parts.push((await import("../enterprise")).enterprise(isolation));
  if (has(INTEGRATED)) parts.push((await import("../integrations")).integrations(isolation));
  return parts;
}

/**
 * better-auth makes its sign-in endpoint for each request, and its schema is compiled each time,
 * which takes longer than everything we do there. Ours is the same endpoint, made once. A plugin
 * that brings its own sign-in keeps it.
 *
 * Guarded by "better-auth makes its sign-in without knowing anything of the instance".
 */
function keepSignIn({ plugins = [] }: BetterAuthOptions): void {
  const ours = plugins.find(({ id }) => id === PLUGIN_ID)?.endpoints as Endpoints | undefined;
  if (!ours || !Object.isExtensible(ours)) return;
  const isBrought = plugins.some(({ endpoints }) => endpoints !== ours && endpoints?.signInEmail);
  if (isBrought) withOwnSignIn.add(ours);
  if (withOwnSignIn.has(ours)) delete ours.signInEmail;
  else ours.signInEmail = signIn;
}

type Endpoints = NonNullable<BetterAuthPlugin["endpoints"]>;

/** Endpoints of ours beside which a plugin of some instance has its own sign-in. */
const withOwnSignIn = new WeakSet<Endpoints>();

/**
 * Callers may use better-auth's name of a model, the table's, or the plural of either. The name of
 * another model is that one's, unless better-auth itself reads every plural as one of these.
 */
function isolatedNames({ tables, adapter }: AuthContext, options: ResolvedOptions) {
  const { adapterConfig } = (adapter.options ?? {}) as { adapterConfig?: { usePlural?: boolean } };
  const keepsNames = adapterConfig !== undefined && !adapterConfig.usePlural;
  return new Map(
    isolatedModels(options).flatMap((model) => {
      const table = tables[model]?.modelName ?? model;
      const isAnother = (name: string) =>
        keepsNames && Object.hasOwn(tables, name) && tables[name]?.modelName !== table;
      const names = [model, `${model}s`, table, `${table}s`];
      return names.filter((name) => !isAnother(name)).map((name) => [name, model] as const);
    }),
  );
}
