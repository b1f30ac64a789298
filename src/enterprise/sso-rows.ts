import type { AuthContext } from "better-auth";
import { APIError } from "better-auth/api";
import type { Where } from "better-auth/types";
import { tenantError } from "../errors";
import { type Isolation, type Row, unscopedAdapter } from "../isolation/isolation";
import { getTenantId, notes } from "../request/scope";
import { PLATFORM } from "../schema";
import { assertPlainId, exactly, findsNothing, sharedProviders } from "./exact";
import { keepLastAdmin, noteDirectoryUser } from "./scim";
import { asKey } from "./scim-keys";
import { SCIM_USER } from "./scim-rows";
import { type AskForHosts, hasRelayState, providersInUse } from "./sso-addresses";
import { assertPlainDomains, plainDomains } from "./sso-domains";
import { decryptConfigs, encryptConfigs, withoutSecrets } from "./sso-secrets";
import { askPolicyOfFlow, assertStartedHere } from "./sso-state";

type Call = { model: string; where?: Where[]; data?: Row; update?: Row; set?: Row };
type Run = (call: Call) => Promise<unknown>;

export const SSO_PROVIDER = "ssoProvider";
const PEOPLE = ["user", "account"];

/**
 * Looks at every call of the adapter that is about identity providers: their secrets are stored
 * encrypted, and leave with nobody. The addresses in them are looked up, because better-auth asks
 * whether they are trusted.
 */
export function guardProviders(
  isolation: Isolation,
  askForHosts: AskForHosts,
  roles: string[],
): void {
  const { guard } = isolation.policy;
  const barsKeys = isolation.isolatedModel(SCIM_USER) !== undefined;
  const isProvider = (model: string) => isolation.isolatedModel(model) === SSO_PROVIDER;
  const guarded = async (
    name: string,
    call: Call,
    runAny: Run,
    raw: Isolation["raw"],
    transaction: Isolation["raw"] | undefined,
  ): Promise<unknown> => {
    const hasProviders =
      isProvider(call.model) || isolation.isolatedModel(call.model) === "account";
    const run: Run = hasProviders
      ? async (changed) => exactly(call, await runAny(changed))
      : runAny;
    if (hasProviders && findsNothing(name, call)) return name === "findMany" ? [] : null;
    const isAboutPeople = PEOPLE.includes(isolation.isolatedModel(call.model) ?? "");
    if (isAboutPeople) await assertStartedHere();
    if ((isAboutPeople || isProvider(call.model)) && !/^(find|count)/.test(name)) {
      await askPolicyOfFlow(isolation);
    }
    if (isolation.isolatedModel(call.model) === SCIM_USER) {
      const found =
        name === "delete"
          ? await keepLastAdmin(isolation, roles, transaction, call.where ?? [], () => run(call))
          : await run(call);
      noteDirectoryUser(name, found);
      return found;
    }
    if (!isProvider(call.model)) {
      const found = await run(call);
      // Scoped or shared.
      if (barsKeys && (isolation.isolatedModel(call.model) ?? call.model) === "apikey") {
        return asKey(call, found, raw);
      }
      if (hasRelayState(isolation, call.model)) await askForHosts(found);
      return found;
    }
    const written: Row = { ...call.data, ...call.update, ...call.set };
    assertPlainDomains(written);
    assertOfNoOrganization(written);
    // Inside of a transaction, what is below the isolation is the transaction's adapter.
    if (name === "create") return create({ ...isolation, raw }, call, run);
    const { ctx } = isolation;
    const { update, set } = call;
    const found = await run({
      ...call,
      ...(update && { update: await encryptConfigs(ctx, update) }),
      ...(set && { set: await encryptConfigs(ctx, set) }),
    });
    await askForHosts(providersInUse(found));
    return Array.isArray(found)
      ? Promise.all(found.map((row: Row) => asRead(ctx, row)))
      : asRead(ctx, found);
  };
  isolation.policy.guard = (name, call: Call, run, raw, transaction) =>
    guarded(
      name,
      call,
      async (changed) =>
        guard(name, changed as never, run, raw, transaction) ?? run(changed as never),
      raw,
      transaction,
    );
}

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
  const note = notes();
  const { managing } = note;
  const row = await decryptConfigs(ctx, found as Row, managing !== undefined);
  note.vouchedDomains = row.domainVerified ? plainDomains(row.domain) : undefined;
  // better-auth lets only the person who has registered a provider see and change it. Here it
  // belongs to the tenant, and this is somebody who may manage that.
  return managing ? { ...row, userId: managing.userId } : row;
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
async function create(isolation: Isolation, call: Call, run: Run): Promise<Row> {
  assertPlainId(isolation, call.data ?? {});
  const data = await encryptConfigs(isolation.ctx, call.data ?? {});
  await refuseTakenId(isolation, data);
  const { managing } = notes();
  // The user of a manager from outside is none of the tenant's, and need not become one.
  const store = managing?.isGuest
    ? () =>
        isolation.raw.create({ ...call, data: { ...data, tenantId: getTenantId() ?? PLATFORM } })
    : () => run({ ...call, data });
  try {
    return withoutSecrets((await store()) as Row);
  } catch (error) {
    await refuseTakenId(isolation, data);
    throw error;
  }
}

/** better-auth has one list of provider ids for everybody: they are in the addresses of callbacks. */
async function refuseTakenId({ raw }: Isolation, { providerId }: Row): Promise<void> {
  const where = [{ field: "providerId", value: String(providerId) }];
  if (!(await raw.findOne({ model: SSO_PROVIDER, where }))) return;
  throw tenantError(
    "VALUE_TAKEN",
    `The provider id "${providerId}" is taken. Ids are unique across all tenants: put the slug of the tenant in front, as in "acme-okta".`,
  );
}
