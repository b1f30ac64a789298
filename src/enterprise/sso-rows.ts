import type { AuthContext } from "better-auth";
import { APIError } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import { tenantError } from "../errors";
import {
  type AdapterCall,
  type Guard,
  type Isolation,
  type Row,
  unscopedAdapter,
} from "../isolation/isolation";
import { vouchedDomains } from "../policy/admission";
import { getTenantId, requestSlot } from "../request/scope";
import { PLATFORM } from "../schema";
import { assertPlainId, exactly, findsNothing, sharedProviders } from "./exact";
import { type AskForHosts, hasRelayState, providersInUse } from "./sso-addresses";
import { assertPlainDomains, plainDomains } from "./sso-domains";
import { decryptConfigs, encryptConfigs, withoutSecrets } from "./sso-secrets";
import { askPolicyOfFlow, assertStartedHere, isEndOfFlow } from "./sso-state";

type Run = (call: AdapterCall) => Promise<unknown>;

export const SSO_PROVIDER = "ssoProvider";

/** Who manages the identity providers of the scope, and whether they belong to another scope. */
export const ssoManager = requestSlot<{ userId: string; isGuest: boolean }>();

/** Where a flow ends, nothing is looked up or written for one that was started elsewhere. */
const guardEndOfFlow: Guard = ({ method, call, model = "" }, next) => {
  const isAboutUsers = model === "user" || model === "account";
  if (!isEndOfFlow() || !(isAboutUsers || model === SSO_PROVIDER)) return undefined;
  const check = async () => {
    if (isAboutUsers) await assertStartedHere();
    if (!/^(find|count)/.test(method)) await askPolicyOfFlow();
    return next(call);
  };
  return check();
};

/** Rows that are looked up by the id of a provider have exactly that id. */
const guardLookups: Guard = ({ method, call, model }, next) => {
  if (model !== SSO_PROVIDER && model !== "account") return undefined;
  if (findsNothing(method, call)) return Promise.resolve(method === "findMany" ? [] : null);
  return next(call).then((found) => exactly(call, found));
};

/**
 * Identity providers are stored with encrypted secrets, which are never returned. The hosts of their
 * addresses are looked up, because better-auth asks whether they are trusted.
 */
export const guardProviders = (isolation: Isolation, askForHosts: AskForHosts): Guard[] => [
  guardEndOfFlow,
  guardLookups,
  ({ call, model }, next) =>
    model === "verification" && hasRelayState()
      ? next(call).then(async (found) => {
          await askForHosts(found);
          return found;
        })
      : undefined,
  ({ method, call, model, raw }, next) => {
    if (model !== SSO_PROVIDER) return undefined;
    const run = async () => {
      const { ctx } = isolation;
      const written: Row = { ...call.data, ...call.update, ...call.set };
      assertPlainDomains(written);
      assertOfNoOrganization(written);
      if (method === "create") return create(ctx, raw, call, next);
      const { update, set } = call;
      const found = await next({
        ...call,
        ...(update && { update: await encryptConfigs(ctx, update) }),
        ...(set && { set: await encryptConfigs(ctx, set) }),
      });
      await askForHosts(providersInUse(found));
      return Array.isArray(found)
        ? Promise.all(found.map((row: Row) => asRead(ctx, row)))
        : asRead(ctx, found);
    };
    return run();
  },
];

/** A tenant's providers that sign people in, in a steady order. */
export async function offeredProviders(isolation: Isolation, tenantId: string) {
  const { ctx } = isolation;
  const rows = await (await unscopedAdapter(isolation)).findMany<Row>({
    model: SSO_PROVIDER,
    where: [{ field: "tenantId", value: tenantId }],
    sortBy: { field: "providerId", direction: "asc" },
  });
  // The column is there where better-auth asks for it.
  const mustVerify = ctx.tables[SSO_PROVIDER]?.fields.domainVerified !== undefined;
  return rows
    .filter(({ domainVerified }) => !mustVerify || domainVerified)
    .map(({ providerId }) => ({ id: String(providerId) }));
}

/** The ids of these, and of the application's own in `defaultSSO`. */
export async function usableProviders(
  isolation: Isolation,
  tenantId: string,
): Promise<Set<string>> {
  const own = await offeredProviders(isolation, tenantId);
  return new Set([...own.map(({ id }) => id), ...sharedProviders(isolation.ctx)]);
}

/** What is left over of a method's answer: a row, nothing, or a number of rows. */
async function asRead(ctx: AuthContext, found: unknown): Promise<unknown> {
  if (typeof found !== "object" || found === null) return found;
  const manager = ssoManager.get();
  const row = await decryptConfigs(ctx, found as Row, manager !== undefined);
  vouchedDomains.set(row.domainVerified ? plainDomains(row.domain) : undefined);
  // better-auth lets only the person who has registered a provider see and change it. Here it
  // belongs to the tenant, and this is somebody who may manage that.
  return manager ? { ...row, userId: manager.userId } : row;
}

/**
 * An identity provider belongs to its tenant. Bound to an organization, better-auth would let the
 * administrators of the organization change who signs in at the tenant.
 */
function assertOfNoOrganization({ organizationId }: Row): void {
  if (!organizationId) return;
  throw new APIError("BAD_REQUEST", {
    code: "VALIDATION_ERROR",
    message: "[body.organizationId] An identity provider belongs to its tenant. Leave this out.",
  });
}

/** The answer to a registration has everything in it that was stored, so secrets stop here. */
async function create(
  ctx: AuthContext,
  raw: DBTransactionAdapter,
  call: AdapterCall,
  run: Run,
): Promise<Row> {
  assertPlainId(ctx, call.data ?? {});
  const data = await encryptConfigs(ctx, call.data ?? {});
  await refuseTakenId(raw, data);
  // The user of a manager from outside is none of the tenant's, and need not become one.
  const store = ssoManager.get()?.isGuest
    ? () => raw.create({ ...call, data: { ...data, tenantId: getTenantId() ?? PLATFORM } })
    : () => run({ ...call, data });
  try {
    return withoutSecrets((await store()) as Row);
  } catch (error) {
    await refuseTakenId(raw, data);
    throw error;
  }
}

/** better-auth has one list of provider ids for everybody: they are in the addresses of callbacks. */
async function refuseTakenId(raw: DBTransactionAdapter, { providerId }: Row): Promise<void> {
  const where = [{ field: "providerId", value: String(providerId) }];
  if (!(await raw.findOne({ model: SSO_PROVIDER, where }))) return;
  throw tenantError(
    "VALUE_TAKEN",
    `The provider id "${providerId}" is taken. Ids are unique across all tenants: put the slug of the tenant in front, as in "acme-okta".`,
  );
}
