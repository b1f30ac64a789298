import type { AuthContext, BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import type { BetterAuthPluginDBSchema } from "better-auth/db";
import type { DBAdapter } from "better-auth/types";
import { PLUGIN_ID } from "../constants";
import { notStarted } from "../errors";
import type { OwnHooks } from "../framework";
import { findKeyStorages, sessionsOfKeys } from "../integrations/api-key";
import { isolateAdapter } from "../isolation/adapter";
import { nameCookiesPerTenant } from "../isolation/cookies";
import { explainRefusal, refuseEmailTakenElsewhere } from "../isolation/database-errors";
import {
  type Isolation,
  isIsolated,
  isMySQL,
  isolationOf,
  rawAdapter,
  setIsolation,
} from "../isolation/isolation";
import { sealLinks } from "../isolation/links";
import { verifyInsertedRow } from "../isolation/mysql";
import { isolateCachedSessions } from "../isolation/sessions";
import { isolateStorage } from "../isolation/storage";
import { configuredOptions, noteProviders } from "../oauth/application-providers";
import { useTenantProviders, withTenantOptions } from "../oauth/providers";
import type { ResolvedOptions } from "../options";
import { guardInternalAdapter, policyOf } from "../policy/enforce";
import { trustOwnAddresses } from "../request/addresses";
import { withDebugLog } from "../request/debug";
import { effectiveScope } from "../request/endpoint";
import { limitTenantRoutes } from "../request/rewrite";
import { prepareScopes } from "../request/scope";
import { signIn } from "../request/tenant-routes";
import { isolatedModels, refuse, runtimeSchema } from "../schema";
import { acceptsSession, couldBeId, hasNumericIds, isText, lookUpTenant } from "../tenants/cache";
import { checkSetup } from "./checks";
import { trustMailedInvitations } from "./overrides";
import { pluginsAtRunTime } from "./pipeline";

/**
 * What the plugin does when better-auth starts, and the one place that changes better-auth's
 * options. A plugin's `init` cannot change them for good: as soon as one plugin returns options,
 * better-auth goes on with a copy, and plugins behind this one may bring more. The only moment at
 * which everything is there is the end, when better-auth assigns `context.options`.
 */
export async function install(
  ctx: AuthContext,
  schema: BetterAuthPluginDBSchema,
  options: ResolvedOptions,
  hooks: OwnHooks,
) {
  await prepareScopes();
  await findKeyStorages(ctx.options.plugins);
  const parts = await loadParts(ctx);
  if (isMySQL(ctx.adapter) && ctx.options.advanced?.database?.generateId === "serial") {
    verifyInsertedRow(ctx.adapter);
  }
  const isolation = createBorder(ctx, options);
  const confine = (own: typeof isolation) => {
    if (!isolateAdapter(ctx.adapter, own)) {
      refuse(
        "the methods of this database adapter cannot be replaced, so it cannot be isolated. Write: database: (options) => ({ ...adapter(options) })",
      );
    }
    setIsolation(ctx, own);
  };
  confine(isolation);
  const enterpriseHooks = parts.confineEnterprise?.(isolation, options, hooks) ?? hooks;
  const packageHooks =
    parts.confinePackages?.(isolation, options, enterpriseHooks) ?? enterpriseHooks;
  const allHooks =
    ctx.logger.level === "debug" ? withDebugLog(packageHooks, options) : packageHooks;
  const runtime = runtimeSchema(schema, isolatedModels(options), () => effectiveScope().tenantId);
  const early = ctx.internalAdapter;
  const providerOptions = await configuredOptions(ctx.options);
  whenOptionsAreComplete(ctx, (complete) => {
    checkSetup(ctx, options);
    keepSignIn(complete);
    noteProviders(ctx, complete, providerOptions);
    complete.socialProviders = withTenantOptions(complete, providerOptions, options);
    const plugins = pluginsAtRunTime(complete, runtime, {
      ...allHooks,
      afterNaming: [...allHooks.afterNaming, useTenantProviders(ctx, options)],
    });
    if (!isIsolated(ctx.adapter)) {
      confine({ ...isolation, raw: rawAdapter(ctx.adapter as DBAdapter) });
    }
    change(ctx, complete, plugins.map(sessionsOfKeys), isolation);
    guardInternalAdapter(ctx, options, isolation);
    // A plugin may hold on to the one that it saw in its `init`, which runs no hooks of plugins:
    // neither R8 nor R14 would hold for the sessions that it makes.
    Object.assign(early, ctx.internalAdapter);
    const storages = [complete.secondaryStorage, ctx.secondaryStorage];
    for (const storage of storages) if (storage) isolateStorage(storage, isolation);
    if (options.sessionCookies === "per-tenant") nameCookiesPerTenant(ctx);
    if (options.resolveTenantId) ctx.isTrustedOrigin = trustOwnAddresses(ctx, options);
  });
  return { options: { [OURS]: true } as BetterAuthOptions };
}

/** In the options that better-auth goes on with once our `init` is done, which no plugin sees. */
const OURS = "better-auth-tenant";

/**
 * Calls back when better-auth assigns the options to its context, which is then a plain property
 * again: better-auth copies the context's properties for each request. A plugin behind ours may
 * assign the options as well, by handing its whole context back: those are not the last ones, and
 * lack the mark that we have given to better-auth.
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

/** In place: better-auth's internal adapter was made from this very object a line before. */
function change(
  ctx: AuthContext,
  complete: BetterAuthOptions,
  plugins: BetterAuthPlugin[],
  isolation: Isolation,
): void {
  sealLinks(ctx, complete);
  trustMailedInvitations(complete);
  isolateCachedSessions(complete, isolation);
  complete.plugins = plugins;
  ctx.rateLimit.customRules = limitTenantRoutes(ctx.rateLimit.customRules);
}

/**
 * better-auth makes its sign-in anew for each request, and its schema is compiled anew each time,
 * which takes longer than all that we do there. So ours is the same endpoint, made once. A plugin
 * that brings its own keeps it, also where instances share our plugin: of two with one name,
 * better-auth would take the one of the later plugin.
 *
 * Guarded by "better-auth makes its sign-in without knowing anything of the instance".
 */
function keepSignIn({ plugins = [] }: BetterAuthOptions): void {
  const ours = plugins.find(({ id }) => id === PLUGIN_ID)?.endpoints as Endpoints | undefined;
  if (!ours || !Object.isExtensible(ours)) return;
  const brought = plugins.some(({ endpoints }) => endpoints !== ours && endpoints?.signInEmail);
  if (brought) withOwnSignIn.add(ours);
  if (withOwnSignIn.has(ours)) delete ours.signInEmail;
  else ours.signInEmail = signIn;
}

type Endpoints = NonNullable<BetterAuthPlugin["endpoints"]>;

/** Endpoints of ours beside which a plugin of some instance has its own sign-in. */
const withOwnSignIn = new WeakSet<Endpoints>();

/**
 * Callers may use better-auth's name of a model, the table's, or the plural of either. What is the
 * name of another model is that one's, unless better-auth itself reads every plural as one of these.
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

function createBorder(ctx: AuthContext, options: ResolvedOptions): Isolation & { raw: DBAdapter } {
  const confinedByName = isolatedNames(ctx, options);
  const known = isolationOf(ctx)?.raw as DBAdapter | undefined;
  const isolation: Isolation & { raw: DBAdapter } = {
    ctx,
    options,
    raw: known ?? rawAdapter(ctx.adapter as DBAdapter),
    isolatedModel: (name: string) => confinedByName.get(name),
    tenantExists: async (...call) => (await lookUpTenant(ctx, ...call)) !== undefined,
    acceptsSession: (...call) => acceptsSession(ctx, ...call),
    beforeEmail: async (...call: Parameters<Isolation["beforeEmail"]>) => {
      if (!options.keepEmailGloballyUnique) return;
      await refuseEmailTakenElsewhere(ctx, ...call);
    },
    // Users may be from before the application has changed how ids are made.
    isPossibleId: (id: string) => (hasNumericIds(ctx) ? couldBeId(ctx, id) : isText(id)),
    onRefused: async (error: unknown) => explainRefusal(ctx, error),
    policy: policyOf(ctx, options, () => isolation),
  };
  return isolation;
}

/** Whole parts that few applications have. */
async function loadParts({ options: { plugins } }: AuthContext) {
  if (!plugins?.some(({ id }) => id === PLUGIN_ID)) throw notStarted();
  const has = (ids: string) => plugins.some(({ id }) => ids.split(" ").includes(id));
  const [enterprise, integrations] = await Promise.all([
    has("sso scim") ? import("../enterprise") : undefined,
    has("expo electron stripe oauth-provider oauth-proxy oauth-popup")
      ? import("../integrations")
      : undefined,
  ]);
  return { ...enterprise, ...integrations };
}
