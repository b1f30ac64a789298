import {
  getCurrentDBAdapterAsyncLocalStorage,
  getRequestStateAsyncLocalStorage,
  runWithRequestState,
} from "@better-auth/core/context";
import { BetterAuthError } from "better-auth";

/** Where code runs: the tenant, or the platform, whose rows it sees. */
export interface Scope {
  /** null is the platform: no tenant. */
  readonly tenantId: string | null;
  /**
   * How far the request reaches, on the endpoints of better-auth's admin plugin: an operator visits
   * one tenant, or sees all of them. Everyone else has their own.
   */
  readonly access: "own" | "visits" | "all";
}

/** What the isolation has to know of a session, wherever it was read. */
export type SessionRow = {
  token?: string;
  userId?: string;
  tenantId?: string | null;
  expiresAt?: Date | string;
  createdAt?: Date | string;
  impersonatedBy?: string | null;
};

/** An OAuth state that came back: better-auth's part, the tenant that it claims, a signature. */
export interface ReturnedState {
  state: string;
  tenantId: string;
  signature?: string | undefined;
}

/** A user that was read or created, as far as the columns were asked for. */
interface KnownUser {
  tenantId: string | null;
  email?: unknown;
  emailVerified?: unknown;
}

/** What a request learns on its way. */
export interface Notes {
  /** The endpoint that the request is about, as opposed to those that it calls through `auth.api`. */
  endpoint?: object;
  /** True from the first call on that came with a request or headers: it is not the server's own. */
  isVisited?: boolean;
  /** True where the resolver said that there is no tenant: a link may still lead into its tenant. */
  decidedByResolver?: boolean;
  /** The session of the operator who visits a tenant: good in it, and no other of the platform. */
  visitor?: { token: string; userId: string };
  /** True while an admin endpoint itself runs, and false once it is done: nobody visits after it. */
  isOpen?: boolean;
  /** Whether a session may manage the users of a tenant, by its token and that tenant. */
  operators?: Map<string, Promise<boolean>>;
  /**
   * A token that came in sealed, and what was in it. One for `/verify-email` says an address, and its
   * seal says which user the link was mailed for.
   */
  openedToken?: { sealed: string; token: string; userId?: string; email?: unknown };
  /** The state of an OAuth callback that may be consumed: the browser has shown its cookie. Undefined if not. */
  heldState?: Promise<string | undefined>;
  /** The address of a provider that an app opens in a browser, with the label in its state. */
  openedAddress?: string;
  /** What a provider's callback came back with: its state, and the tenant in its redirect URI. */
  returned?: { state: ReturnedState | undefined; tenant: string | undefined };
  /** What the invitation of a sign-up writes into its user, and the address that it is for. */
  invited?: { email: string; data: Record<string, unknown> };
  /** Who manages the identity providers of the scope, and whether they belong somewhere else. */
  managing?: { userId: string; isGuest: boolean };
  /** The domains that the identity provider of the request was shown to speak for. */
  vouchedDomains?: readonly string[] | undefined;
  /** A user of the directory whose address that provider proves, though it is not verified yet. */
  provenUser?: string;
  /** True where the directory of the tenant asks: it makes users whom the tenant wants to have. */
  directory?: boolean;
  /** The user that it has created in this request. */
  createdByDirectory?: string;
  /** The user whom the directory asks about, and the one whom it has just deleted. */
  directoryUser?: string;
  deprovisioned?: string;
  /** The user whom the directory has deactivated: nobody whom the tenant would lose. */
  letGo?: string | undefined;
  /** What better-auth marks as good once: the ids that it asks for, and who finds their rows. */
  reserved?: Map<unknown, (findOne: (call: never) => Promise<unknown>) => Promise<unknown>>;
  /** Cookies of sessions that were taken out of the request: they stay in the browser (R5). */
  readonly keptCookies: Set<string>;
  /** The headers of the request before anything was taken out. */
  sent?: Headers;
  /** The tenants in the prefixes of the credentials that the request carries. */
  prefixes?: Set<string | null>;
  /** True where only a prefix has led the request into its tenant. */
  enteredByPrefix?: boolean;
  /** The endpoint of better-auth that a tenant route runs. */
  running?: string;
  /** Accounts that were read: tokens in them are for the host that they are from. */
  accounts?: Record<string, unknown>[];
  /** Users that were read or created through the isolation, and their tenant (R8). */
  readonly knownUsers: Map<string, KnownUser>;
  /** Hosts in addresses that the request carries, and the tenant that the resolver gives them to. */
  readonly hosts: Map<string, string | null>;
}

type RequestStorage = Awaited<ReturnType<typeof getRequestStateAsyncLocalStorage>>;
type AdapterStorage = Awaited<ReturnType<typeof getCurrentDBAdapterAsyncLocalStorage>>;

/**
 * A process may hold several copies of this package: a bundle for routes and one for actions, or
 * the modules of before and after a hot reload. They share one scope, or they would not see in
 * which tenant the other copy runs.
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
  notes?: Notes;
  slots?: Map<object, unknown>;
}

const VERSION = 3;
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
 * Without AsyncLocalStorage, better-auth may use a single variable instead, which belongs to the
 * latest request until that one is done. Concurrent requests would share one scope.
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

const createNotes = (): Notes => ({
  keptCookies: new Set(),
  knownUsers: new Map(),
  hosts: new Map(),
});

/** What better-auth keeps of the running request or transaction: the adapter that it gives out. */
export const currentTransaction = () => shared.adapters?.getStore();

function known(): Known {
  const store = shared.storage?.getStore();
  const found = store?.get(shared) as Known | undefined;
  if (found) return found;
  const made = {};
  store?.set(shared, made);
  return made;
}

/** The scope that the request was put into; undefined before that. */
export const enteredScope = (): Scope | undefined => known().scope ?? around()?.scope;

/** What surrounds the running request, if anything does. */
export const around = () => shared.around?.getStore();

/** The scope of the running code. Code that no request has put anywhere runs on the platform. */
export const currentScope = (): Scope => enteredScope() ?? PLATFORM_SCOPE;

/**
 * The scope that the request has named or is in already: what a link, a provider or an event says
 * cannot change it. A resolver that knows no tenant leaves that to them.
 */
export const namedScope = (): Scope | undefined =>
  notes().decidedByResolver ? undefined : enteredScope();

/** What the running request has learned so far. */
export function notes(): Notes {
  const here = known();
  here.notes ??= createNotes();
  return here.notes;
}

/** A value that the running request keeps for one feature. */
export interface RequestSlot<T> {
  get(): T;
  set(value: T): void;
}

/**
 * Declares what a feature has to remember during a request:
 * `const seenUsers = requestSlot(() => new Map<string, User>())`. A request made inside another has
 * slots of its own.
 */
export function requestSlot<T>(create: () => T): RequestSlot<T>;
export function requestSlot<T>(): RequestSlot<T | undefined>;
export function requestSlot<T>(create?: () => T): RequestSlot<T | undefined> {
  const slot: RequestSlot<T | undefined> = {
    get() {
      const { slots } = known();
      const value = slots?.get(slot) as T | undefined;
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
  return around() ? ((await shared.around?.run({}, run)) as T) : await run();
}

/** Runs a function outside of every request, so that each call it makes is a request of its own. */
const runOutside = <T>(what: Around, fn: () => T): T =>
  shared.around && shared.storage
    ? shared.around.run(what, () => (shared.storage as RequestStorage).run(undefined as never, fn))
    : fn();

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
  return await runOutside({ scope: scopeOf(tenantId) }, fn);
}

/**
 * The tenant that the running code works for; null on the platform. Works in every hook, mail sender
 * and callback that better-auth calls during a request.
 */
export const getTenantId = (): string | null => currentScope().tenantId;
