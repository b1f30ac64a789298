import type { AuthContext, BetterAuthPlugin } from "better-auth";
import { PLUGIN_ID } from "./constants";
import { byDomain, bySubdomain } from "./naming/by-host";
import { bySlug } from "./naming/by-slug";
import type { ResolvedOptions } from "./options";
import { assertKeysConfined, whyKeysAreScoped } from "./packages/api-key";
import { confinedModels, refuse } from "./schema";
import { assertNamesAreFree } from "./taken-names";

/**
 * Models of official plugins that need no decision, by plugin and model: somebody else's model of
 * the same name may be looked up in another way. A model belongs here only if every look-up in the
 * plugin's source starts from the id of a user, whom the border has let through, or if its rows
 * belong to nobody: keys that sign for everybody.
 * (`rateLimit` belongs to nobody either; it is better-auth's own and in no plugin's schema.)
 */
const NEED_NO_DECISION = ["two-factor.twoFactor", "jwt.jwks"];

/** Plugins, by id, that work on the platform and in no tenant. mcp() is oauth-provider as well. */
export const PLATFORM_ONLY = ["oauth-provider", "oauth-proxy"];

/** Our models, and the plugin of ours that brings each. */
const OWN_MODELS: Readonly<Record<string, string>> = {
  tenant: PLUGIN_ID,
  tenantOauthConfig: PLUGIN_ID,
  tenantInvitation: "tenant-invitations",
};

/** Those, and better-auth's own, which are always confined. */
const DECIDED = [...confinedModels({ scopedModels: [] }), ...Object.keys(OWN_MODELS)];

/**
 * Refuses to start while it is open whether the rows of some model belong to tenants (R11), while a
 * field or column that the plugin needs is taken, or if it is there twice. The error says what to write.
 */
export function assertDecided(ctx: AuthContext, options: ResolvedOptions): void {
  // Those that a plugin hands back with all options are there twice.
  const plugins = [...new Set(ctx.options.plugins)];
  const others = plugins.filter(({ id }) => id !== PLUGIN_ID);
  if (plugins.length - others.length > 1) refuse("it is installed more than once. Leave one.");
  assertResolver(options);
  assertOwnModels(plugins, others);
  assertOwnTables(ctx, options);
  assertModelsExist(others, options, "scopedModels");
  assertModelsExist(others, options, "sharedModels");
  assertModelsDecided(ctx, others, options);
  assertNotShared(ctx, others, options);
  assertGroupsAlike(others, options);
  assertKeysConfined(others);
  assertOwnCallbacks(ctx, others);
  for (const model of options.scopedModels) assertTableName(ctx, others, model);
  assertNamesAreFree(ctx, others, options);
  if (Object.keys(options.tenantRoles).length && !ctx.tables.user?.fields.role) {
    refuse("tenantRoles: users have no role. Add better-auth's admin() to the plugins.");
  }
}

/** What to write where the function itself was written, which makes a resolver and is none. */
const MAKERS = new Map<unknown, string>([
  [bySlug, "bySlug()"],
  [bySubdomain, 'bySubdomain({ baseDomain: "example.com" })'],
  [byDomain, 'byDomain({ "login.acme.com": { slug: "acme" } })'],
]);

function assertResolver({ resolveTenantId }: ResolvedOptions) {
  const call = MAKERS.get(resolveTenantId);
  if (call) refuse(`resolveTenantId is a function that makes a resolver. Call it: ${call}`);
}

/**
 * better-auth makes one model of two with the same name. A plugin may add fields to ours. One that
 * has a field of ours means another model: who writes into it would make tenants, and who lists it
 * would see them all.
 */
function assertOwnModels(plugins: BetterAuthPlugin[], others: BetterAuthPlugin[]) {
  const isAnother = (id: string, model: string, fields: object) => {
    const owner = Object.hasOwn(OWN_MODELS, model) ? OWN_MODELS[model] : id;
    if (owner === id) return false;
    const ours = plugins.find((plugin) => plugin.id === owner)?.schema?.[model]?.fields;
    return !ours || Object.keys(fields).some((field) => Object.hasOwn(ours, field));
  };
  for (const { id, schema } of others) {
    const models = Object.entries(schema ?? {});
    const [taken] = models.find(([model, { fields }]) => isAnother(id, model, fields)) ?? [];
    if (!taken) continue;
    refuse(
      `the plugin ${id} has a model "${taken}", as one of ours is called, and both would be one table.`,
      "Give it another name in that plugin.",
    );
  }
}

/** The same by the name of the table: whoever shares a model would share another one with it. */
function assertOwnTables({ tables }: AuthContext, { scopedModels, sharedModels }: ResolvedOptions) {
  const isAlike = (one: string, other: string) =>
    [scopedModels, sharedModels].some((models) => models.includes(one) && models.includes(other));
  const models = Object.keys(tables);
  const others = models.filter(
    (model) => !DECIDED.includes(model) && !scopedModels.includes(model),
  );
  for (const model of [...others, ...scopedModels]) {
    const { modelName } = tables[model] ?? {};
    const isTaken = (other: string) =>
      other !== model && tables[other]?.modelName === modelName && !isAlike(model, other);
    const taken = modelName && models.find(isTaken);
    if (!taken) continue;
    refuse(
      `the model "${model}" has the table "${modelName}", which is the one of "${taken}".`,
      "Give it a table of its own.",
    );
  }
}

function assertModelsExist(
  others: BetterAuthPlugin[],
  options: ResolvedOptions,
  option: "scopedModels" | "sharedModels",
) {
  for (const model of options[option]) {
    if (DECIDED.includes(model)) {
      refuse(`${option}: "${model}" needs no decision. Leave it out.`);
    }
    const owner = others.find(({ schema }) => schema?.[model]);
    if (!owner) refuse(`${option}: no plugin has a model "${model}"`);
    if (PLATFORM_ONLY.includes(owner.id)) {
      refuse(
        `${option}: "${model}" belongs to ${owner.id}, which works on the platform only. Leave it out.`,
      );
    }
  }
}

function assertModelsDecided(
  ctx: AuthContext,
  others: BetterAuthPlugin[],
  options: ResolvedOptions,
) {
  const { scopedModels, sharedModels } = options;
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
  refuse(
    "some models of other plugins are neither scoped nor shared:",
    ...owners,
    "A row of a scoped model belongs to the tenant that it was created in and can be seen only there; a row of a shared model can be seen from every tenant.",
    "Unless tenants are meant to share them, set this option, and run the migrations:",
    `  scopedModels: ${list([...scopedModels, ...models])},`,
    ...(sharable.length > 0
      ? [
          "For those that tenants share, set this one:",
          `  sharedModels: ${list([...sharedModels, ...sharable])},`,
        ]
      : []),
  );
}

/** Models that must not be shared, by plugin, and what would come of it. */
const SIGNS_IN = "would sign people in, or make users, in every tenant and on the platform";
const NEVER_SHARED: Readonly<Record<string, { models?: string[]; because: string }>> = {
  sso: { because: SIGNS_IN },
  scim: { because: SIGNS_IN },
  stripe: { models: ["subscription"], because: "would outlive the tenant" },
  siwe: { because: "would lock the owner of a wallet out of every other tenant" },
};

function neverShared(ctx: AuthContext, plugin: BetterAuthPlugin) {
  const { id, schema } = plugin;
  const known = Object.hasOwn(NEVER_SHARED, id) ? NEVER_SHARED[id] : undefined;
  const because = known?.because ?? whyKeysAreScoped(ctx, plugin);
  const models = because ? Object.keys(schema ?? {}) : [];
  return { because, models: models.filter((model) => known?.models?.includes(model) ?? true) };
}

function assertNotShared(
  ctx: AuthContext,
  others: BetterAuthPlugin[],
  { scopedModels, sharedModels }: ResolvedOptions,
) {
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
 * Who is a member of an organization says who reaches what it has. Members that each tenant has for
 * itself say nothing about an organization that all tenants share.
 */
function assertGroupsAlike(
  others: BetterAuthPlugin[],
  { scopedModels, sharedModels }: ResolvedOptions,
) {
  const models = Object.keys(others.find(({ id }) => id === "organization")?.schema ?? {});
  const scoped = models.filter((model) => scopedModels.includes(model));
  const shared = models.filter((model) => sharedModels.includes(model));
  if (!scoped.length || !shared.length) return;
  refuse(
    `the models of organization() belong together: ${list(scoped)} is scoped, and ${list(shared)} is shared.`,
    "Unless tenants are meant to share organizations, set this option, and run the migrations:",
    `  scopedModels: ${list([...scopedModels, ...shared])},`,
  );
}

/**
 * A code that comes back to a callback of all providers goes to the provider that the state was made
 * for. A hostile one could send people on to another tenant's provider, and would be handed the code
 * that comes back from there. The issuer in the answer (RFC 9207) does not help: a provider has the
 * issuer that its tenant has written down.
 */
function assertOwnCallbacks({ options }: AuthContext, others: BetterAuthPlugin[]) {
  const isShared = others.some(({ id, options }) => id === "sso" && options?.redirectURI?.trim());
  if (!isShared) return;
  refuse(
    "redirectURI of sso(): identity providers of different tenants cannot share a callback. Whoever runs one of them could get hold of the codes of another, and sign in as its people.",
    "Leave it out, and register at each identity provider the redirect URI that is its own:",
    `  ${options.basePath ?? "/api/auth"}/sso/callback/<providerId>`,
  );
}

/**
 * The last plugin that mentions a model names its table, and ours mentions scoped models without
 * knowing their names.
 */
function assertTableName(ctx: AuthContext, others: BetterAuthPlugin[], model: string) {
  const owner = others.findLast(({ schema }) => schema?.[model]);
  const table = owner?.schema?.[model]?.modelName || model;
  if (!owner || ctx.tables[model]?.modelName === table) return;
  refuse(
    `the table of "${model}" is called "${table}" by the plugin ${owner.id}. For that name to hold, tenantAuth() has to stand before ${owner.id} in the plugins.`,
  );
}

const list = (names: string[]) => `[${names.map((name) => JSON.stringify(name)).join(", ")}]`;
