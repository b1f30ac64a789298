import { removeCredentials } from "../isolation/changed-hands";
import type { Isolation, Row } from "../isolation/isolation";
import { isInDomains } from "../policy/email-domains";
import type { Call } from "../policy/last-admin";
import { currentEndpoint } from "../request/endpoint";
import { getTenantId, notes } from "../request/scope";
import { isCreatedByDirectory, SCIM_USER } from "./scim-rows";
import { isEndOfFlow } from "./sso-state";

/*
 * SCIM creates users with an unverified address, and better-auth links no SSO account to such a
 * user: an attacker may have signed up with the address of another person. A user that the tenant's
 * directory created did not sign up, and a provider of the tenant proves the addresses of its
 * verified domain. Where both hold, the address counts as verified.
 */

/**
 * Writes into the row of a directory whether the same request has created its user. Where there is
 * no identity provider yet, too: one may come later.
 */
export function markCreatedUsers({ policy, isolatedModel }: Isolation): void {
  const { guard } = policy;
  policy.guard = (name, call: Call, run, raw, transaction) => {
    const go = (changed: Call) => guard(name, changed as never, run, raw, transaction);
    const note = notes();
    if (name !== "create" || !note.directory) return go(call);
    const model = isolatedModel(call.model);
    if (model === SCIM_USER) {
      const createdUser = String(call.data?.userId) === note.createdByDirectory;
      const marked = { ...call, data: { ...call.data, createdUser } };
      return go(marked) ?? run(marked as never);
    }
    if (model !== "user") return go(call);
    return (go(call) ?? run(call as never)).then((user) => {
      note.createdByDirectory = String((user as Row).id);
      return user;
    });
  };
}

/** Lets better-auth link an SSO account to a user of the directory. Nothing else becomes linkable. */
export function linkDirectoryUsers(isolation: Isolation): void {
  const { policy } = isolation;
  const { guard } = policy;
  policy.guard = (name, call: Call, run, raw, transaction) => {
    const guarded = () => guard(name, call as never, run, raw, transaction);
    const go = () => guarded() ?? run(call as never);
    if (!isEndOfFlow()) return guarded();
    if (isLookupToLink(isolation, name, call)) return go().then((found) => asProven(raw, found));
    if (!isLinkToProven(isolation, name, call)) return guarded();
    return revokeUnproven(isolation, raw, String(call.data?.userId)).then(go);
  };
}

/** better-auth reads the accounts of the user as well, because it is about to add one. */
const isLookupToLink = ({ isolatedModel }: Isolation, name: string, { model, where, join }: Call) =>
  name === "findOne" &&
  isolatedModel(model) === "user" &&
  where[0]?.field === "email" &&
  join?.account !== undefined;

async function asProven(raw: Isolation["raw"], found: unknown): Promise<unknown> {
  const user = found as Row | null;
  const tenantId = getTenantId();
  const note = notes();
  if (!user || !tenantId || user.emailVerified) return found;
  if (!isInDomains(note.vouchedDomains ?? [], user.email)) return found;
  if (!(await isCreatedByDirectory(raw, tenantId, user))) return found;
  note.provenUser = String(user.id);
  return { ...user, emailVerified: true };
}

const isLinkToProven = ({ isolatedModel }: Isolation, name: string, { model, data }: Call) =>
  name === "create" &&
  isolatedModel(model) === "account" &&
  String(data?.userId) === notes().provenUser;

/**
 * Before the account is linked, and as better-auth does it for a magic link: what was there before
 * the address was proven may be another person's, for example of the one who had this user before
 * the directory changed its address.
 */
async function revokeUnproven(
  isolation: Isolation,
  raw: Isolation["raw"],
  userId: string,
): Promise<void> {
  const ctx = currentEndpoint()?.context ?? isolation.ctx;
  await removeCredentials(ctx, raw, userId);
  await ctx.internalAdapter.updateUser(userId, { emailVerified: true });
}
