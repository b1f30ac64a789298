import type { AuthContext } from "better-auth";
import { APIError } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import {
  clauses,
  type Guard,
  type GuardedCall,
  type NextGuard,
  type Row,
} from "../../core/database";
import { currentEndpoint } from "../../core/endpoint";
import { tenantError } from "../../core/errors";
import { serviceOf } from "../../core/extensions";
import { type Isolation, isolationOf, unscopedAdapter } from "../../core/isolation";
import { getTenantId } from "../../core/request";
import { PLATFORM } from "../../core/schema";
import { methodOf } from "../../core/sign-in-endpoints";
import { isText, parseJSON } from "../../core/utils";
import { applicationProviders } from "../oauth/application-providers";
import type { Rotated } from "../oauth/config-store";
import { rotateAll } from "../oauth/config-store";
import { isInDomains } from "../policy/email-domains";
import { DOMAIN } from "../policy/schema";
import { enterpriseRequest } from "./request";
import type { IdentityProviders } from "./services";
import { decryptConfigs, encryptConfigs, isUpToDate, withoutSecrets } from "./sso-secrets";

/*
 * The rows of identity providers. Each row belongs to its tenant. Its secrets are stored encrypted
 * and never returned. A lookup finds only the exact id: MySQL finds "corp" for "CORP", "cörp" and
 * "corp " too, but better-auth treats these as different ids.
 */

export const SSO_PROVIDER = "ssoProvider";

const WRITES = ["/sso/register", "/sso/update-provider"];

export const writesProvider = ({ path }: { path?: string | undefined }) =>
  WRITES.includes(path ?? "");

export function identityProvidersOf(isolation: Isolation): IdentityProviders {
  const { ctx } = isolation;
  const offered = (tenantId: string) => offeredProviders(isolation, tenantId);
  return {
    offered,
    usable: async (tenantId) =>
      new Set([...(await offered(tenantId)).map(({ id }) => id), ...sharedProviderIds(ctx)]),
    vouchesFor: (email) => methodOf(currentEndpoint()) === "sso" && isVouched(email),
    areShared: () => sharedProviderIds(ctx).length > 0,
    rotateSecrets: () => rotateProviders(isolation),
  };
}

/**
 * better-auth marks a used SAML assertion by a verification, so that the assertion works only once.
 * If all tenants share its provider, stores this mark on the platform, where it counts for all
 * tenants. Otherwise, an attacker could use the assertion once in each tenant.
 */
export const shareMarks = ({ ctx }: Isolation): Guard => ({
  models: ["verification"],
  methods: ["create"],
  async run({ call }, next) {
    const { assertionId, providerId } = Object(parseJSON(call.data?.value));
    const isShared = assertionId !== undefined && sharedProviderIds(ctx).includes(providerId);
    return next(isShared ? { ...call, isSharedByTenants: true } : call);
  },
});

/**
 * Returns whether an email is in a verified domain of the identity provider that the request comes
 * from. Call this after better-auth has read the provider.
 */
export function isVouched(email: unknown): boolean {
  const { providerId } = currentEndpoint()?.params ?? {};
  const { readProviders } = enterpriseRequest.get();
  const provider = readProviders.findLast((row) => row.providerId === providerId);
  return Boolean(provider?.domainVerified) && isInDomains(plainDomains(provider?.domain), email);
}

/** Returns a tenant's providers that users can sign in with, in a stable order. */
async function offeredProviders(isolation: Isolation, tenantId: string) {
  const rows = await (await unscopedAdapter(isolation)).findMany<Row>({
    model: SSO_PROVIDER,
    where: clauses({ tenantId }),
    sortBy: { field: "providerId", direction: "asc" },
  });
  const { ctx } = isolation;
  const read = await Promise.all(rows.map((row) => withTenantDomains(ctx, row, tenantId)));
  const usable = read.filter(({ domainVerified }) => domainVerified || !mustVerify(ctx));
  return usable.map(({ providerId }) => ({ id: String(providerId) }));
}

/** Returns whether better-auth requires verified domains: the column exists only then. */
const mustVerify = ({ tables }: AuthContext) =>
  tables[SSO_PROVIDER]?.fields.domainVerified !== undefined;

/**
 * Marks a provider as verified if its tenant verified all its domains with tenantDomains(). Ignores
 * a verification by better-auth if the provider's id makes it unsafe (see `isOneLabel`).
 */
async function withTenantDomains(ctx: AuthContext, stored: Row, tenantId = getTenantId()) {
  const isProven = !stored.domainVerified || isOneLabel(stored.providerId);
  const row = isProven ? stored : { ...stored, domainVerified: false };
  const domains = serviceOf(isolationOf(ctx), "domains");
  if (!domains || !tenantId || row.domainVerified || !row.domain || !mustVerify(ctx)) return row;
  const names = splitDomains(row.domain);
  const verified = await domains.verifiedBy(ctx, tenantId);
  const isVerified = names.every((name) => verified.includes(name.toLowerCase()));
  return names.length > 0 && isVerified ? { ...row, domainVerified: true } : row;
}

/**
 * Returns whether a provider id is one DNS label. better-auth proves `co.uk` by a record at
 * `_better-auth-token-<id>.co.uk`. With the id `okta.evil`, that record is in the zone of
 * `evil.co.uk`, whose owner would prove `co.uk`. International names have other dots as well, so
 * only plain letters are accepted.
 */
export const isOneLabel = (providerId: unknown) => /^[\w-]+$/.test(String(providerId));

/** Returns the application's own providers, which all tenants share. */
export const sharedProviders = ({ options: { plugins } }: AuthContext): { providerId: string }[] =>
  plugins?.find(({ id }) => id === "sso")?.options?.defaultSSO ?? [];

const sharedProviderIds = (ctx: AuthContext) =>
  sharedProviders(ctx).map(({ providerId }) => providerId);

type StoredProvider = Row & { id: string; tenantId: string; providerId: string };

const rotateProviders = ({ ctx, unscoped }: Isolation): Promise<Rotated> =>
  rotateAll<StoredProvider>(ctx, {
    adapter: unscoped,
    model: SSO_PROVIDER,
    async anew(row) {
      if (await isUpToDate(ctx, row)) return "upToDate";
      const clear = await decryptConfigs(ctx, row).catch(() => null);
      if (!clear) return "unreadable";
      const { oidcConfig, samlConfig } = await encryptConfigs(ctx, clear);
      return { oidcConfig, samlConfig };
    },
  });

/** Drops rows with another provider id than the query asks for. */
export const guardLookups: Guard = {
  models: [SSO_PROVIDER, "account"],
  async run({ method, call }, next) {
    const { where = [] } = call;
    // PostgreSQL throws on text that it cannot store, such as NUL. No row has such a value, so the
    // lookup finds nothing.
    const isImpossible = where.some(({ value }) => typeof value === "string" && !isText(value));
    if (isImpossible && method === "findMany") return [];
    if (isImpossible && method === "findOne") return null;
    const wanted = where.find(
      ({ field, operator = "eq", connector = "AND" }) =>
        field === "providerId" && operator === "eq" && connector === "AND",
    )?.value;
    const found = await next(call);
    if (wanted === undefined) return found;
    // If the query did not select the id, the row cannot be checked.
    const isWanted = (row: unknown) => ((row as Row | null)?.providerId ?? wanted) === wanted;
    if (Array.isArray(found)) return found.filter(isWanted);
    return isWanted(found) ? found : null;
  },
};

/** Checks what is stored in a provider's row. Encrypts its secrets, and decrypts them on read. */
export const guardProviders = ({ ctx }: Isolation): Guard => ({
  models: [SSO_PROVIDER],
  async run(guarded, next) {
    const { method, call } = guarded;
    const { data, update } = call;
    assertStorable({ ...data, ...update });
    if (method === "create") return create(ctx, guarded, next);
    const encrypted = update && { update: await encryptConfigs(ctx, update) };
    const found = await next({ ...call, ...encrypted });
    return Array.isArray(found)
      ? Promise.all(found.map((row: Row) => asRead(ctx, row)))
      : asRead(ctx, found);
  },
});

/** Prepares a result for better-auth: a row, null, or a number of rows. */
async function asRead(ctx: AuthContext, found: unknown): Promise<unknown> {
  if (typeof found !== "object" || found === null) return found;
  const { manager, readProviders } = enterpriseRequest.get();
  const stored = await decryptConfigs(ctx, found as Row, manager !== undefined);
  const row = await withTenantDomains(ctx, stored);
  const { providerId, domain, domainVerified } = row;
  readProviders.push({ providerId, domain, domainVerified });
  // better-auth shows a provider only to the user who registered it. Here all managers of a tenant
  // share it, so each reads it as registered by themselves.
  return manager ? { ...row, userId: manager.userId } : row;
}

async function create(ctx: AuthContext, { unscoped, call }: GuardedCall, next: NextGuard) {
  assertPlainId(ctx, call.data ?? {});
  const data = await encryptConfigs(ctx, call.data ?? {});
  await refuseTakenId(unscoped, data);
  // A manager from another scope is not a user of the tenant, so isolation would refuse the row. It
  // is stored without isolation, as a row of the tenant.
  const store = enterpriseRequest.get().manager?.isGuest
    ? () => unscoped.create({ ...call, data: { ...data, tenantId: getTenantId() ?? PLATFORM } })
    : () => next({ ...call, data });
  try {
    // better-auth puts the row that this returns into the response, so its secrets are removed.
    return withoutSecrets((await store()) as Row);
  } catch (error) {
    await refuseTakenId(unscoped, data);
    throw error;
  }
}

/**
 * Refuses a provider id that any tenant uses. Ids must be unique, because callback URLs contain
 * them.
 */
async function refuseTakenId(unscoped: DBTransactionAdapter, { providerId }: Row): Promise<void> {
  const where = clauses({ providerId: String(providerId) });
  if (!(await unscoped.findOne({ model: SSO_PROVIDER, where }))) return;
  throw tenantError(
    "VALUE_TAKEN",
    `The provider id "${providerId}" is taken. Ids are unique across all tenants: put the slug of the tenant in front, as in "acme-okta".`,
  );
}

export const badRequest = (code: string, message: string) =>
  new APIError("BAD_REQUEST", { code, message });

const PLAIN_ID = /^[a-z\d][a-z\d_-]*$/;
const { compare } = new Intl.Collator("en", { sensitivity: "base" });

/**
 * Refuses ids that differ from a reserved id only by case or accents. Databases may take the two
 * for the same id, but better-auth compares exactly.
 */
function assertPlainId(ctx: AuthContext, { providerId }: Row): void {
  const id = String(providerId);
  if (!PLAIN_ID.test(id)) {
    throw badRequest(
      "INVALID_PROVIDER_ID",
      `[body.providerId] Expected lower-case letters, digits, hyphens and underscores: "acme-okta"`,
    );
  }
  const reserved = [
    // If a provider is a function, it may have no id.
    ...ctx.socialProviders.flatMap(({ id }) => id ?? []),
    ...applicationProviders(ctx).ofPlugins,
    ...ctx.trustedProviders,
    ...sharedProviderIds(ctx),
  ];
  if (!reserved.some((name) => compare(name.trim(), id) === 0)) return;
  throw tenantError("VALUE_TAKEN", `The provider id "${id}" is reserved`);
}

/*
 * better-auth splits `domain` at commas and takes the host of each part. Of "evil.example/
 * acme.example" it verifies evil.example, but other code may read acme.example. Every reader
 * understands a plain name alike, so only plain names are stored, and only they prove an email.
 */

const splitDomains = (domain: unknown) =>
  String(domain)
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);

const plainDomains = (domain: unknown): string[] =>
  splitDomains(domain)
    .filter((part) => DOMAIN.test(part))
    .map((name) => name.toLowerCase());

function assertStorable({ domain, organizationId }: Row): void {
  const domains = domain === undefined ? undefined : splitDomains(domain);
  if (domains && !(domains.length > 0 && domains.every((part) => DOMAIN.test(part)))) {
    // better-auth's code for a domain that cannot be verified.
    throw badRequest(
      "INVALID_DOMAIN",
      `[body.domain] Expected domain names, separated by commas: "acme.com,acme.org"`,
    );
  }
  // The administrators of an organization could change its provider, and so decide who signs in at
  // the tenant.
  if (organizationId) {
    throw badRequest(
      "VALIDATION_ERROR",
      "[body.organizationId] An identity provider belongs to its tenant. Leave this out.",
    );
  }
}
