import {
  getCurrentDBAdapterAsyncLocalStorage,
  getRequestStateAsyncLocalStorage,
  runWithRequestState,
} from "@better-auth/core/context";
import { lazy } from "../framework";
import { noAsyncLocalStorage, notATenantId, twoVersions } from "../misuse";
import type { TenantPolicy } from "../policy";
import { running } from "./instance";

/**
 * Where a request runs. *Not known yet* is a state of its own, so that it can never be taken for
 * the platform (R4).
 */
export type Scope = Pending | Settled;

interface Pending {
  readonly kind: "pending";
}

export interface Settled {
  readonly kind: "settled";
  /** null is the platform: no tenant. */
  readonly tenantId: string | null;
  /**
   * How far the request reaches, on the endpoints of better-auth's admin plugin: an operator visits
   * one tenant, or sees all of them. Every other user has their own.
   */
  readonly reach: "own" | "visits" | "all";
}

/** What the border has to know of a session, wherever it was read. */
export type SessionRow = {
  token?: string;
  userId?: string;
  tenantId?: string | null;
  expiresAt?: Date | string;
  createdAt?: Date | string;
  impersonatedBy?: string | null;
  /** When its tenant was created, where that has been looked up. */
  since?: string | null | undefined;
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

/** True for one that is stored as another entry of its tenant: nobody has seen it being made. */
type NotedSession = SessionRow & { hasOwnEntry?: boolean };

/** What a request learns on its way. */
export interface Notes {
  /** The endpoint that the request is about, as opposed to those that it calls through `auth.api`. */
  endpoint?: object;
  /** True from the first call on that came with a request or headers: it is not the server's own. */
  isVisited?: boolean;
  /** Set while the credential of the request is being looked up, which happens once. */
  settling?: Promise<Settled> | undefined;
  /** True inside the application's resolver: what it asks better-auth cannot ask the resolver again. */
  resolving?: boolean;
  /** The headers of a request that was found to carry no session: they need not be looked at again. */
  deadCredential?: string;
  /** True while better-auth opens a session that is to settle the scope: no scope is checked then. */
  reading?: boolean;
  /** Set while a tenant is deleted, to when it was created: its labels are readable without its row. */
  sweeping?: string;
  /** True where the resolver said that there is no tenant: a link may still lead into its tenant. */
  decidedByResolver?: boolean;
  /** The session of the operator who visits a tenant: good in it, and no other of the platform. */
  visitor?: { token: string; userId: string };
  /** True while an admin endpoint itself runs, and false once it is done: nobody visits after it. */
  isOpen?: boolean;
  /** Whether a session may manage the users of a tenant, by its token and that tenant. */
  operators?: Map<string, Promise<boolean>>;
  /** What the tenants that it has looked at have decided; null where nothing. */
  policies?: Map<string, TenantPolicy | null>;
  /** When the tenant of the request was created: its number may be given again meanwhile. */
  since?: string;
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
  /** The user who is being deleted, where it is known that an administrator is left. */
  leaving?: string | undefined;
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
  /** Tokens of sessions of somewhere else that the request turned out to carry (R5). */
  readonly elsewhere: Set<string>;
  /** Accounts that were read: tokens in them are for the host that they are from. */
  accounts?: Record<string, unknown>[];
  /** Users that were read or created through the border, and their tenant (R8). */
  readonly knownUsers: Map<string, KnownUser>;
  /**
   * Tokens of sessions that the request has made or read, whose users were vouched for. These are
   * stored under their plain token. With what secondary storage holds of them.
   */
  readonly sessionTokens: Map<string, NotedSession>;
  /** At log level "debug": what named the tenant, and whether the request's line was written. */
  namedBy?: string | undefined;
  traced?: boolean;
  /** Hosts in addresses that the request carries, and the tenant that the resolver gives them to. */
  readonly hosts: Map<string, string | null>;
  /** How many of these the caller has chosen. */
  carriedHosts?: number;
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
  /** Stands for all instances: `runInTenant` is for each of them. */
  everyone: object;
  storage?: RequestStorage;
  adapters?: AdapterStorage;
}

/** What is known of a request, by the instance whose request it is. */
interface Known {
  scope?: Scope;
  notes?: Notes;
}

const VERSION = 2;
const SHARED = Symbol.for("better-auth-tenant");
const holder = globalThis as { [SHARED]?: Shared };
holder[SHARED] ??= { version: VERSION, everyone: {} };
const shared: Shared = holder[SHARED];

/** better-auth's request state is read through several awaits; the storage behind it is not. */
export async function prepareScopes(): Promise<void> {
  if (shared.version !== VERSION) throw twoVersions();
  const storage = await getRequestStateAsyncLocalStorage();
  if (!keepsRequestsApart(storage)) throw noAsyncLocalStorage();
  shared.storage = storage;
  shared.adapters = await getCurrentDBAdapterAsyncLocalStorage();
}

/**
 * Where there is no AsyncLocalStorage, better-auth may use a single variable instead, which belongs
 * to the latest request until that one is done. That would be the end of the border.
 */
function keepsRequestsApart(storage: RequestStorage): boolean {
  const probe = new WeakMap<object, unknown>();
  void storage.run(probe, async () => {});
  return storage.getStore() !== probe;
}

const PENDING: Pending = { kind: "pending" };

export const settled = (tenantId: string | null, reach: Settled["reach"] = "own"): Settled => ({
  kind: "settled",
  tenantId,
  reach,
});

const createNotes = (): Notes => ({
  elsewhere: new Set(),
  knownUsers: new Map(),
  sessionTokens: new Map(),
  hosts: new Map(),
});

/** better-auth's own storages of requests and of adapters, kept once the first instance has started. */
export const storages = () => shared as Required<Shared>;

/** What better-auth keeps of the running request or transaction: the adapter that it gives out. */
export const currentTransaction = () => shared.adapters?.getStore();

/** Loaded with the first transaction. */
export const back = lazy(() => import("./back"));

/**
 * What better-auth runs after the transaction around belongs to whoever asks for it. Nothing to wait
 * for where there is none.
 */
export const keepHooksHere = () =>
  currentTransaction()?.isTransactionActive
    ? back().then((known) => known.keepHooksHere())
    : undefined;

/** The one whose endpoint runs, else all. */
const whose = () => running() ?? shared.everyone;

function known(instance = whose()): Known {
  const store = shared.storage?.getStore();
  const found = store?.get(instance);
  if (found) return found;
  const made = {};
  store?.set(instance, made);
  return made;
}

/** The scope that `runInTenant` has given to all instances. */
export const commonScope = (): Scope => known(shared.everyone).scope ?? PENDING;

/** The scope of the running request: pending until its tenant is known, and outside of requests. */
export function currentScope(): Scope {
  return known().scope ?? commonScope();
}

/**
 * The scope that the request has named or is in already: what a link, a provider or an event says
 * cannot change it. A resolver that knows no tenant leaves that to them.
 */
export function namedScope(): Settled | undefined {
  const scope = currentScope();
  return scope.kind === "settled" && !notes().decidedByResolver ? scope : undefined;
}

/** What the running request has learned so far. */
export function notes(): Notes {
  const here = known();
  here.notes ??= createNotes();
  return here.notes;
}

/** Puts the running request, and everything it calls from here on, into the scope. */
export function enter<S extends Settled>(scope: S): S {
  known().scope = scope;
  return scope;
}

/** Runs a function in a request of its own: the request around it keeps its scope. */
export async function runInScope<T>(
  scope: Scope,
  fn: () => Promise<T>,
  instance = whose(),
): Promise<T> {
  const kept = keepHooksHere();
  if (kept) await kept;
  // What `runInTenant` says is for all instances, whichever of them asks the others.
  const common = { scope: commonScope() };
  const { resolving } = notes();
  const own: Known = resolving ? { scope, notes: { ...createNotes(), resolving } } : { scope };
  const state = new WeakMap<object, Known>([
    [shared.everyone, common],
    [instance, own],
  ]);
  return await runWithRequestState(state, fn);
}

/** Runs the application's resolver. What it asks of better-auth goes by its credential alone. */
export function runAsResolver<T>(resolve: () => T): T {
  if (!shared.storage) return resolve();
  const resolving = { ...createNotes(), resolving: true };
  return shared.storage.run(new WeakMap([[whose(), { notes: resolving }]]), resolve);
}

/**
 * Runs server code that belongs to no request (a job, a seed, a test) inside a tenant: all of
 * better-auth that it calls sees that tenant only.
 */
export async function runInTenant<T>(tenantId: string, fn: () => Promise<T>): Promise<T> {
  if (typeof tenantId !== "string" || tenantId === "") {
    throw notATenantId(tenantId);
  }
  return runInScope(settled(tenantId), fn, shared.everyone);
}

/**
 * The tenant that the running code works for; null on the platform, and while it is not known yet
 * (in a hook that runs before anything was read). Works in every hook, mail sender and callback
 * that better-auth calls during a request.
 */
export function getTenantId(): string | null {
  const scope = currentScope();
  return scope.kind === "settled" ? scope.tenantId : null;
}
