import type { AuthContext, BetterAuthPlugin } from "better-auth";
import { PLUGIN_ID } from "../constants";
import { databaseOf } from "../database";
import type { ModelRules } from "../extension";
import { EXTENSION, modelsOnPlugins } from "../extensions";
import { type Isolation, isolationOf } from "../isolation";
import type { ResolvedCoreOptions } from "../options";
import { TENANT_ID } from "../prefix";
import { asHostResolver, MISSING_DOMAINS } from "../resolve/resolvers";
import { BASE_MODELS, type Names, refuse } from "../schema";

/** The input of the checks. `others` are all plugins except this one. */
interface Setup {
  ctx: AuthContext;
  options: ResolvedCoreOptions;
  plugins: BetterAuthPlugin[];
  others: BetterAuthPlugin[];
  /** The rules of the extensions for models of other plugins. */
  rules: ModelRules[];
  /** The models of this package. */
  ownModels: string[];
}

/**
 * Refuses setups that are unsupported or undecided. Messages say what to write where we know it.
 */
export function checkSetup({ ctx, options, extensions }: Isolation): void {
  // A plugin whose `init` returns all options makes better-auth list every plugin twice.
  const plugins = [...new Set(ctx.options.plugins)];
  const others = plugins.filter(({ id }) => id !== PLUGIN_ID);
  const rules = extensions.flatMap(({ models }) => models ?? []);
  const own = rules.flatMap((rule) => rule.own ?? []);
  const ownModels = ["tenant", ...modelsOnPlugins(plugins), ...own];
  const setup: Setup = { ctx, options, plugins, others, rules, ownModels };
  assertOwnModels(setup);
  assertOwnTables(setup);
  assertModelsExist(setup);
  assertModelsDecided(setup);
  assertNotShared(setup);
  assertNotReferenced(ctx);
  assertTableNames(setup);
  assertNamesAreFree(setup);
  const { readsVerified } = asHostResolver(options.resolveTenantId) ?? {};
  if (readsVerified && !extensions.some(({ tenantOfHost }) => tenantOfHost))
    refuse(MISSING_DOMAINS);
  assertDatabase(ctx);
  assertUsableIds(ctx);
}

/**
 * Models of official plugins that need no decision, as `plugin.model`: their plugin looks them up
 * by the id of a user only, or their rows belong to no user (signing keys).
 */
const NEED_NO_DECISION = ["two-factor.twoFactor", "jwt.jwks"];

/** Models about which the application need not decide: better-auth's own and this package's. */
const decidedModels = ({ ownModels }: Setup) => [...BASE_MODELS, ...ownModels];

/**
 * Refuses a plugin that declares one of our fields in a model with the name of ours: it means
 * another model, but better-auth merges the two, and its endpoints would list and create tenants. A
 * plugin may add other fields to our model.
 */
function assertOwnModels({ plugins, others, ownModels }: Setup) {
  const ours = plugins.filter((plugin) => plugin.id === PLUGIN_ID || EXTENSION in plugin);
  for (const { id, schema } of others.filter((plugin) => !ours.includes(plugin))) {
    for (const [model, { fields }] of Object.entries(schema ?? {})) {
      if (!ownModels.includes(model)) continue;
      const own = ours.flatMap((plugin) => Object.keys(plugin.schema?.[model]?.fields ?? {}));
      if (!Object.keys(fields).some((field) => own.includes(field))) continue;
      refuse(
        `the plugin ${id} has a model "${model}", which is a model of better-auth-tenant. Rename it in that plugin.`,
      );
    }
  }
}

/**
 * Refuses two models with one table: its rows would be isolated in one model and not in the other.
 */
function assertOwnTables({ ctx: { tables } }: Setup) {
  const owners = new Map<string, string>();
  for (const [model, { modelName }] of Object.entries(tables)) {
    const owner = owners.get(modelName);
    if (owner !== undefined) {
      refuse(
        `the model "${model}" has the table "${modelName}" of the model "${owner}". Give it a table of its own.`,
      );
    }
    owners.set(modelName, model);
  }
}

const isPlatformOnly = ({ rules }: Setup, id: string) =>
  rules.some(({ platformOnly = [] }) => platformOnly.includes(id));

function assertModelsExist(setup: Setup) {
  const { others, options } = setup;
  for (const option of ["scopedModels", "sharedModels"] as const) {
    for (const model of options[option]) {
      const owner = others.find(({ schema }) => schema?.[model]);
      if (decidedModels(setup).includes(model) || (owner && isPlatformOnly(setup, owner.id))) {
        refuse(`${option}: "${model}" needs no decision. Leave it out.`);
      }
      if (!owner) refuse(`${option}: no plugin has a model "${model}"`);
    }
  }
}

/** R11: refuses models of other plugins that are neither isolated nor shared on purpose. */
function assertModelsDecided(setup: Setup) {
  const { others, options } = setup;
  const { scopedModels, sharedModels } = options;
  const known = [...decidedModels(setup), ...scopedModels, ...sharedModels];
  const models = new Set<string>();
  const owners: string[] = [];
  for (const { id, schema } of others) {
    if (isPlatformOnly(setup, id)) continue;
    const undecided = Object.keys(schema ?? {}).filter(
      (model) => !known.includes(model) && !NEED_NO_DECISION.includes(`${id}.${model}`),
    );
    for (const model of undecided) models.add(model);
    if (undecided.length > 0) owners.push(`  ${id}: ${undecided.join(", ")}`);
  }
  if (models.size === 0) return;
  const unsharable = others.flatMap((plugin) => neverShared(setup, plugin).models);
  const sharable = [...models].filter((model) => !unsharable.includes(model));
  const sharing = [
    "For models that tenants share, set this one:",
    `  sharedModels: ${list([...sharedModels, ...sharable])},`,
  ];
  refuse(
    "some models of other plugins are neither scoped nor shared:",
    ...owners,
    "A row of a scoped model belongs to the tenant that it was created in and is visible only there; a row of a shared model is visible in every tenant.",
    "Unless tenants are meant to share them, set this option, and run the migrations:",
    `  scopedModels: ${list([...scopedModels, ...models])},`,
    ...(sharable.length > 0 ? sharing : []),
  );
}

/** Models that must not be shared, by plugin. Without `models`, all models of the plugin. */
const NEVER_SHARED = new Map<string, { models?: string[]; because: string }>([
  ["organization", { because: "would have members that other tenants cannot see" }],
  ["siwe", { because: "would lock the owner of a wallet out of every other tenant" }],
]);

function neverShared({ ctx, rules }: Setup, plugin: BetterAuthPlugin) {
  const ofExtension = rules.map((rule) => rule.neverShared?.[plugin.id]).find(Boolean);
  const known = NEVER_SHARED.get(plugin.id) ?? ofExtension;
  const whyScoped = () => rules.map((rule) => rule.whyScoped?.(ctx, plugin)).find(Boolean);
  const because = known?.because ?? whyScoped();
  const models = because ? Object.keys(plugin.schema ?? {}) : [];
  return { because, models: models.filter((model) => known?.models?.includes(model) ?? true) };
}

function assertNotShared(setup: Setup) {
  const { others, options } = setup;
  const { scopedModels, sharedModels } = options;
  for (const owner of others) {
    const { models, because } = neverShared(setup, owner);
    const shared = sharedModels.filter((model) => models.includes(model));
    if (shared.length === 0) continue;
    refuse(
      `sharedModels: ${list(shared)} cannot be shared. What one tenant stores there ${because}.`,
      "Set this option instead, and run the migrations:",
      `  scopedModels: ${list([...scopedModels, ...shared])},`,
    );
  }
}

/**
 * Refuses a foreign key to a field that is unique per tenant. The foreign key has no tenant prefix:
 * it would match no row, or a row of the platform, whose deletion would delete the tenant's rows.
 */
function assertNotReferenced(ctx: AuthContext) {
  const { isolatedModel, uniqueFields } = isolationOf(ctx) ?? {};
  const fields = Object.values(ctx.tables).flatMap((table) => Object.values(table.fields));
  for (const { references: to } of fields) {
    const model = to && isolatedModel?.(to.model);
    const name = model && uniqueFields?.get(model)?.get(to.field)?.name;
    if (!name) continue;
    refuse(
      `the values of ${model}.${name} cannot be unique per tenant, because a foreign key references the field.`,
      "Set this option:",
      `  globallyUnique: { ${model}: ["${name}"] },`,
    );
  }
}

/**
 * Refuses an order of plugins in which a scoped model loses the name of its table. The last plugin
 * that declares a model names its table, and this plugin declares scoped models without a name.
 */
function assertTableNames({ ctx: { tables }, others, options: { scopedModels } }: Setup) {
  for (const model of scopedModels) {
    const owner = others.findLast(({ schema }) => schema?.[model]);
    const table = owner?.schema?.[model]?.modelName || model;
    if (!owner || tables[model]?.modelName === table) continue;
    refuse(
      `the table of "${model}" is called "${table}" by the plugin ${owner.id}. Put tenantAuth() before ${owner.id} in the plugins.`,
    );
  }
}

/**
 * Refuses fields and columns of the application that have names of ours. One `tenantId` would
 * replace the other, and rows would not be isolated.
 */
function assertNamesAreFree({ ctx, others, options, ownModels }: Setup) {
  const names = structuredClone({ ...options.schema }) as Names;
  const problems: string[] = [];
  const rename = (model: string, field: string, column: string) => {
    names[model] = { ...names[model], fields: { ...names[model]?.fields, [field]: column } };
  };
  for (const model of isolationOf(ctx)?.models ?? []) {
    if (ownModels.includes(model)) continue;
    const ours = names[model]?.fields?.tenantId ?? "tenantId";
    const isOurs = (column: string) => column.toLowerCase() === ours.toLowerCase();
    const [holder] = Object.entries(ctx.tables[model]?.fields ?? {}).find(
      ([name, { fieldName }]) => name !== "tenantId" && isOurs(fieldName || name),
    ) ?? [undefined];
    const own = [
      ctx.options[model as "user"]?.additionalFields?.tenantId,
      ...others.map(({ schema }) => schema?.[model]?.fields.tenantId),
    ].find(Boolean);
    const column = own?.fieldName || "tenantId";
    if (holder) problems.push(`  the column "${ours}" of ${model} belongs to "${holder}"`);
    if (own) {
      problems.push(
        `  ${model} has a field "tenantId" of its own. Rename it and keep its column: appTenantId: { ..., fieldName: "${column}" }`,
      );
    }
    if (holder || (own && isOurs(column))) rename(model, "tenantId", "authTenantId");
  }
  // Our definitions of these columns replace better-auth's, and lose the names from its options.
  const { user, account } = ctx.options;
  const email = options.keepEmailGloballyUnique ? undefined : user?.fields?.email;
  for (const [model, field, column] of [
    ["user", "email", email],
    ["account", "accountId", account?.fields?.accountId],
  ] as const) {
    if (!column || column === (names[model]?.fields?.[field] ?? field)) continue;
    problems.push(`  ${model}.fields.${field} of better-auth's options is "${column}"`);
    rename(model, field, column);
  }
  if (problems.length === 0) return;
  const schema = JSON.stringify(names);
  const isRenamed = schema !== JSON.stringify(options.schema ?? {});
  refuse(
    "some names in the database are taken or renamed:",
    ...problems,
    ...(isRenamed ? ["Set this option of tenantAuth():", `  schema: ${schema},`] : []),
  );
}

const list = (names: string[]) => `[${names.map((name) => JSON.stringify(name)).join(", ")}]`;

/**
 * Requires a database. A session or account that is only in a cookie would stay valid after its
 * tenant is deleted. Without a database, better-auth turns on `storeAccountCookie`.
 */
function assertDatabase({ options: { database, account } }: AuthContext): void {
  if (!database) refuse("there is no database. Set the option `database` of betterAuth().");
  if (!account?.storeAccountCookie) return;
  refuse(
    "account.storeAccountCookie is not supported, because the cookie is tied to neither a user nor a tenant.",
    "Remove the option. Accounts are in the database.",
  );
}

function assertUsableIds({ adapter, options, generateId }: AuthContext): void {
  // SQLite and the memory adapter may give the id of a deleted tenant to the next one, where
  // cookies, links and stored sessions of the deleted tenant would be valid.
  const reusesIds = adapter.id === "memory" || databaseOf(adapter) === "sqlite";
  if (reusesIds && options.advanced?.database?.generateId === "serial") {
    refuse(
      'advanced.database.generateId: "serial" is not supported here, because this database gives the id of a deleted tenant to the next one.',
      'Remove the option, or set it to "uuid".',
    );
  }
  // The id is the prefix of session tokens, in cookies and bearer tokens, so few characters may
  // occur.
  const id = generateId({ model: "tenant" });
  if (typeof id !== "string" || TENANT_ID.test(id)) return;
  refuse(
    `advanced.database.generateId makes ${JSON.stringify(id)} for a tenant. The id of a tenant has 1 to 128 letters, digits, "_" and "-".`,
  );
}
