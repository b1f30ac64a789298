import type { AuthContext, BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import type { BetterAuthPluginDBSchema } from "better-auth/db";
import { PLUGIN_ID } from "../constants";
import { isMySQL } from "../database";
import { notStarted } from "../errors";
import type { Extension } from "../extension";
import { EXTENSION, extensionsOn, modelsOnPlugins } from "../extensions";
import type { Hooks } from "../hooks";
import { isolateAdapter, rawAdapter } from "../isolate/adapter";
import { nameCookiesPerTenant } from "../isolate/cookies";
import { withExactRows } from "../isolate/exact-rows";
import { refuseImpossibleValues } from "../isolate/impossible-values";
import { guardInternalAdapter } from "../isolate/internal-adapter";
import { sealLinks } from "../isolate/links";
import { verifyInsertedRow } from "../isolate/mysql";
import { repeatRolledBack } from "../isolate/rolled-back";
import { isolateCachedSessions } from "../isolate/sessions";
import { guardReservations } from "../isolate/single-use";
import { isolateStorage } from "../isolate/storage";
import { trackTransactions } from "../isolate/transactions";
import { prepareUniqueFields, withUniqueValues } from "../isolate/unique-values";
import { type Isolation, isolationOf, setIsolation } from "../isolation";
import { findManagementPaths } from "../management-calls";
import type { ResolvedCoreOptions } from "../options";
import { getTenantId, prepareScopes } from "../request";
import { trustOwnAddresses } from "../resolve/addresses";
import { limitTenantRoutes } from "../resolve/rewrite";
import { BASE_MODELS, refuse, runtimeSchema } from "../schema";
import { checkSetup } from "./checks";
import { pluginsAtRunTime } from "./pipeline";

/**
 * Installs the plugin when better-auth starts. At startup, only this function and the `install` of
 * extensions change better-auth's context. An `init` cannot change the final options: if one plugin
 * returns options, better-auth continues with a copy, and later plugins may add more. The options
 * are complete when better-auth assigns `context.options` at the end.
 */
export async function install(
  ctx: AuthContext,
  schema: BetterAuthPluginDBSchema,
  options: ResolvedCoreOptions,
  hooksOf: (isolation: Isolation) => Hooks,
  featuresOf: (isolation: Isolation) => Promise<Extension[]>,
) {
  // A plugin whose `init` returns all options makes better-auth list every plugin twice.
  const listed = [...new Set(ctx.options.plugins)];
  const ours = listed.filter(({ id }) => id === PLUGIN_ID);
  if (ours.length === 0) throw notStarted();
  if (ours.length > 1) refuse("it is in `plugins` more than once. Remove all but one.");
  await prepareScopes();
  if (isMySQL(ctx.adapter) && ctx.options.advanced?.database?.generateId === "serial") {
    verifyInsertedRow(ctx.adapter);
  }
  const models = isolatedModels(listed, options);
  const names = isolatedNames(ctx, models);
  const isolatedModel = (name: string) => names.get(name);
  const database = withExactRows(ctx, repeatRolledBack(rawAdapter(ctx.adapter)));
  const uniqueFields = prepareUniqueFields(ctx, options);
  const unscoped = withUniqueValues({ isolatedModel, uniqueFields }, database);
  const isolation: Isolation = {
    ctx,
    options,
    unscoped,
    database,
    transactions: trackTransactions(),
    uniqueFields,
    models,
    isolatedModel,
    managementPaths: findManagementPaths(listed),
    guards: [],
    extensions: [],
  };
  const features = await featuresOf(isolation);
  const extendBy = (onPlugins: Extension[]) => {
    isolation.extensions = [...onPlugins, ...features];
    isolation.guards = [
      refuseImpossibleValues(isolation),
      // A guard sees a result before the guards that come before it. Those of our other plugins are
      // last, so they see rows as the database has them, before a feature changes a value.
      ...[...features, ...onPlugins].flatMap(({ guards = [] }) => guards),
      guardReservations(isolation),
    ];
  };
  extendBy([]);
  isolateAdapter(ctx.adapter, isolation);
  setIsolation(ctx, isolation);
  const runtime = runtimeSchema(schema, models, () => getTenantId());
  const internalAdapterAtInit = ctx.internalAdapter;
  whenOptionsAreComplete(ctx, (complete) => {
    const added = complete.plugins ?? [];
    refuseLate(added, listed);
    extendBy(extensionsOn(isolation, added));
    isolation.managementPaths = findManagementPaths(added);
    checkSetup(isolation);
    if (isolationOf(ctx.adapter) !== isolation) {
      refuse(
        "another plugin has replaced the database adapter of the context. Put tenantAuth() after it in the plugins.",
      );
    }
    const plugins = pluginsAtRunTime(complete, runtime, hooksOf(isolation));
    sealLinks(ctx, complete);
    isolateCachedSessions(complete, isolation);
    complete.plugins = plugins;
    ctx.rateLimit.customRules = limitTenantRoutes(ctx.rateLimit.customRules);
    guardInternalAdapter(ctx, isolation);
    for (const storage of [complete.secondaryStorage, ctx.secondaryStorage]) {
      if (storage) isolateStorage(storage, isolation);
    }
    if (options.sessionCookies === "per-tenant") nameCookiesPerTenant(ctx);
    if (options.resolveTenantId) ctx.isTrustedOrigin = trustOwnAddresses(ctx);
    const { extensions } = isolation;
    for (const extension of extensions) extension.install?.(complete);
    // A plugin may keep the internal adapter that it saw in its `init`. R8 and R14 must also hold
    // for sessions that it creates with this object.
    Object.assign(internalAdapterAtInit, ctx.internalAdapter);
    for (const { check } of extensions) check?.(ctx, added);
  });
  return { options: { [OURS]: true } as BetterAuthOptions };
}

/**
 * Refuses a plugin of ours that another plugin adds in its `init`: its tables came too late to be
 * isolated.
 */
function refuseLate(added: BetterAuthPlugin[], listed: BetterAuthPlugin[]): void {
  const late = added.find((plugin) => EXTENSION in plugin && !listed.includes(plugin));
  if (!late) return;
  refuse(
    `another plugin adds ${late.id} when better-auth starts, which is too late to keep its data apart.`,
    `List ${late.id} directly in the plugins of better-auth.`,
  );
}

/**
 * Marks the options that our `init` returns. better-auth merges this mark into the complete
 * options, which no plugin sees before the end.
 */
const OURS = "better-auth-tenant";

/**
 * Calls `run` when better-auth assigns the complete options to its context. `options` is then a
 * plain property again, because better-auth copies the context's properties for each request. A
 * later plugin may also assign options, by returning its whole context. Those are not complete, and
 * lack our mark.
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

/**
 * Returns the models whose rows belong to a tenant or to the platform. Users come first, because
 * others refer to them.
 */
const isolatedModels = (plugins: BetterAuthPlugin[], { scopedModels }: ResolvedCoreOptions) => [
  ...new Set([...BASE_MODELS, ...modelsOnPlugins(plugins), ...scopedModels]),
];

/**
 * Returns the isolated models by all names that callers may use: better-auth's name, the table's
 * name, or the plural of either. A name that another model has means that model, unless
 * better-auth's adapter itself reads it as a plural.
 */
function isolatedNames({ tables, adapter }: AuthContext, models: string[]) {
  const { adapterConfig } = (adapter.options ?? {}) as { adapterConfig?: { usePlural?: boolean } };
  const keepsNames = adapterConfig !== undefined && !adapterConfig.usePlural;
  return new Map(
    models.flatMap((model) => {
      const table = tables[model]?.modelName ?? model;
      const isAnother = (name: string) =>
        keepsNames && Object.hasOwn(tables, name) && tables[name]?.modelName !== table;
      const names = [model, `${model}s`, table, `${table}s`];
      return names.filter((name) => !isAnother(name)).map((name) => [name, model] as const);
    }),
  );
}
