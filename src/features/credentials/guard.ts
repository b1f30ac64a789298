import { getCurrentAdapter, runWithTransaction } from "@better-auth/core/context";
import { BASE_ERROR_CODES } from "better-auth";
import {
  APIError,
  addOAuthServerContext,
  createAuthMiddleware,
  getOAuthState,
  getSessionFromCtx,
} from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import {
  type AdapterCall,
  type AdapterMethod,
  CHANGES,
  clauses,
  type Guard,
  type GuardedCall,
  type NextGuard,
} from "../../core/database";
import { currentEndpoint } from "../../core/endpoint";
import { type BeforeHook, onPaths } from "../../core/hooks";
import { type Authority, authorityOfSession, lockGeneration } from "../../core/isolate/generations";
import type { Isolation } from "../../core/isolation";
import type { Endpoint } from "../../core/request";
import type { SessionRow } from "../../core/session";
import { errorRedirect } from "../../core/utils";

/*
 * A session can create credentials (passkeys, second factors, keys, linked accounts) only while it
 * is of its user's generation (see core/isolate/generations.ts). The user's row is locked until the
 * credential is committed. So code that ends sessions first and then deletes credentials finds all
 * credentials of the ended sessions.
 */

/**
 * A key in `serverContext`, the part of an OAuth state that no client can write.
 *
 * Guarded by "a client cannot put anything into the part of the state that the server trusts".
 */
const STATE_KEY = "tenantAuthLinkedBy";

/**
 * Returns the user who started the running OAuth flow, with their generation at that time.
 * Undefined if the flow links no account.
 */
async function authorityOfState(): Promise<Authority | undefined> {
  const kept = (await getOAuthState())?.serverContext?.[STATE_KEY];
  if (typeof kept !== "string") return undefined;
  const [userId, generation] = JSON.parse(kept);
  return { userId, generation };
}

/**
 * Stores the caller's generation in an OAuth flow that links an account. If the caller's sessions
 * end before the provider sends the browser back, the callback links nothing.
 */
export const bindLinking: BeforeHook = {
  matcher: onPaths("/link-social"),

  handler: createAuthMiddleware(async (ctx) => {
    // Costs no second query: the endpoint reuses the session that is read here.
    const found = await getSessionFromCtx(ctx);
    const { userId, generation = null } = (found?.session ?? {}) as SessionRow;
    if (!userId) return;
    await addOAuthServerContext({ [STATE_KEY]: JSON.stringify([userId, generation]) });
  }),
};

/** Models whose rows are credentials. */
const CREATED = ["passkey", "twoFactor", "walletAddress", "account", "apikey"];

/** Fields that are credentials, by model. A new value can let an attacker sign in as the user. */
const CHANGED: Readonly<Record<string, string[]>> = {
  account: ["password"],
  twoFactor: ["secret", "verified", "backupCodes"],
  user: ["email", "phoneNumber", "twoFactorEnabled"],
  deviceCode: ["status"],
};

function writesCredential(method: AdapterMethod, model: string, call: AdapterCall): boolean {
  const { data, update, set } = call;
  if (method === "create") return CREATED.includes(model) && data !== undefined;
  const change = update ?? set;
  if (!change || !Object.hasOwn(CHANGED, model)) return false;
  return CHANGED[model]?.some((field) => field in change) ?? false;
}

/** Refuses a credential that an ended session is about to create or change. */
export const guardCredentials = (isolation: Isolation): Guard => ({
  models: [...CREATED, ...Object.keys(CHANGED)],
  methods: ["create", ...CHANGES],
  async run(guarded, next) {
    const { method, call, model = call.model, unscoped, transaction } = guarded;
    if (!writesCredential(method, model, call)) return next(call);
    const ofSession = authorityOfSession();
    if (!ofSession && !isCallback(currentEndpoint())) return next(call);
    const authority = ofSession ?? (await authorityOfState());
    if (!authority) return next(call);
    if (!transaction) return writeInTransaction(isolation, guarded, next, authority);
    await requireGeneration(unscoped, authority);
    return next(call);
  },
});

/** Writes a credential in a transaction, because the user's row stays locked until its end. */
function writeInTransaction(
  { ctx: { adapter } }: Isolation,
  { method, call, unscoped }: GuardedCall,
  next: NextGuard,
  authority: Authority,
): Promise<unknown> {
  return runWithTransaction(adapter, async () => {
    const inner = (await getCurrentAdapter(adapter)) as unknown as Record<string, NextGuard>;
    // The adapter of the transaction calls this guard again, which then checks the generation.
    if (inner !== (adapter as unknown)) return inner[method]?.(call);
    await requireGeneration(unscoped, authority);
    const row = await next(call);
    // Without transactions, no row was locked, and the sessions may have ended meanwhile. Then the
    // credential is deleted again.
    await requireGeneration(unscoped, authority).catch(async (error) => {
      const { id } = (row ?? {}) as { id?: string };
      if (method === "create" && id)
        await unscoped.delete({ model: call.model, where: clauses({ id }) });
      throw error;
    });
    return row;
  });
}

/** Refuses the call if the user's sessions have ended since. Otherwise locks the user's row. */
export async function requireGeneration(
  adapter: DBTransactionAdapter,
  authority: Authority,
): Promise<void> {
  if (!(await lockGeneration(adapter, authority))) throw await sessionExpired();
}

/** Returns the error of an ended session. In a callback, redirects to the flow's error page. */
async function sessionExpired() {
  const error = APIError.from("UNAUTHORIZED", BASE_ERROR_CODES.SESSION_EXPIRED);
  const endpoint = currentEndpoint();
  if (!endpoint || !isCallback(endpoint)) return error;
  return errorRedirect(endpoint.context, "session_expired", (await getOAuthState())?.errorURL);
}

const isCallback = (endpoint: Endpoint | undefined) => endpoint?.path?.includes("/callback");
