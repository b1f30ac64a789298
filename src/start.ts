import type { AuthContext, BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import type { BetterAuthPluginDBSchema } from "better-auth/db";
import type { DBAdapter } from "better-auth/types";
import { confineAdapter } from "./border/adapter";
import {
  type Border,
  borderOf,
  isConfined,
  isMySQL,
  rawAdapter,
  refusals,
  setBorder,
} from "./border/border";
import { labelCachedSessions } from "./border/cached-sessions";
import { latePolicyContext, latePolicyOptions } from "./border/late-policy";
import { sealLinks, sealPluginLinks } from "./border/links";
import { readSession } from "./border/sessions";
import { PLUGIN_ID } from "./constants";
import { databaseHooks } from "./database-hooks";
import { assertDecided } from "./decided";
import {
  type BeforeHook,
  givenOf,
  type OwnHooks,
  oncePerObject,
  showAs,
  silentHook,
} from "./framework";
import { cannotConfine } from "./misuse";
import { limitStandIns } from "./naming/stand-ins";
import { lateProviderOptions, lateRedirectURIs } from "./oauth/configured";
import { lateProviders } from "./oauth/providers";
import type { ResolvedOptions } from "./options";
import { findKeyStorages, sessionsOfKeys } from "./packages/api-key";
import { loadParts } from "./parts";
import { signIn } from "./routes/sign-in";
import { pluginsAtRunTime, takeHooks } from "./run-time";
import { confinedModels, runtimeSchema } from "./schema";
import { settledScope } from "./scope/endpoint";
import { instanceOf, markInstance, noteCallers } from "./scope/instance";
import { prepareScopes } from "./scope/scope";
import { guardInternalAdapter, policyOf } from "./tenants/enforce";
import {
  couldBeId,
  hasNumericIds,
  isText,
  openSince,
  recentlySeen,
  wasDeleted,
} from "./tenants/find";

/**
 * What the plugin does when better-auth starts, and the one place that changes better-auth's
 * options. A plugin's `init` cannot change them for good: as soon as one plugin returns options,
 * better-auth goes on with a copy, and plugins behind this one may bring more. The only moment at
 * which everything is there is the end, when better-auth assigns `context.options`.
 */
export async function start(
  ctx: AuthContext,
  schema: BetterAuthPluginDBSchema,
  options: ResolvedOptions,
  hooks: OwnHooks,
) {
  await prepareScopes();
  await findKeyStorages(ctx.options.plugins);
  const parts = await loadParts(ctx, options);
  if (isMySQL(ctx.adapter) && ctx.options.advanced?.database?.generateId === "serial") {
    (await import("./border/mysql")).verifyInsertedRow(ctx.adapter);
  }
  const border = createBorder(ctx, options);
  const confine = (own: typeof border) => {
    if (!confineAdapter(ctx.adapter, own)) throw cannotConfine();
    markInstance(setBorder(ctx, own), instanceOf(ctx.adapter));
  };
  noteCallers(ctx);
  confine(border);
  const enterpriseHooks = parts.confineEnterprise?.(border, options, hooks) ?? hooks;
  const packageHooks = parts.confinePackages?.(border, options, enterpriseHooks) ?? enterpriseHooks;
  const allHooks = parts.traced?.(packageHooks, options) ?? packageHooks;
  const runtime = runtimeSchema(schema, confinedModels(options), () => settledScope()?.tenantId);
  const early = ctx.internalAdapter;
  whenOptionsAreComplete(ctx, (complete) => {
    assertDecided(ctx, options);
    keepSignIn(complete);
    const views = viewsOf(ctx, border);
    const beforeEndpoint = [...allHooks.beforeEndpoint, showWritten(complete, views)];
    const plugins = pluginsAtRunTime(complete.plugins ?? [], takeHooks(complete), runtime, {
      ...allHooks,
      beforeEndpoint,
    });
    if (!isConfined(ctx.adapter)) {
      const raw = rawAdapter(ctx.adapter as DBAdapter);
      confine({ ...border, raw: parts.sayingWhereFrom?.(raw) ?? raw });
    }
    change(ctx, complete, plugins.map(sessionsOfKeys), options, views);
    latePolicyContext(ctx, border.policy);
    guardInternalAdapter(ctx, options, border);
    // A plugin may hold on to the one that it saw in its `init`, which runs no hooks of plugins:
    // neither R8 nor R14 would hold for the sessions that it makes.
    Object.assign(early, ctx.internalAdapter);
    const storages = [complete.secondaryStorage, ctx.secondaryStorage];
    for (const storage of storages) if (storage) parts.confineStorage?.(storage, border);
    if (options.sessionCookies === "per-tenant" || complete.account?.storeAccountCookie) {
      parts.nameCookiesLate?.(ctx, options);
    }
    if (parts.trustOwnAddresses) ctx.isTrustedOrigin = parts.trustOwnAddresses(ctx, options);
  });
  const changes = { [OURS]: true, databaseHooks: databaseHooks(border, confinedModels(options)) };
  return { options: changes as Pick<BetterAuthOptions, "databaseHooks"> };
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
  options: ResolvedOptions,
  views: Views,
): void {
  sealPluginLinks(ctx, complete);
  showOptions(complete, views);
  Object.assign(complete, { plugins, socialProviders: lateProviderOptions(complete) });
  lateRedirectURIs(ctx, complete);
  ctx.rateLimit.customRules = limitStandIns(ctx.rateLimit.customRules);
  show(ctx, "socialProviders", (given: typeof ctx.socialProviders) =>
    lateProviders(given, options),
  );
}

type Views = Readonly<Record<string, (given: never) => object>>;

/** Options as they are inside the border, by their names. */
function viewsOf(ctx: AuthContext, border: Border): Views {
  const { sealed, sealedUser } = sealLinks(ctx);
  const late = latePolicyOptions(border.policy);
  return {
    user: (given) => late.user(sealedUser(given)),
    emailAndPassword: (given) => late.emailAndPassword(sealed(given)),
    emailVerification: (given) => late.emailVerification(sealed(given)),
    session: (given) => labelCachedSessions(given, border),
  };
}

/** Whoever gives them, now or at run time. */
function showOptions(options: BetterAuthOptions, views: Views): void {
  for (const [name, view] of Object.entries(views)) show(options, name, view);
}

/** What a hook writes for one request: where the base URL goes by the request, its options are a copy. */
function showWritten(complete: BetterAuthOptions, views: Views): BeforeHook {
  const isWritten = (option: object | undefined) => option && givenOf(option) === option;
  return {
    matcher: ({ context: { options } }) =>
      options !== complete &&
      Object.keys(views).some((name) => isWritten(Reflect.get(options, name))),
    handler: silentHook(async ({ context }) => showOptions(context.options, views)),
  };
}

function show<Shown extends object>(
  holder: object,
  name: string,
  as: (given: Shown) => object,
): void {
  const shown = oncePerObject(as);
  showAs(holder, name, (given) => given && shown(givenOf(given as Shown) ?? (given as Shown)));
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
function confinedNames({ tables, adapter }: AuthContext, options: ResolvedOptions) {
  const { adapterConfig } = (adapter.options ?? {}) as { adapterConfig?: { usePlural?: boolean } };
  const keepsNames = adapterConfig !== undefined && !adapterConfig.usePlural;
  return new Map(
    confinedModels(options).flatMap((model) => {
      const table = tables[model]?.modelName ?? model;
      const isAnother = (name: string) =>
        keepsNames && Object.hasOwn(tables, name) && tables[name]?.modelName !== table;
      const names = [model, `${model}s`, table, `${table}s`];
      return names.filter((name) => !isAnother(name)).map((name) => [name, model] as const);
    }),
  );
}

function createBorder(ctx: AuthContext, options: ResolvedOptions): Border & { raw: DBAdapter } {
  const confinedByName = confinedNames(ctx, options);
  const known = borderOf(ctx)?.raw as DBAdapter | undefined;
  const border: Border & { raw: DBAdapter } = {
    ctx,
    options,
    raw: known ?? rawAdapter(ctx.adapter as DBAdapter),
    confinedModel: (name: string) => confinedByName.get(name),
    tenantSince: async (...call: Parameters<Border["tenantSince"]>) =>
      (await recentlySeen(ctx, ...call))?.since,
    openSince: (...call) => openSince(ctx, ...call),
    wasDeleted: (tenantId: string) => wasDeleted(ctx, tenantId),
    beforeEmail: async (...call: Parameters<Border["beforeEmail"]>) => {
      if (!options.keepEmailGloballyUnique) return;
      await (await refusals()).refuseEmailTakenElsewhere(ctx, ...call);
    },
    // Users may be from before the application has changed how ids are made.
    couldBeId: (id: string) => (hasNumericIds(ctx) ? couldBeId(ctx, id) : isText(id)),
    onRefused: async (error: unknown) => (await refusals()).explainRefusal(ctx, error),
    readSession: (...call) => readSession(border, ...call),
    policy: policyOf(ctx, options, () => border),
  };
  return border;
}
