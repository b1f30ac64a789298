import type { AuthContext, BetterAuthPlugin } from "better-auth";
import { PLUGIN_ID } from "../constants";
import { assertKeysIsolated, whyKeysAreScoped } from "../integrations/api-key";
import { databaseOf, isolationOf } from "../isolation/isolation";
import type { ResolvedOptions } from "../options";
import { TENANT_ID } from "../request/prefix";
import { asHostResolver, MISSING_DOMAINS } from "../request/resolvers";
import { isolatedModels, type Names, PLUGIN_MODELS, refuse } from "../schema";
import { domainsIn } from "../tenants/plugins";

/** What the checks look at. `others` are all plugins except this one. */
interface Setup {
  ctx: AuthContext;
  options: ResolvedOptions;
  plugins: BetterAuthPlugin[];
  others: BetterAuthPlugin[];
}

/** Refuses setups that are unsupported or undecided. Each message says what to write. */
export function checkSetup(ctx: AuthContext, options: ResolvedOptions): void {
  // A plugin whose `init` returns all options makes better-auth list every plugin twice.
  const plugins = [...new Set(ctx.options.plugins)];
  const others = plugins.filter(({ id }) => id !== PLUGIN_ID);
  const setup: Setup = { ctx, options, plugins, others };
  assertOwnModels(setup);
  assertOwnTables(setup);
  assertModelsExist(setup);
  assertModelsDecided(setup);
  assertNotShared(setup);
  assertNotReferenced(ctx);
  assertKeysIsolated(others);
  assertOwnCallbacks(setup);
  assertTableNames(setup);
  assertNamesAreFree(setup);
  if (Object.keys(options.tenantRoles).length && !ctx.tables.user?.fields.role) {
    refuse("tenantRoles: users have no role. Add better-auth's admin() to the plugins.");
  }
  const { readsVerified } = asHostResolver(options.resolveTenantId) ?? {};
  if (readsVerified && !domainsIn(ctx)) refuse(MISSING_DOMAINS);
  assertDatabase(ctx);
  assertUsableIds(ctx);
}

/**
 * Models of official plugins that need no decision, as `plugin.model`: the plugin looks them up by
 * the id of a user only, or their rows belong to no user (signing keys).
 */
const NEED_NO_DECISION = ["two-factor.twoFactor", "jwt.jwks"];

/** Plugins, by id, that work on the platform only. mcp() is oauth-provider as well. */
export const PLATFORM_ONLY = ["oauth-provider", "oauth-proxy", "oauth-popup", "electron"];

/** The models of this package, and which of its plugins declares them. */
const OWN_MODELS = new Map([
  ["tenant", PLUGIN_ID],
  ["tenantOauthConfig", PLUGIN_ID],
  ["tenantInvitation", "tenant-invitations"],
  ["tenantDomain", "tenant-domains"],
]);

/** Isolated without the application's decision: these, and better-auth's own. */
const DECIDED = [...isolatedModels({ scopedModels: [] }), ...OWN_MODELS.keys()];

/**
 * better-auth merges two models of one name. A plugin may add fields to ours; if it declares one of
 * our fields, it means another model, and its endpoints would list and create tenants.
 */
function assertOwnModels({ plugins, others }: Setup) {
  for (const { id, schema } of others) {
    for (const [model, { fields }] of Object.entries(schema ?? {})) {
      const owner = OWN_MODELS.get(model) ?? id;
      if (owner === id) continue;
      const ours = plugins.find((plugin) => plugin.id === owner)?.schema?.[model]?.fields ?? fields;
      if (!Object.keys(fields).some((field) => Object.hasOwn(ours, field))) continue;
      refuse(
        `the plugin ${id} has a model "${model}", which is a model of better-auth-tenant. Rename it in that plugin.`,
      );
    }
  }
}

/** Rows of a table that two models share would be isolated in one model and not in the other. */
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

function assertModelsExist({ others, options }: Setup) {
  for (const option of ["scopedModels", "sharedModels"] as const) {
    for (const model of options[option]) {
      const owner = others.find(({ schema }) => schema?.[model]);
      if (DECIDED.includes(model) || (owner && PLATFORM_ONLY.includes(owner.id))) {
        refuse(`${option}: "${model}" needs no decision. Leave it out.`);
      }
      if (!owner) refuse(`${option}: no plugin has a model "${model}"`);
    }
  }
}

/** R11: the rows of every model are isolated, or shared on purpose. */
function assertModelsDecided({ ctx, others, options: { scopedModels, sharedModels } }: Setup) {
  const known = [...DECIDED, ...scopedModels, ...sharedModels];
  const models = new Set<string>();
  const owners: string[] = [];
  for (const { id, schema } of others) {
    if (PLATFORM_ONLY.includes(id)) continue;
    const undecided = Object.keys(schema ?? {}).filter(
      (model) => !known.includes(model) && !NEED_NO_DECISION.includes(`${id}.${model}`),
    );
    for (const model of undecided) models.add(model);
    if (undecided.length > 0) owners.push(`  ${id}: ${undecided.join(", ")}`);
  }
  if (models.size === 0) return;
  const unsharable = others.flatMap((plugin) => neverShared(ctx, plugin).models);
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

const SIGNS_IN = "would sign users in, or create users, in every tenant and on the platform";

/** Models that must not be shared, by plugin: all of its models unless listed. */
const NEVER_SHARED = new Map<string, { models?: string[]; because: string }>([
  ["sso", { because: SIGNS_IN }],
  ["scim", { because: SIGNS_IN }],
  ["stripe", { models: ["subscription"], because: "would outlive the tenant" }],
  ["organization", { because: "would have members that other tenants cannot see" }],
  ["siwe", { because: "would lock the owner of a wallet out of every other tenant" }],
]);

function neverShared(ctx: AuthContext, plugin: BetterAuthPlugin) {
  const known = NEVER_SHARED.get(plugin.id);
  const because = known?.because ?? whyKeysAreScoped(ctx, plugin);
  const models = because ? Object.keys(plugin.schema ?? {}) : [];
  return { because, models: models.filter((model) => known?.models?.includes(model) ?? true) };
}

function assertNotShared({ ctx, others, options: { scopedModels, sharedModels } }: Setup) {
  for (const owner of others) {
    const { models, because } = neverShared(ctx, owner);
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
 * A foreign key has no tenant prefix: in a tenant it would match no row, or one of the platform,
 * whose deletion would delete the tenant's rows.
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
 * With one callback for all identity providers, a malicious one could send users on to another
 * tenant's provider and would receive that provider's code. The issuer in the response (RFC 9207)
 * does not help: each tenant registers the issuer itself.
 */
function assertOwnCallbacks({ ctx: { options }, others }: Setup) {
  const isShared = others.some(({ id, options }) => id === "sso" && options?.redirectURI?.trim());
  if (!isShared) return;
  refuse(
    "redirectURI of sso(): identity providers of different tenants cannot share a callback, because one could obtain the codes of another.",
    "Leave it out, and register each identity provider's own redirect URI there:",
    `  ${options.basePath ?? "/api/auth"}/sso/callback/<providerId>`,
  );
}

/** The last plugin that declares a model names its table, and ours declares scoped models unnamed. */
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
 * Fields and columns that the plugin needs and the application has already. One `tenantId` would
 * replace the other, and rows would not be isolated.
 */
function assertNamesAreFree({ ctx, others, options }: Setup) {
  const names = structuredClone({ ...options.schema }) as Names;
  const problems: string[] = [];
  const rename = (model: string, field: string, column: string) => {
    names[model] = { ...names[model], fields: { ...names[model]?.fields, [field]: column } };
  };
  for (const model of isolatedModels(options)) {
    if (PLUGIN_MODELS.includes(model)) continue;
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
  // Our columns replace better-auth's of the same field, and lose the names in its options.
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
 * A session or account in a cookie alone would stay valid after its tenant is deleted. Without a
 * database, better-auth turns `storeAccountCookie` on by itself.
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
  // SQLite and the memory adapter give the id of a deleted tenant to the next one, where cookies,
  // links and stored sessions of the deleted tenant would be valid.
  const reusesIds = adapter.id === "memory" || databaseOf(adapter) === "sqlite";
  if (reusesIds && options.advanced?.database?.generateId === "serial") {
    refuse(
      'advanced.database.generateId: "serial" is not supported here, because this database gives the id of a deleted tenant to the next one.',
      'Remove the option, or set it to "uuid".',
    );
  }
  // The id is the prefix of session tokens, in cookies and bearer tokens.
  const id = generateId({ model: "tenant" });
  if (typeof id !== "string" || TENANT_ID.test(id)) return;
  refuse(
    `advanced.database.generateId makes ${JSON.stringify(id)} for a tenant. The id of a tenant has 1 to 128 letters, digits, "_" and "-".`,
  );
}
