import {
  type AuthEndpointContext,
  getCurrentDBAdapterAsyncLocalStorage,
  getRequestStateAsyncLocalStorage,
  runWithRequestState,
} from "@better-auth/core/context";
import { BetterAuthError } from "better-auth";
import type { AdapterCall } from "./database";

/** The tenant, or the platform, that the current code runs in. */
export interface Scope {
  /** null is the platform: no tenant. */
  readonly tenantId: string | null;
  /** On admin endpoints, an operator `visits` one tenant or sees `all` of them. */
  readonly access: "own" | "visits" | "all";
}

type RequestStorage = Awaited<ReturnType<typeof getRequestStateAsyncLocalStorage>>;
type AdapterStorage = Awaited<ReturnType<typeof getCurrentDBAdapterAsyncLocalStorage>>;

/**
 * What all copies of this package in a process share. There may be several: a bundle for routes and
 * one for actions, or the modules from before and after a hot reload.
 */
interface Shared {
  version: number;
  storage?: RequestStorage;
  adapters?: AdapterStorage;
  surroundings?: AsyncStorage<Surroundings>;
}

/**
 * The `runInTenant` or resolver that code runs inside of. Each call of `auth.api` there is a
 * separate request.
 */
interface Surroundings {
  scope?: Scope;
  /** True inside the application's resolver, which is not called again there. */
  isResolving?: boolean;
}

/** Node's AsyncLocalStorage, as far as this package uses it. */
interface AsyncStorage<Store> {
  run<T>(store: Store, fn: () => T): T;
  getStore(): Store | undefined;
}

/** A user whom the request has read or created, with the columns that isolation needs. */
export interface KnownUser {
  tenantId: string | null;
  email?: unknown;
  emailVerified?: unknown;
  /** The generation that the request read first. Later reads of the user do not replace it. */
  generation?: string | null | undefined;
}

/** One cookie of a `cookie` header, as it was sent. */
export interface SentCookie {
  text: string;
  name: string;
  /** The value of a session cookie without its signature. Empty for other cookies. */
  token: string;
}

/** An endpoint that is running, with the properties that the core reads. */
export type Endpoint = Pick<AuthEndpointContext, "context" | "path" | "headers"> &
  Partial<Pick<AuthEndpointContext, "request" | "body" | "query" | "params" | "responseHeaders">>;

/** Runs an adapter call that finds the row of a reservation. */
export type FindReserved = (call: AdapterCall) => Promise<unknown>;

/*
 * Words of the record: an operator who calls an admin endpoint *visits* a tenant
 * (`cross-tenant.ts`). A token in a mailed link is *sealed*: encrypted together with its tenant
 * (`links.ts`). A user's sessions end together by a new *generation* (`generations.ts`). A
 * *reservation* is a row that marks a value as used (`single-use.ts`).
 */

/**
 * What the core knows about one request. By agreement, only the core writes it: a feature that must
 * remember something declares a `requestSlot`. A request inside another request has a separate
 * record.
 */
export class RequestRecord {
  /** The scope that the request was put into. Set by `enter` and `runInScope`; undefined before. */
  scope?: Scope;

  /**
   * Set by `resolve/enter.ts`:
   * - `credential`: only a credential named the tenant. `requestedTenantId` and the names of
   *   cookies do not go by this tenant.
   * - `resolver without tenant`: the resolver returned `false`. A mailed link or a claim may still
   *   lead the request into a tenant.
   */
  enteredBy?: "credential" | "resolver without tenant";

  /**
   * The endpoint that the request is about, unlike those that it calls through `auth.api`. Set by
   * `noteEndpoint` when the first endpoint begins.
   */
  endpoint?: Endpoint;

  /** Whether a call came with a request or headers. Set by `noteEndpoint`. See `isServerCall`. */
  hasCaller = false;

  /**
   * Whether the tenant's directory makes the request, which may create any user. Set by
   * `enterClaim` in `resolve/enter.ts`, see `Claim.isTenantItself`.
   */
  isTenantItself = false;

  /**
   * The tenants in the token prefixes of the request's credentials. Set by `enterByPrefix`, if
   * nothing else has named the tenant.
   */
  sentPrefixes?: ReadonlySet<string | null>;

  /** The headers before a credential was removed from them. Set by `removeForeignCredentials`. */
  sentHeaders?: Headers;

  /**
   * Names of session cookies that the browser keeps (R5), even if better-auth's response deletes
   * them. Added by `keepCookie`.
   */
  readonly keptCookies = new Set<string>();

  /** The last parsed `cookie` header. Several functions read the same header. */
  parsedCookies?: { header: string; sessionName: string; cookies: SentCookie[] };

  /**
   * True while `isSignedIn` looks for the session of a token. There, a session that may only set up
   * a second factor counts as well.
   */
  isCheckingPrefix = false;

  /**
   * The hosts about which the request has asked the resolver, with the tenant that owns the host;
   * null if none does. Set by `findOwners` in `resolve/addresses.ts`, which does not ask again.
   */
  readonly hostOwners = new Map<string, string | null>();

  /**
   * The sealed token of a mailed link, and what it contains. Set by `openSealedToken`. A token for
   * `/verify-email` contains only an email. For this token, `userId` and `email` say to whom the
   * link was mailed: see `isHiddenUser`.
   */
  openedToken?: { sealed: string; token: string; userId?: string; email?: unknown };

  /**
   * The users that calls of the isolated adapter have returned, by id, the most recent last. Users
   * without their `tenantId` are left out. Set by `rememberUser`.
   */
  readonly users = new Map<string, KnownUser>();

  /** The generations that the request has started, by user id. Set by `startGeneration`. */
  readonly startedGenerations = new Map<string, string>();

  /**
   * The session of an operator who visits a tenant. It is valid there. Set by `beginVisit`, after
   * it has checked that the user is an operator.
   */
  visitor?: { token: string; userId: string };

  /**
   * Whether the admin endpoint itself is running. Set by the hooks around better-auth's admin
   * endpoints. Hooks of other plugins before it run on the platform, or in the tenant that the
   * request names; those after it run in the tenant that was visited, if any.
   *
   * Guarded by "R3: a before hook that asks who is there sees and changes the platform's, for an operator too".
   */
  adminEndpoint?: "running" | "done";

  /**
   * The OAuth state of the running callback; undefined if the browser did not send the state's
   * cookie. Set by `consumeWhenRead`. better-auth reads a state and deletes it later. The plugin
   * deletes this state as soon as it is read, so that a replayed callback finds nothing (R6).
   */
  heldState?: Promise<string | undefined>;

  /**
   * The ids that better-auth reserves in this request, and how to find their rows. Set by
   * `guardInternalAdapter`, which wraps `reserveVerificationValue`.
   */
  reservations?: Map<unknown, (find: FindReserved) => Promise<unknown>>;

  /** The values of features: see `requestSlot`. */
  readonly slots = new Map<object, unknown>();

  constructor(scope?: Scope) {
    if (scope) this.scope = scope;
  }
}

/** Raise it when `RequestRecord` or `Shared` changes: copies of the package share them. */
const VERSION = 5;
const SHARED = Symbol.for("better-auth-tenant");
const holder = globalThis as { [SHARED]?: Shared };
holder[SHARED] ??= { version: VERSION };
const shared: Shared = holder[SHARED];

/**
 * Finds the AsyncLocalStorage behind better-auth's request state. The storage can be read at once;
 * better-auth's own functions need several awaits.
 */
export async function prepareScopes(): Promise<void> {
  if (shared.version !== VERSION) {
    throw new BetterAuthError(
      "tenantAuth(): two versions of better-auth-tenant are loaded, and cannot share a request. Install one.",
    );
  }
  const storage = await getRequestStateAsyncLocalStorage();
  if (!keepsRequestsApart(storage)) {
    throw new BetterAuthError("tenantAuth() requires AsyncLocalStorage, which this runtime lacks");
  }
  shared.storage = storage;
  shared.surroundings ??= createAsyncStorage<Surroundings>();
  shared.adapters = await getCurrentDBAdapterAsyncLocalStorage();
}

/** Creates an AsyncLocalStorage, with the class that better-auth found in this runtime. */
export function createAsyncStorage<Store>(): AsyncStorage<Store> {
  const storage = shared.storage as RequestStorage;
  return new (storage.constructor as new () => AsyncStorage<Store>)();
}

/**
 * Returns whether concurrent requests have separate state. Without AsyncLocalStorage, better-auth
 * may use a single variable, which belongs to the latest request. Concurrent requests would share
 * one scope.
 */
function keepsRequestsApart(storage: RequestStorage): boolean {
  const probe = new WeakMap<object, unknown>();
  void storage.run(probe, async () => {});
  return storage.getStore() !== probe;
}

export const scopeOf = (tenantId: string | null, access: Scope["access"] = "own"): Scope => ({
  tenantId,
  access,
});

export const PLATFORM_SCOPE = scopeOf(null);

/** Returns better-auth's record of the running transaction, if there is one. */
export const currentTransaction = () => shared.adapters?.getStore();

const findRecord = () => shared.storage?.getStore()?.get(shared) as RequestRecord | undefined;

/**
 * Returns the record of the running request, which the first call creates. Outside of a request,
 * returns a new record that is not kept.
 */
export function currentRequest(): RequestRecord {
  const existing = findRecord();
  if (existing) return existing;
  const record = new RequestRecord();
  shared.storage?.getStore()?.set(shared, record);
  return record;
}

/** A value that the running request keeps for one feature. */
export interface RequestSlot<T> {
  get(): T;
  set(value: T): void;
}

/**
 * Declares what a feature must remember during a request: `const seenUsers = requestSlot(() => new
 * Map<string, User>())`. A request inside another request has separate values.
 */
export function requestSlot<T>(create: () => T): RequestSlot<T>;
export function requestSlot<T>(): RequestSlot<T | undefined>;
export function requestSlot<T>(create?: () => T): RequestSlot<T | undefined> {
  const slot: RequestSlot<T | undefined> = {
    get() {
      const value = currentRequest().slots.get(slot) as T | undefined;
      if (value !== undefined || !create) return value;
      const created = create();
      slot.set(created);
      return created;
    },
    set(value) {
      currentRequest().slots.set(slot, value);
    },
  };
  return slot;
}

const surroundings = () => shared.surroundings?.getStore();

/** Returns the scope of the `runInTenant` that the request runs inside of, if there is one. */
export const surroundingScope = (): Scope | undefined => surroundings()?.scope;

/** Returns whether the application's resolver makes this call: see `runAsResolver`. */
export const isResolving = (): boolean => surroundings()?.isResolving === true;

/**
 * Returns the scope that the request has entered; before that, the one of the `runInTenant` around
 * it, or undefined. `currentScope` is what code may read and change. It is never undefined.
 */
export const enteredScope = (): Scope | undefined => findRecord()?.scope ?? surroundingScope();

/** Returns whether the scope is final, so that no link, provider or event can replace it. */
export function isScopeFinal(): boolean {
  const scope = enteredScope();
  const { enteredBy } = currentRequest();
  const isOpen = enteredBy === "resolver without tenant" && scope?.tenantId === null;
  return scope !== undefined && !isOpen;
}

/**
 * Puts the running request into a scope from here on. Calls in a separate request (`runInScope`)
 * have their own. Outside of a request, nothing is kept.
 */
export function enter(scope: Scope): Scope {
  currentRequest().scope = scope;
  return scope;
}

/**
 * Runs a function in a new request; the current request keeps its scope. Without a scope, the new
 * request finds its own.
 */
export async function runInScope<T>(scope: Scope | undefined, fn: () => Promise<T>): Promise<T> {
  const run = async () =>
    await runWithRequestState(new WeakMap([[shared, new RequestRecord(scope)]]), fn);
  const surrounding = surroundings();
  if (!surrounding) return await run();
  // Inside, the scope of the surrounding `runInTenant` must not count.
  const { isResolving } = surrounding;
  return (await shared.surroundings?.run(isResolving ? { isResolving } : {}, run)) as T;
}

/**
 * Runs a function outside of every request: each call of `auth.api` there is a separate request.
 */
const runOutside = <T>(what: Surroundings, fn: () => T): T =>
  (shared.surroundings as AsyncStorage<Surroundings>).run(what, () =>
    (shared.storage as RequestStorage).run(undefined as never, fn),
  );

/**
 * Runs the application's resolver. Calls that the resolver makes do not run it again.
 */
export const runAsResolver = <T>(resolve: () => T): T => runOutside({ isResolving: true }, resolve);

/**
 * Runs server code that belongs to no request (a job, a seed, a test) inside a tenant: of isolated
 * models, calls of better-auth see only that tenant's rows. A tenant route may name another tenant.
 */
export async function runInTenant<T>(tenantId: string, fn: () => Promise<T>): Promise<T> {
  if (typeof tenantId !== "string" || tenantId === "") {
    throw new BetterAuthError("runInTenant() requires the id of a tenant as a non-empty string");
  }
  // In a script, no instance may have started yet. The script must not run on the platform.
  if (!shared.surroundings) await prepareScopes();
  return await runOutside({ scope: scopeOf(tenantId) }, fn);
}

/**
 * Returns the id of the tenant that the running code works for; null on the platform. Works in
 * hooks, mail senders and callbacks that better-auth calls after the request has entered its scope.
 * Null before that, as in `onRequest`.
 */
export const getTenantId = (): string | null => (enteredScope() ?? PLATFORM_SCOPE).tenantId;
