import type { AuthContext } from "better-auth";
import { APIError } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import { tenantError } from "../errors";
import { clauses, parseJSON } from "../framework";
import {
  type Guard,
  type GuardedCall,
  type Isolation,
  type Part,
  type Rotated,
  type Row,
  unscopedAdapter,
} from "../isolation/isolation";
import { applicationProviders } from "../oauth/application-providers";
import { rotateAll } from "../oauth/config-store";
import { vouchedDomains } from "../policy/admission";
import { DOMAIN } from "../policy/schema";
import { getTenantId, requestSlot } from "../request/scope";
import { PLATFORM } from "../schema";
import { isText } from "../tenants/cache";
import { domainsIn } from "../tenants/plugins";
import { decryptConfigs, encryptConfigs, isUpToDate, withoutSecrets } from "./sso-secrets";

/*
 * The rows of identity providers. They belong to their tenant, their secrets are stored encrypted
 * and never returned, and they are found by their exact id only: MySQL compares text by collation,
 * so "CORP", "cörp" and "corp " all find "corp", but better-auth treats these as different ids.
 */

export const SSO_PROVIDER = "ssoProvider";

/** The caller who manages the scope's identity providers, and whether from another scope. */
export const ssoManager = requestSlot<{ userId: string; isGuest: boolean }>();

export function identityProvidersOf(isolation: Isolation): Part["identityProviders"] {
  const { ctx } = isolation;
  const offered = (tenantId: string) => offeredProviders(isolation, tenantId);
  return {
    offered,
    usable: async (tenantId) =>
      new Set([...(await offered(tenantId)).map(({ id }) => id), ...sharedProviderIds(ctx)]),
    areShared: () => sharedProviderIds(ctx).length > 0,
    // better-auth marks a SAML assertion as used with such a value.
    isSharedMark(value) {
      const { assertionId, providerId } = Object(parseJSON(value));
      return assertionId !== undefined && sharedProviderIds(ctx).includes(providerId);
    },
    rotateSecrets: () => rotateProviders(isolation),
  };
}

/** A tenant's providers that users can sign in with, in a stable order. */
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

/** The column exists if better-auth requires verified domains. */
const mustVerify = ({ tables }: AuthContext) =>
  tables[SSO_PROVIDER]?.fields.domainVerified !== undefined;

/** A provider is verified as well while its tenant has verified all its domains itself. */
async function withTenantDomains(ctx: AuthContext, stored: Row, tenantId = getTenantId()) {
  const isProven = !stored.domainVerified || isOneLabel(stored.providerId);
  const row = isProven ? stored : { ...stored, domainVerified: false };
  const domains = domainsIn(ctx);
  if (!domains || !tenantId || row.domainVerified || !row.domain || !mustVerify(ctx)) return row;
  const names = splitDomains(row.domain);
  const verified = await domains.verifiedBy(ctx, tenantId);
  const isVerified = names.every((name) => verified.includes(name.toLowerCase()));
  return names.length > 0 && isVerified ? { ...row, domainVerified: true } : row;
}

/**
 * better-auth proves `co.uk` by a record at `_better-auth-token-<id>.co.uk`. With an id of several
 * labels (`okta.evil`), that record is in the zone of `evil.co.uk`. IDN has other dots as well.
 */
export const isOneLabel = (providerId: unknown) => /^[\w-]+$/.test(String(providerId));

/** The application's own providers, which all tenants share. */
export const sharedProviders = ({ options: { plugins } }: AuthContext): { providerId: string }[] =>
  plugins?.find(({ id }) => id === "sso")?.options?.defaultSSO ?? [];

const sharedProviderIds = (ctx: AuthContext) =>
  sharedProviders(ctx).map(({ providerId }) => providerId);

type StoredProvider = Row & { id: string; tenantId: string; providerId: string };

const rotateProviders = ({ ctx, raw }: Isolation): Promise<Rotated> =>
  rotateAll<StoredProvider>(ctx, {
    adapter: raw,
    model: SSO_PROVIDER,
    async anew(row) {
      if (await isUpToDate(ctx, row)) return "upToDate";
      const clear = await decryptConfigs(ctx, row).catch(() => null);
      if (!clear) return "unreadable";
      const { oidcConfig, samlConfig } = await encryptConfigs(ctx, clear);
      return { oidcConfig, samlConfig };
    },
  });

/** A row that was looked up by the id of a provider has exactly that id. */
export const guardLookups: Guard = ({ method, call, model }, next) => {
  if (model !== SSO_PROVIDER && model !== "account") return undefined;
  const { where = [] } = call;
  // PostgreSQL fails on text that no column can hold.
  const isImpossible = where.some(({ value }) => typeof value === "string" && !isText(value));
  if (isImpossible && method.startsWith("find")) {
    return Promise.resolve(method === "findMany" ? [] : null);
  }
  const wanted = where.find(
    ({ field, operator = "eq", connector = "AND" }) =>
      field === "providerId" && operator === "eq" && connector === "AND",
  )?.value;
  if (wanted === undefined) return undefined;
  // A query that did not select the id cannot be checked.
  const isWanted = (row: unknown) => ((row as Row | null)?.providerId ?? wanted) === wanted;
  return next(call).then((found) => {
    if (Array.isArray(found)) return found.filter(isWanted);
    return isWanted(found) ? found : null;
  });
};

/** Checks what is stored in a provider's row, encrypts its secrets, and decrypts them for better-auth. */
export const guardProviders =
  ({ ctx }: Isolation): Guard =>
  (guarded, next) => {
    const { method, call, model } = guarded;
    if (model !== SSO_PROVIDER) return undefined;
    const run = async () => {
      const { data, update } = call;
      assertStorable({ ...data, ...update });
      if (method === "create") return create(ctx, guarded, next);
      const encrypted = update && { update: await encryptConfigs(ctx, update) };
      const found = await next({ ...call, ...encrypted });
      return Array.isArray(found)
        ? Promise.all(found.map((row: Row) => asRead(ctx, row)))
        : asRead(ctx, found);
    };
    return run();
  };

/** `found` is a row, nothing, or a number of rows. */
async function asRead(ctx: AuthContext, found: unknown): Promise<unknown> {
  if (typeof found !== "object" || found === null) return found;
  const manager = ssoManager.get();
  const stored = await decryptConfigs(ctx, found as Row, manager !== undefined);
  const row = await withTenantDomains(ctx, stored);
  vouchedDomains.set(row.domainVerified ? plainDomains(row.domain) : undefined);
  // better-auth shows a provider only to the user who registered it. Here all managers share it.
  return manager ? { ...row, userId: manager.userId } : row;
}

async function create(ctx: AuthContext, { raw, call }: GuardedCall, next: Parameters<Guard>[1]) {
  assertPlainId(ctx, call.data ?? {});
  const data = await encryptConfigs(ctx, call.data ?? {});
  await refuseTakenId(raw, data);
  // A manager from another scope is not a user of the tenant, which isolation would require.
  const store = ssoManager.get()?.isGuest
    ? () => raw.create({ ...call, data: { ...data, tenantId: getTenantId() ?? PLATFORM } })
    : () => next({ ...call, data });
  try {
    // better-auth responds with everything that was stored.
    return withoutSecrets((await store()) as Row);
  } catch (error) {
    await refuseTakenId(raw, data);
    throw error;
  }
}

/** Provider ids are in callback URLs, so better-auth has one list of them for all tenants. */
async function refuseTakenId(raw: DBTransactionAdapter, { providerId }: Row): Promise<void> {
  const where = clauses({ providerId: String(providerId) });
  if (!(await raw.findOne({ model: SSO_PROVIDER, where }))) return;
  throw tenantError(
    "VALUE_TAKEN",
    `The provider id "${providerId}" is taken. Ids are unique across all tenants: put the slug of the tenant in front, as in "acme-okta".`,
  );
}

export const badRequest = (code: string, message: string) =>
  new APIError("BAD_REQUEST", { code, message });

const PLAIN_ID = /^[a-z\d][a-z\d_-]*$/;
const { compare } = new Intl.Collator("en", { sensitivity: "base" });

/** Refuses ids that can be confused with others. better-auth compares reserved ids exactly. */
function assertPlainId(ctx: AuthContext, { providerId }: Row): void {
  const id = String(providerId);
  if (!PLAIN_ID.test(id)) {
    throw badRequest(
      "INVALID_PROVIDER_ID",
      `[body.providerId] Expected lower-case letters, digits, hyphens and underscores: "acme-okta"`,
    );
  }
  const reserved = [
    // A provider that is a function may have no id.
    ...ctx.socialProviders.flatMap(({ id }) => id ?? []),
    ...applicationProviders(ctx).ofPlugins,
    ...ctx.trustedProviders,
    ...sharedProviderIds(ctx),
  ];
  if (!reserved.some((name) => compare(name.trim(), id) === 0)) return;
  throw tenantError("VALUE_TAKEN", `The provider id "${id}" is reserved`);
}

/*
 * better-auth splits `domain` at commas and takes the host of each part: of
 * "evil.example/ acme.example" it verifies evil.example. A plain name means the same to all readers,
 * so only plain names are stored, and only they prove an email.
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
  // The organization's administrators could change who signs in at the tenant.
  if (organizationId) {
    throw badRequest(
      "VALIDATION_ERROR",
      "[body.organizationId] An identity provider belongs to its tenant. Leave this out.",
    );
  }
}
