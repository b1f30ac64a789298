import { BetterAuthError } from "better-auth";
import { isAPIError } from "better-auth/api";
import type { SecondaryStorage } from "better-auth/db";
import { tenantError } from "../errors";
import { currentEndpoint, settledScope } from "../scope/endpoint";
import { notes, type Settled, settled } from "../scope/scope";
import { settle } from "../scope/settle";
import {
  type Border,
  belowBorder,
  borderOf,
  isOurs,
  isState,
  markOurs,
  type Row,
  type StoredSession,
  setBorder,
  vouchForUser,
} from "./border";
import { isImpersonator, mayUse } from "./sessions";
import {
  admittedIn,
  EMPTY,
  isPlain,
  type Opened,
  open,
  type SessionValue,
  sessionIn,
  verificationIn,
  withLabel,
} from "./storage-labels";
import { belowBorders, isBelow, METHODS, type Methods, replaceMethods } from "./storage-methods";

/** What is kept of somebody's sessions, under their id; the second by newer better-auth. */
const OF_USER = /^(?:active-sessions|revoked-sessions-before)-(.+)/s;

const ENDED = /^revoked-sessions-before-(.+)/s;

/** Keys that are never a session's token. Any other may be one, and is looked up as one first. */
const OF_OTHERS = /^(?:verification:|api-key:)/;
const mayBeSession = (key: string) => !OF_USER.test(key) && !OF_OTHERS.test(key);

const PREFIX = "tenant:";

/** Names repeat from tenant to tenant (an e-mail address), so each tenant has keys of its own. */
function keyIn({ tenantId }: Settled, key: string): string {
  if (tenantId !== null) return `${PREFIX}${encodeURIComponent(tenantId)}:${key}`;
  // Nobody on the platform can choose a key that is a tenant's.
  return key.startsWith(PREFIX) ? `${PREFIX}:${key}` : key;
}

const RAW = Symbol.for("better-auth-tenant:raw-storage");

/** The storage as it was before it was confined. */
const rawStorage = (storage: SecondaryStorage): SecondaryStorage =>
  Object.hasOwn(storage, RAW)
    ? ((storage as { [RAW]?: SecondaryStorage })[RAW] ?? storage)
    : storage;

/** Others may have copied it, inherited from it, or put something over a method of ours. */
const isConfined = (storage: SecondaryStorage) =>
  Object.hasOwn(storage, RAW) && METHODS.every((name) => isOurs(storage[name]));

/**
 * The border of better-auth's secondary storage, where sessions and one-time tokens live without
 * ever reaching the database. It is changed in place, like the adapter: better-auth's internal
 * adapter has taken it by the time all options are known. Instances may share a storage: each
 * request is judged by the border of its own.
 */
export function confineStorage(storage: SecondaryStorage, border: Border): void {
  border.storedSession = (token) => storedSession(storage, token);
  if (isConfined(storage)) return void setBorder(storage, border);
  const raw = belowBorders(storage as unknown as Methods);
  const confined = confinedMethods(raw, storage) as unknown as Methods;
  const methods = replaceMethods(raw, (name, below) => async (...args) => {
    const run = isBelow() ? below : (confined[name] ?? below);
    return run(...args);
  });
  try {
    Object.assign(setBorder(storage, border), markOurs(methods));
    Object.defineProperty(storage, RAW, { value: raw, configurable: true });
  } catch {
    // Said below.
  }
  if (isConfined(storage)) return;
  throw new BetterAuthError(
    "tenantAuth() cannot confine this secondaryStorage, because its methods cannot be replaced. Write: secondaryStorage: { get: (key) => storage.get(key), set: (key, value, ttl) => storage.set(key, value, ttl), delete: (key) => storage.delete(key), getAndDelete: (key) => storage.getAndDelete(key), increment: (key, ttl) => storage.increment(key, ttl) }",
  );
}

function confinedMethods(raw: SecondaryStorage, storage: SecondaryStorage): SecondaryStorage {
  const currentBorder = () =>
    borderOf(currentEndpoint()?.context ?? storage) ?? (borderOf(storage) as Border);
  const scopeOfRequest = async () => settledScope() ?? settle(currentBorder().readSession);
  /**
   * The session of an operator who visits a tenant, or has acted as one of its users, stays on the
   * platform, and so does what is kept of it: no tenant can say that it has ended.
   */
  const scopeOf = async (key: string) => {
    const { visitor } = notes();
    const [, userId] = OF_USER.exec(key) ?? [];
    const isOperators = userId
      ? userId === visitor?.userId || isImpersonator(userId)
      : key === visitor?.token;
    return isOperators ? settled(null) : scopeOfRequest();
  };

  /** Where a key leads to from here, and what is there. */
  async function locate(key: string): Promise<{ at: string; value: unknown } | undefined> {
    const plain = mayBeSession(key) ? open(await raw.get(key)) : EMPTY;
    if (plain.value != null) {
      if (await isVisible(key, plain, false)) return { at: key, value: plain.value };
      if (plain.label) return undefined;
    }
    const scope = await scopeOf(key);
    const at = keyIn(scope, key);
    // Without a label and not visible: a session that a tenant left there before there were labels.
    if (at === key && plain.value != null) return undefined;
    const own = open(await raw.get(at));
    if (!(await isOf(scope, own.label))) return undefined;
    // Whoever asks may be about to take it for a session.
    if (sessionIn(own.value) && !(await isVisible(key, own, true))) return undefined;
    return { at, value: own.value };
  }

  /** Whether a session may be seen, or something else that is stored under a key alone. */
  async function isVisible(key: string, opened: Opened, hasOwnEntry: boolean): Promise<boolean> {
    const { label, value } = opened;
    const found = sessionIn(value);
    if (!found) return label === undefined && (await scopeOfRequest()).tenantId === null;
    const { session } = admittedIn(opened, found) ?? {};
    if (!session) return false;
    const tenantId = label?.tenantId ?? null;
    if (label && !(await isOf(settled(label.tenantId), label))) return false;
    const row = { ...session, token: key, tenantId };
    if (!(await mayUse(currentBorder(), row))) return false;
    notes().sessionTokens.set(key, { ...session, tenantId, hasOwnEntry });
    return true;
  }

  async function isOf({ tenantId }: Settled, label: Opened["label"]): Promise<boolean> {
    if (tenantId === null || !label) return tenantId === null && !label;
    if (label.tenantId !== tenantId) return false;
    return label.since === (notes().sweeping ?? (await currentBorder().tenantSince(tenantId)));
  }

  /**
   * R8, R14: hooks that run after ours may have changed the session, it may never reach the adapter,
   * and a plugin may have written it past all hooks. Whoever was vouched for when it was made or read
   * need not be again, nor in a copy of it. One that is written without being prolonged keeps its
   * end, as in the database.
   */
  async function admitted(
    scope: Settled,
    key: string,
    { whole, session: given, user }: SessionValue,
    hasOwnEntry: boolean,
  ): Promise<string> {
    const border = currentBorder();
    const { tenantId } = scope;
    const session = { ...given, tenantId };
    const { sessionTokens } = notes();
    const known = sessionTokens.get(key) ?? sessionTokens.get(String(session.token));
    const whose = new Set([session.userId, user?.id].map((id) => String(id ?? "")));
    if (known?.tenantId === tenantId) whose.delete(String(known.userId));
    for (const userId of whose) await admit(border, scope, { ...session, userId });
    const { expiresAt = "" } = session;
    const isProlonged = !(new Date(expiresAt) <= new Date(known?.expiresAt ?? 0));
    if (isProlonged) Object.assign(session, await border.policy.capExpiry(scope, { expiresAt }));
    sessionTokens.set(key, { ...session, hasOwnEntry });
    return JSON.stringify({ ...whole, session, user: { ...user, tenantId } });
  }

  return {
    get: async (key) => {
      const found = await locate(key);
      // R6: a replayed callback must not find its state a second time.
      const { heldState } = notes();
      const isConsumed =
        found && heldState && isState(verificationIn(found.value), await heldState);
      if (!isConsumed) return found?.value ?? null;
      if (raw.getAndDelete) return open(await raw.getAndDelete(found.at)).value ?? null;
      // Storages from before better-auth required it: read, then deleted, as better-auth does.
      await raw.delete(found.at);
      return found.value;
    },

    getAndDelete: async (key) => {
      const found = await locate(key);
      return found ? (open(await raw.getAndDelete(found.at)).value ?? null) : null;
    },

    set: async (key, value, ttl) => {
      const session = sessionIn(value);
      const { sessionTokens } = notes();
      // One that nobody here has made or read: it may be there already.
      if (session && !sessionTokens.has(key)) await locate(key);
      const scope = await scopeOf(key);
      const { tenantId } = scope;
      if (!(await isAboutSomebody(currentBorder(), scope, key))) return;
      const { hasOwnEntry = !sessionTokens.has(key) } = sessionTokens.get(key) ?? {};
      const at = hasOwnEntry ? keyIn(scope, key) : key;
      const since = tenantId === null ? "" : await currentBorder().tenantSince(tenantId);
      if (since === undefined) throw tenantError("TENANT_NOT_FOUND");
      const kept = session ? await admitted(scope, key, session, hasOwnEntry) : value;
      if (tenantId === null) return raw.set(at, isPlain(kept) ? kept : withLabel(kept), ttl);
      return raw.set(at, withLabel(kept, { tenantId, since, session: Boolean(session) }), ttl);
    },

    delete: async (key) => {
      const scope = await scopeOf(key);
      const { label, value } = mayBeSession(key) ? open(await raw.get(key)) : EMPTY;
      const { sweeping, visitor } = notes();
      const isSameTenant = sweeping === undefined || sweeping === label?.since;
      const isOwn = (label?.tenantId ?? null) === scope.tenantId && isSameTenant;
      // What takes a session out of the visitor's index ends it: unlisted, it would outlive a ban.
      const { session } = sessionIn(value) ?? {};
      const isVisitors = !label && visitor && session?.userId === visitor.userId;
      if (value != null && (isOwn || isVisitors)) return raw.delete(key);
      // R5: a sign-out here must not drop the cookie of a session that is good there.
      if (session) notes().elsewhere.add(key);
      if (!label) await raw.delete(keyIn(scope, key));
    },

    increment: async (key, ttl) => raw.increment(keyIn(await scopeOfRequest(), key), ttl),
  };
}

/** Reads a session below the border, for `readSession`. */
async function storedSession(
  storage: SecondaryStorage,
  token: string,
): Promise<StoredSession | undefined> {
  const opened = open(await rawStorage(storage).get(token));
  const { session } = admittedIn(opened) ?? {};
  if (!session) return undefined;
  const { tenantId = null, since } = opened.label ?? {};
  return { session: { ...session, tenantId }, since };
}

/** Newer better-auth marks whomever an administrator names, be there such a user here or not. */
async function isAboutSomebody(border: Border, scope: Settled, key: string): Promise<boolean> {
  const [, userId] = ENDED.exec(key) ?? [];
  if (userId === undefined) return true;
  const vouching = vouchForUser(border, await belowBorder(border), scope, userId);
  return vouching.then(
    () => true,
    (error) => {
      if (isAPIError(error)) return false;
      throw error;
    },
  );
}

/** What every session that is made here is asked for: its tenant, its user, and the policy. */
async function admit(border: Border, scope: Settled, session: Row): Promise<void> {
  const adapter = await belowBorder(border);
  const { tenantId } = scope;
  const now = { tenantId, createdAt: new Date() };
  if (tenantId !== null && (await border.openSince(now, adapter)) === undefined) {
    throw tenantError("TENANT_SUSPENDED");
  }
  await vouchForUser(border, adapter, scope, session.userId);
  await border.policy.admitRow("session", scope, session, adapter);
}
