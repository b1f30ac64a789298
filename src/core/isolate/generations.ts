import { queueAfterTransactionHook } from "@better-auth/core/context";
import { generateId } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import { currentScope } from "../current-scope";
import { clauses } from "../database";
import { currentEndpoint } from "../endpoint";
import {
  type Isolation,
  instanceKey,
  seesUncommittedRows,
  unscopedAdapter,
  unscopedAdapterFor,
} from "../isolation";
import { currentRequest } from "../request";
import { OF_KEY, type SessionRow } from "../session";
import { CONTINUES, methodOf } from "../sign-in-endpoints";
import { expiringMap, oncePerObject } from "../utils";
import { throwInvalidValue } from "./impossible-values";
import { tenantClause } from "./in-scope";
import { couldBeUserId, readUser } from "./users";

/*
 * Ends all sessions of one user: after a ban, a password reset, a lost device.
 *
 * A user has a generation: a random value that is replaced when all sessions of the user end. A
 * session has the generation in which it was created, and is valid only while its user has the same
 * one. This needs no clock and no precise dates: a session from the same millisecond ends too, and
 * so does a session that a database, a storage or a cookie still holds. The generation is null for
 * a user whose sessions were never ended, for the sessions of that user, and for a session from
 * before the column existed.
 */

type Generation = string | null;

/** The user for whom a request acts, and the generation in which that user signed in. */
export interface Authority {
  userId: string;
  generation: Generation;
}

/**
 * Generations of users, cached for ten seconds. Needed where a session comes without the row of
 * its user: from a cookie or a storage.
 */
const generationsOf = oncePerObject((_instance: object) =>
  expiringMap<{ generation: Generation }>(10_000, 10_000),
);

/**
 * Ends all sessions of a user. Call this before credentials are deleted. If users end their own
 * sessions, the session that asks for it must still be valid: another request may have ended it
 * meanwhile, and a session that this request creates next must not be valid.
 */
export async function startGeneration(
  isolation: Isolation,
  userId: string,
  generation = generateId(32),
): Promise<void> {
  if (!couldBeUserId(isolation, userId)) return;
  const authority = authorityOfSession();
  const where = [...clauses({ id: userId }), ...tenantClause(currentScope())];
  if (authority?.userId === userId) where.push(isIn(authority.generation));
  const adapter = await unscopedAdapter(isolation);
  const update = { sessionGeneration: generation };
  const changed = await adapter
    .updateMany({ model: "user", where, update })
    .catch(throwInvalidValue);
  if (changed > 0) currentRequest().startedGenerations.set(userId, generation);
  const forget = async () => generationsOf(instanceKey(isolation.ctx)).delete(userId);
  await forget();
  // Other requests may have read the old generation before the commit.
  await queueAfterTransactionHook(forget);
}

const isIn = (generation: Generation) => ({
  field: "sessionGeneration",
  operator: "eq" as const,
  connector: "AND" as const,
  value: generation,
});

/**
 * Returns whether a session is of its user's generation. A session of a deleted user is not, as
 * soon as the user is no longer cached.
 */
export async function isOfGeneration(
  isolation: Isolation,
  { userId, generation = null }: SessionRow,
  adapter?: DBTransactionAdapter,
): Promise<boolean> {
  const id = String(userId);
  const known =
    currentRequest().startedGenerations.get(id) ?? currentRequest().users.get(id)?.generation;
  if (known !== undefined) return known === generation;
  // The cached generation may be old: another process may have started the session's generation
  // since.
  if (generationsOf(instanceKey(isolation.ctx)).get(id)?.generation === generation) return true;
  return (await lookUpGeneration(isolation, id, adapter)) === generation;
}

/** Returns the generation for a new session. */
export async function findNewGeneration(isolation: Isolation, userId: string): Promise<Generation> {
  const started = currentRequest().startedGenerations.get(userId);
  if (started) return started;
  // A new session that continues another one ends together with it.
  const authority = authorityOfSession();
  if (authority?.userId === userId) return authority.generation;
  const known = currentRequest().users.get(userId)?.generation;
  if (known !== undefined) return known;
  return (await readGeneration(await unscopedAdapter(isolation), userId)) ?? null;
}

/** Looks up a user's generation. Returns undefined if there is no user with this id. */
async function lookUpGeneration(
  isolation: Isolation,
  userId: string,
  adapter?: DBTransactionAdapter,
): Promise<Generation | undefined> {
  if (!couldBeUserId(isolation, userId)) return undefined;
  const keep = generationsOf(instanceKey(isolation.ctx)).startRead();
  const generation = await readGeneration(await unscopedAdapterFor(isolation, adapter), userId);
  if (generation !== undefined && !seesUncommittedRows(isolation, adapter))
    keep(userId, { generation });
  return generation;
}

async function readGeneration(adapter: DBTransactionAdapter, userId: string) {
  const user = await readUser<{ sessionGeneration?: Generation }>(adapter, userId);
  return user ? (user.sessionGeneration ?? null) : undefined;
}

/** Sign-in endpoints that may also add a credential to the user of the caller's session. */
const ADDS_CREDENTIAL = ["/passkey/verify-registration", "/phone-number/verify"];

/**
 * Returns the user and generation for whom the running endpoint acts, by its session. A sign-in
 * acts for the user that the caller has just proven to be, so a session in the browser does not
 * count. Neither does the session of an API key, which exists for one request.
 */
export function authorityOfSession(): Authority | undefined {
  const endpoint = currentEndpoint();
  const session: SessionRow | undefined = endpoint?.context.session?.session;
  if (!session || OF_KEY in session) return undefined;
  const method = methodOf(endpoint);
  const isSignIn = method !== undefined && method !== CONTINUES;
  if (isSignIn && !ADDS_CREDENTIAL.includes(endpoint?.path ?? "")) return undefined;
  const userId = String(session.userId);
  // A session that has ended all others continues in the new generation.
  const generation = currentRequest().startedGenerations.get(userId) ?? session.generation ?? null;
  return { userId, generation };
}

/**
 * Returns whether a user is still of a generation. The update locks the user's row until the end of
 * the transaction. It also sees what others have committed, which a read may miss in MySQL.
 */
export async function lockGeneration(
  adapter: DBTransactionAdapter,
  { userId, generation }: Authority,
): Promise<boolean> {
  const where = [...clauses({ id: userId }), isIn(generation)];
  const update = { sessionGeneration: generation };
  if (await adapter.updateMany({ model: "user", where, update })) return true;
  // MongoDB counts changed rows only.
  const isUncounted = adapter.id === "mongodb-adapter";
  return isUncounted && (await readGeneration(adapter, userId)) === generation;
}
