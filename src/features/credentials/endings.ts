import { getCurrentAdapter, runWithTransaction } from "@better-auth/core/context";
import { generateId } from "better-auth";
import { clauses } from "../../core/database";
import { currentEndpoint } from "../../core/endpoint";
import {
  authorityOfSession,
  lockGeneration,
  startGeneration,
} from "../../core/isolate/generations";
import { type Isolation, unscopedAdapter } from "../../core/isolation";
import { currentRequest } from "../../core/request";
import type { SessionRow } from "../../core/session";
import { methodOf } from "../../core/sign-in-endpoints";
import { removeOtherCredentials } from "../management/remove-credentials";
import { requireGeneration } from "./guard";

/**
 * Ends all sessions of a user except the caller's, by a new generation (see
 * core/isolate/generations.ts). The caller's session gets the new generation first: secondary
 * storage returns no ended session, so a later update would not find it. If the caller sends two of
 * these requests at once, the second waits for the first, and then starts no generation.
 */
async function endOtherSessions(isolation: Isolation, userId: string): Promise<void> {
  const { adapter, internalAdapter } = isolation.ctx;
  const session: SessionRow | undefined = currentEndpoint()?.context.session?.session;
  const own = authorityOfSession();
  const generation = generateId(32);
  await runWithTransaction(adapter, async () => {
    if (own && !(await lockGeneration(await unscopedAdapter(isolation), own))) return;
    await internalAdapter.updateSession(String(session?.token), { generation });
    await startGeneration(isolation, userId, generation);
  });
}

/** The prefix of verifications of sign-ins that wait for their second factor. */
const PENDING_SIGN_IN = "2fa-";

/**
 * Ends all sessions of a user by a new generation. In the same transaction, deletes everything that
 * could still become a session: approved device codes, and sign-ins that wait for their second
 * factor.
 */
async function startCleanGeneration(isolation: Isolation, userId: string) {
  const { adapter, tables, hasPlugin } = isolation.ctx;
  const hasPendingSignIns = hasPlugin("two-factor") && tables.verification !== undefined;
  if (!tables.deviceCode && !hasPendingSignIns) return startGeneration(isolation, userId);
  await runWithTransaction(adapter, async () => {
    await startGeneration(isolation, userId);
    const inner = await getCurrentAdapter(adapter);
    if (tables.deviceCode) {
      await inner.deleteMany({ model: "deviceCode", where: clauses({ userId }) });
    }
    if (!hasPendingSignIns) return;
    const prefix = {
      field: "identifier",
      operator: "starts_with" as const,
      value: PENDING_SIGN_IN,
    };
    const where = [...clauses({ value: userId }), prefix];
    await inner.deleteMany({ model: "verification", where });
  });
}

/** The sign-in methods that prove an email address. */
const PROVE_ADDRESS = ["magic-link", "email-otp"];

/**
 * Returns whether sessions end because a sign-in has just proven an email address. An attacker may
 * have signed up with the address before, so better-auth then ends the user's sessions. No other
 * sign-in ends sessions.
 */
const provesAddress = () => PROVE_ADDRESS.includes(String(methodOf(currentEndpoint())));

/** The prefix of verifications of devices that skip the second factor. */
const TRUSTED_DEVICE = "trust-device-";

/**
 * Ends sessions by a new generation (see core/isolate/generations.ts) wherever better-auth deletes
 * them. If a sign-in has proven the email address, also removes credentials from before. Trusts a
 * device only if the user's sessions have not ended since the user was read.
 */
export function keepGenerations(isolation: Isolation): void {
  const { ctx } = isolation;
  const { adapter, internalAdapter } = ctx;
  const { deleteUserSessions, listSessions, createVerificationValue } = internalAdapter;
  internalAdapter.deleteUserSessions = async (userId) => {
    await startCleanGeneration(isolation, userId);
    await deleteUserSessions(userId);
    // better-auth removes accounts and sessions from before the proof. The other credentials may be
    // an attacker's too, so the plugin removes them.
    if (provesAddress()) {
      await removeOtherCredentials(ctx, await unscopedAdapter(isolation), userId);
    }
  };
  // `/revoke-other-sessions` lists the sessions, and deletes all but the caller's. So the other
  // sessions end here, before they are listed.
  internalAdapter.listSessions = async (userId, options) => {
    if (currentEndpoint()?.path === "/revoke-other-sessions") {
      await endOtherSessions(isolation, userId);
    }
    return listSessions(userId, options);
  };
  internalAdapter.createVerificationValue = async (data) => {
    const userId = String(data.value);
    const generation = currentRequest().users.get(userId)?.generation;
    const isTrusted = data.identifier.startsWith(TRUSTED_DEVICE) && generation !== undefined;
    if (!isTrusted) return createVerificationValue(data);
    return runWithTransaction(adapter, async () => {
      await requireGeneration(await unscopedAdapter(isolation), { userId, generation });
      return createVerificationValue(data);
    });
  };
}
