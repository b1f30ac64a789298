import { getCurrentAdapter } from "@better-auth/core/context";
import { BetterAuthError } from "better-auth";
import { APIError } from "better-auth/api";
import type { SecondaryStorage } from "better-auth/db";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import { currentEndpoint, settledScope } from "../scope/endpoint";
import type { SessionRow } from "../scope/scope";
import { notes, type Settled, settled } from "../scope/scope";
import { settle } from "../scope/settle";
import {
  type Border,
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
import { belowBorders, isBelow, METHODS, type Methods, replaceMethods } from "./storage-methods";

/**
 * R10: what a tenant keeps in secondary storage carries a label of ours around the value, whatever
 * the value looks like. A value without a label was there before us, or is the platform's.
 */
interface Label {
  tenantId: string;
  /** When the tenant was created: a number may be given to a second tenant. */
  since: string;
  /** True for a session, which is stored under its token alone. */
  session?: boolean;
}

interface Opened {
  label?: Label | undefined;
  value: unknown;
}

const LABEL = "tenantAuth";

/** What is kept of somebody's sessions, under their id; the second by newer better-auth. */
const OF_USER = /^(?:active-sessions|revoked-sessions-before)-(.+)/s;

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
    const run = (await isBelow()) ? below : (confined[name] ?? below);
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
    borderOf(currentEndpoint()?.context.adapter ?? storage) ?? (borderOf(storage) as Border);
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
      if (await isVisible(key, plain)) return { at: key, value: plain.value };
      if (plain.label) return undefined;
    }
    const scope = await scopeOf(key);
    const at = keyIn(scope, key);
    // Without a label and not visible: a session that a tenant left there before there were labels.
    if (at === key && plain.value != null) return undefined;
    const { label, value } = open(await raw.get(at));
    return (await isOf(scope, label)) ? { at, value } : undefined;
  }

  /** Whether something that is stored under a token alone may be seen: a session mostly. */
  async function isVisible(key: string, { label, value }: Opened): Promise<boolean> {
    const { session, user } = sessionIn(value);
    if (!session) return label === undefined && (await scopeOfRequest()).tenantId === null;
    if (!label && (session.tenantId || user?.tenantId)) return false;
    const border = currentBorder();
    const tenantId = label?.tenantId ?? null;
    if (label && !(await isOf(settled(label.tenantId), label))) return false;
    if (!(await mayUse(border, { ...session, token: key, tenantId }, user))) return false;
    notes().sessionTokens.set(key, { ...session, tenantId });
    return true;
  }

  async function isOf({ tenantId }: Settled, label: Label | undefined): Promise<boolean> {
    if (tenantId === null || !label) return tenantId === null && !label;
    if (label.tenantId !== tenantId) return false;
    return label.since === (notes().sweeping ?? (await currentBorder().tenantSince(tenantId)));
  }

  /**
   * R8, R14: hooks that run after ours may have changed the session, and it may never reach the
   * adapter. One that is written without being prolonged keeps its end, as in the database.
   */
  async function admitted(scope: Settled, key: string, value: string): Promise<string> {
    const { session: given, user } = sessionIn(value);
    if (!given) return value;
    const border = currentBorder();
    const session = { ...given, tenantId: scope.tenantId };
    if (session.userId !== user?.id) {
      const adapter = await getCurrentAdapter(border.ctx.adapter);
      await vouchForUser(border, adapter, scope, session.userId);
      await border.policy.admitRow("session", scope, session, adapter);
    }
    const { expiresAt = "" } = session;
    const before = notes().sessionTokens.get(key)?.expiresAt ?? 0;
    const isProlonged = !(new Date(expiresAt) <= new Date(before));
    if (isProlonged) Object.assign(session, await border.policy.capExpiry(scope, { expiresAt }));
    notes().sessionTokens.set(key, session);
    return JSON.stringify({ ...(parse(value) as object), session });
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
      const session = notes().sessionTokens.has(key);
      const scope = await scopeOf(key);
      const { tenantId } = scope;
      const at = session ? key : keyIn(scope, key);
      const kept = session ? await admitted(scope, key, value) : value;
      if (tenantId === null)
        return raw.set(at, isPlain(kept) ? kept : withLabel(kept, PLATFORM_LABEL), ttl);
      const since = await currentBorder().tenantSince(tenantId);
      if (since === undefined) {
        throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
      }
      return raw.set(at, withLabel(kept, { tenantId, since, session }), ttl);
    },

    delete: async (key) => {
      const scope = await scopeOf(key);
      const { label, value } = mayBeSession(key) ? open(await raw.get(key)) : EMPTY;
      const { sweeping, visitor } = notes();
      const isSameTenant = sweeping === undefined || sweeping === label?.since;
      const isOwn = (label?.tenantId ?? null) === scope.tenantId && isSameTenant;
      // What takes a session out of the visitor's index ends it: unlisted, it would outlive a ban.
      const { session } = sessionIn(value);
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
  const { label, value } = open(await rawStorage(storage).get(token));
  const { session, user } = sessionIn(value);
  if (!session || (!label && (session.tenantId || user?.tenantId))) return undefined;
  return { session: { ...session, tenantId: label?.tenantId ?? null }, since: label?.since };
}

const EMPTY: Opened = { value: undefined };
/** Around a value of the platform that could be taken for a labelled one. */
const PLATFORM_LABEL: Label = { tenantId: "", since: "" };

const withLabel = (value: string, label: Label) => JSON.stringify({ [LABEL]: label, value });

const isPlain = (value: string) => open(value).value === value;

/** Storages give back the text that was stored, the same in another layout, or what is in it. */
function open(stored: unknown): Opened {
  const text = typeof stored === "string" ? stored : undefined;
  const parsed = text?.includes(LABEL) ? parse(text) : stored;
  if (!isObject(parsed) || !Object.hasOwn(parsed, LABEL)) return { value: stored };
  const label = parsed[LABEL] as Label;
  return label?.tenantId === "" ? { value: parsed.value } : { label, value: parsed.value };
}

/** A session as better-auth or one of its plugins stores it. */
function sessionIn(value: unknown): { session?: SessionRow; user?: Row } {
  const parsed = typeof value === "string" ? parse(value) : value;
  if (!isObject(parsed) || !isObject(parsed.session)) return {};
  return { session: parsed.session, ...(isObject(parsed.user) && { user: parsed.user }) };
}

function verificationIn(value: unknown): unknown {
  const parsed = typeof value === "string" ? parse(value) : value;
  return isObject(parsed) ? parsed.value : undefined;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
