import {
  getCurrentDBAdapterAsyncLocalStorage,
  getRequestStateAsyncLocalStorage,
  runWithRequestState,
} from "@better-auth/core/context";
import { BetterAuthError } from "better-auth";

/** The tenant, or the platform, that the current code runs in. */
export interface Scope {
  /** null is the platform: no tenant. */
  readonly tenantId: string | null;
  /** Cross-tenant access, on admin endpoints: an operator visits one tenant, or sees all of them. */
  readonly access: "own" | "visits" | "all";
}

/** A session as far as isolation has to know it, wherever it was read. */
export type SessionRow = {
  token?: string;
  userId?: string;
  tenantId?: string | null;
  expiresAt?: Date | string;
  createdAt?: Date | string;
  impersonatedBy?: string | null;
  signInMethod?: string | null;
  secondFactorAt?: Date | string | null;
};

type RequestStorage = Awaited<ReturnType<typeof getRequestStateAsyncLocalStorage>>;
type AdapterStorage = Awaited<ReturnType<typeof getCurrentDBAdapterAsyncLocalStorage>>;

/**
 * A process may hold several copies of this package: a bundle for routes and one for actions, or
 * the modules of before and after a hot reload. All of them share this.
 */
interface Shared {
  version: number;
  storage?: RequestStorage;
  adapters?: AdapterStorage;
  around?: AroundStorage;
}

/** What surrounds requests: `runInTenant`, or a resolver. Each call inside is a request of its own. */
interface Around {
  scope?: Scope;
  /** What a resolver asks of better-auth must not ask the resolver again. */
  resolving?: boolean;
}

interface AroundStorage {
  run<T>(around: Around, fn: () => T): T;
  getStore(): Around | undefined;
}

/** What is known of a request. */
interface Known {
  scope?: Scope;
  slots?: Map<object, unknown>;
}

const VERSION = 4;
const SHARED = Symbol.for("better-auth-tenant");
const holder = globalThis as { [SHARED]?: Shared };
holder[SHARED] ??= { version: VERSION };
const shared: Shared = holder[SHARED];

/** better-auth's request state is read through several awaits; the storage behind it is not. */
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
  shared.around ??= new (storage.constructor as new () => AroundStorage)();
  shared.adapters = await getCurrentDBAdapterAsyncLocalStorage();
}

/**
 * Without AsyncLocalStorage, better-auth may use a single variable, which belongs to the latest
 * request until that one is done. Concurrent requests would share one scope.
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

const PLATFORM_SCOPE = scopeOf(null);

/** better-auth's record of the running transaction, if there is one. */
export const currentTransaction = () => shared.adapters?.getStore();

function known(): Known {
  const store = shared.storage?.getStore();
  const found = store?.get(shared) as Known | undefined;
  if (found) return found;
  const made = {};
  store?.set(shared, made);
  return made;
}

/** A value that the running request keeps for one feature. */
export interface RequestSlot<T> {
  get(): T;
  set(value: T): void;
}

/**
 * Declares what a feature has to remember during a request:
 * `const seenUsers = requestSlot(() => new Map<string, User>())`. A request made inside another has
 * its own.
 */
export function requestSlot<T>(create: () => T): RequestSlot<T>;
export function requestSlot<T>(): RequestSlot<T | undefined>;
export function requestSlot<T>(create?: () => T): RequestSlot<T | undefined> {
  const slot: RequestSlot<T | undefined> = {
    get() {
      const value = known().slots?.get(slot) as T | undefined;
      if (value !== undefined || !create) return value;
      const created = create();
      slot.set(created);
      return created;
    },
    set(value) {
      const here = known();
      here.slots ??= new Map();
      here.slots.set(slot, value);
    },
  };
  return slot;
}

/** What surrounds the running request, if anything does. */
export const around = () => shared.around?.getStore();

/** The scope that the request was put into; undefined before that. */
export const enteredScope = (): Scope | undefined => known().scope ?? around()?.scope;

/** The scope of the running code. Without a request, that is the platform. */
export const currentScope = (): Scope => enteredScope() ?? PLATFORM_SCOPE;

/**
 * How the request got into its scope, where that matters: only its credential led there, or the
 * resolver knows no tenant, and a link or state may still lead into one.
 */
export const enteredBy = requestSlot<"credential" | "resolver without tenant">();

/** The scope that neither a link nor a provider or event can change. One that has led there counts. */
export function namedScope(): Scope | undefined {
  const scope = enteredScope();
  const isOpen = enteredBy.get() === "resolver without tenant" && scope?.tenantId === null;
  return isOpen ? undefined : scope;
}

/** Puts the running request, and everything it calls from here on, into the scope. */
export function enter(scope: Scope): Scope {
  known().scope = scope;
  return scope;
}

/**
 * Runs a function in a request of its own: the request around it keeps its scope. Without a scope,
 * the function has to find its own.
 */
export async function runInScope<T>(scope: Scope | undefined, fn: () => Promise<T>): Promise<T> {
  const run = async () =>
    await runWithRequestState(new WeakMap([[shared, scope ? { scope } : {}]]), fn);
  const surrounding = around();
  if (!surrounding) return await run();
  const { resolving } = surrounding;
  return (await shared.around?.run(resolving ? { resolving } : {}, run)) as T;
}

/** Runs a function outside of every request, so that each call it makes is a request of its own. */
const runOutside = <T>(what: Around, fn: () => T): T =>
  (shared.around as AroundStorage).run(what, () =>
    (shared.storage as RequestStorage).run(undefined as never, fn),
  );

/** Runs the application's resolver. What it asks of better-auth goes by its credential alone. */
export const runAsResolver = <T>(resolve: () => T): T => runOutside({ resolving: true }, resolve);

/**
 * Runs server code that belongs to no request (a job, a seed, a test) inside a tenant: all of
 * better-auth that it calls sees that tenant only.
 */
export async function runInTenant<T>(tenantId: string, fn: () => Promise<T>): Promise<T> {
  if (typeof tenantId !== "string" || tenantId === "") {
    throw new BetterAuthError("runInTenant() requires the id of a tenant as a non-empty string");
  }
  // A script may come here before any instance has started. It must not run on the platform.
  if (!shared.around) await prepareScopes();
  return await runOutside({ scope: scopeOf(tenantId) }, fn);
}

/**
 * The tenant that the running code works for; null on the platform. Works in every hook, mail sender
 * and callback that better-auth calls during a request.
 */
export const getTenantId = (): string | null => currentScope().tenantId;
