import type { AuthContext, BetterAuthPlugin, GenericEndpointContext } from "better-auth";
import { BetterAuthError } from "better-auth";
import { APIError } from "better-auth/api";
import type { BetterAuthPluginDBSchema } from "better-auth/db";
import { TENANT_AUTH_ERROR_CODES } from "./error-codes";
import { bindProviderOptions } from "./oauth/options";
import type { ResolvedOptions } from "./options";
import { adoptColumnNames, confinedModels, runtimeSchema } from "./schema";
import { type BorderRules, confineAdapter, isMySQL } from "./scope/adapter";
import { bindCookieCache } from "./scope/cookies";
import { sealLinks } from "./scope/links";
import { currentScope, prepareScopes } from "./scope/scope";
import { type EnterScope, settleScope, settleScopeBy } from "./scope/settle";
import { confineStorage } from "./scope/storage";
import { undoIfTenantIsGone, wasDeleted } from "./tenants/find";

export const PLUGIN_ID = "tenant-auth";

/** What the plugin does when better-auth starts. */
export async function start(
  ctx: AuthContext,
  schema: BetterAuthPluginDBSchema,
  options: ResolvedOptions,
  enter: EnterScope,
) {
  await prepareScopes();
  adoptColumnNames(schema, ctx.options);
  const models = confinedModels(options);
  assertTables(ctx, options);
  if (isMySQL(ctx.adapter) && ctx.options.advanced?.database?.generateId === "serial") {
    (await import("./scope/own-rows")).answerOwnRows(ctx.adapter);
  }
  const rules = borderRules(ctx, models, options, enter);
  confineAdapter(ctx.adapter, rules);
  if (ctx.options.secondaryStorage) {
    ctx.options.secondaryStorage = confineStorage(ctx.options.secondaryStorage, rules);
  }
  ctx.options.plugins = pluginsAtRunTime(
    ctx,
    runtimeSchema(schema, models, () => currentScope()?.tenantId),
  );
  sealLinks(ctx);
  bindProviderOptions(ctx);
  bindCookieCache(ctx, enter);
  return {
    context: { secondaryStorage: ctx.options.secondaryStorage },
    options: {
      databaseHooks: {
        user: {
          create: {
            after: async (user: { id: string }, endpoint: GenericEndpointContext | null) => {
              if (!(await undoIfTenantIsGone(ctx, user.id))) return;
              endpoint?.responseHeaders?.delete("set-cookie");
              throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
            },
          },
        },
      },
    },
  };
}

/** Loaded when they are needed, which is hardly ever. */
const refusals = () => import("./scope/refusals");

/** A model that is to be confined and is not there is a mistake to be told of at start. */
function assertTables(ctx: AuthContext, { scopedModels }: ResolvedOptions) {
  for (const model of scopedModels) {
    const owner = ctx.options.plugins?.find(
      ({ id, schema }) => id !== PLUGIN_ID && schema?.[model],
    );
    if (!owner) throw new BetterAuthError(`tenantAuth(): scopedModels: no plugin has "${model}"`);
    const table = owner.schema?.[model]?.modelName ?? model;
    if (ctx.tables[model]?.modelName === table) continue;
    // The last plugin that mentions a model names its table.
    throw new BetterAuthError(`tenantAuth() has to stand before ${owner.id} in the plugins`);
  }
}

function borderRules(
  ctx: AuthContext,
  models: string[],
  options: ResolvedOptions,
  enter: EnterScope,
): BorderRules {
  const confinedByName = new Map(
    models.flatMap((model) => {
      const table = ctx.tables[model]?.modelName ?? model;
      // Callers may use better-auth's name, the table's, or the plural of either.
      return [model, `${model}s`, table, `${table}s`].map((name) => [name, model] as const);
    }),
  );
  return {
    confinedModel: (name) => confinedByName.get(name),
    settleScope: (adapter) => settleScope(enter, adapter),
    settleScopeBy: (session) => settleScopeBy(session as { tenantId?: string | null }, enter),
    wasDeleted: (tenantId) => wasDeleted(ctx, tenantId),
    beforeEmail: async (adapter, scope, email) => {
      if (!options.keepEmailGloballyUnique) return;
      await (await refusals()).refuseEmailTakenElsewhere(ctx, adapter, scope, email);
    },
    onRefused: async (error) => (await refusals()).explainRefusal(ctx, error),
  };
}

/**
 * The plugins in the order their hooks run in. Ours comes first, so that every other hook runs
 * inside the scope; better-auth would run the application's own `hooks.before` earlier still, so
 * that one moves behind ours. `auth.options`, which migrations and the CLI read, stays as it is.
 */
function pluginsAtRunTime(ctx: AuthContext, schema: BetterAuthPluginDBSchema): BetterAuthPlugin[] {
  const plugins = ctx.options.plugins ?? [];
  const [ours, again] = plugins.filter(({ id }) => id === PLUGIN_ID);
  if (again) throw new BetterAuthError("tenantAuth() is installed more than once");
  const others = plugins.filter((plugin) => plugin !== ours);
  const { before, ...hooks } = ctx.options.hooks ?? {};
  ctx.options.hooks = hooks;
  const applicationHook: BetterAuthPlugin[] = before
    ? [{ id: "application-hooks", hooks: { before: [{ matcher: () => true, handler: before }] } }]
    : [];
  const { before: first, after: last } = ours?.hooks ?? {};
  return [
    { ...ours, id: PLUGIN_ID, schema, hooks: { before: first } },
    ...applicationHook,
    ...others,
    // What other plugins do to an answer comes before the last word on it.
    { id: `${PLUGIN_ID}-answers`, hooks: { after: last }, onResponse: nameFailure },
  ];
}

/** better-auth answers what it did not expect (a database that is away) without a word. */
async function nameFailure(answer: Response): Promise<{ response: Response } | undefined> {
  if (answer.status < 500 || answer.body) return undefined;
  const { status, headers } = answer;
  const body = { code: "INTERNAL_SERVER_ERROR", message: "Internal Server Error" };
  return { response: Response.json(body, { status, headers }) };
}
