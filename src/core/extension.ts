import type {
  AuthContext,
  BetterAuthOptions,
  BetterAuthPlugin,
  HookEndpointContext,
} from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import type { Guard, Row } from "./database";
import type { Hooks } from "./hooks";
import type { ResolveTenantContext } from "./options";
import type { Endpoint } from "./request";
import type { SessionRow } from "./session";

/**
 * When the core asks an extension for a claim:
 * - `path`: before it reads which tenant the request names. The claim wins over that name.
 * - `credential`: after that. The claim counts only if the request names no tenant.
 * - `target`: for management calls, which do not run in the tenant that they name. The claim says
 *   which tenant the call acts on.
 */
type ClaimPhase = "path" | "credential" | "target";

/** Says which tenant a request belongs to, by a credential that the extension can read. */
export interface Claim {
  /** null is the platform. */
  tenantId: string | null;
  /**
   * What happens if the tenant is suspended or does not exist. By default, the request is refused.
   * With `"enter"`, it runs in the suspended tenant, or on the platform if the tenant does not
   * exist.
   */
  unavailable?: "refuse" | "enter";
  /** The request counts as naming no tenant: see `credential` in `RequestRecord.enteredBy`. */
  countsAsUnnamed?: boolean;
  /** The claim also counts if the resolver returned `false`, which means no tenant. */
  overridesEmptyResolver?: boolean;
  /** The tenant's directory makes the request, so the request may create any user. */
  isTenantItself?: boolean;
  /** Called once the scope is known. `isHere`: the request runs in the tenant of the claim. */
  onScopeKnown?(isHere: boolean): void;
}

/** A user who is about to be created (R13). */
export interface Candidate {
  tenantId: string | null;
  /** The new row, which may be changed. */
  row: Row;
  /** True for server code, admin endpoints and the tenant's directory: they may create any user. */
  isTrusted: boolean;
  /**
   * Returns what to do for this user if a feature expected the user, for example by an invitation.
   * Asks the features only once.
   */
  findAdmission(): Promise<Admission | undefined>;
  ctx: AuthContext;
  /** The adapter without isolation, of the running transaction if there is one. */
  adapter?: DBTransactionAdapter | undefined;
}

/** How a feature completes the creation of a user it expected, for example by an invitation. */
export interface Admission {
  /** Values that are written into the user, such as a role or a verified email. */
  data?: Row;
  /**
   * Called before the user is created: frees the email if an existing user never verified it.
   * Returns the id of that user if its row must be kept, because a directory knows the id.
   */
  replaceUnverifiedUser?(unscoped: DBTransactionAdapter): Promise<string | undefined>;
  /** Called with the new user, in the same transaction, with the adapter without isolation. */
  accept?(user: Row, unscoped: DBTransactionAdapter): Promise<void>;
}

/** A session that is about to be created, or whose expiry is about to change (R14). */
export interface AdmittedSession {
  tenantId: string | null;
  /** The fields to write. */
  session: Row;
  /** False if the session exists, and only its fields change. */
  isNew: boolean;
  /** May see other tenants: add `tenantClause` to every condition. */
  adapter: DBTransactionAdapter;
}

/** Where a session was read. */
export interface SessionSource {
  /** The adapter that read the session from the database. Sees other tenants. */
  adapter?: DBTransactionAdapter | undefined;
  /** The session was read from a signed cookie. The database was not asked. */
  isFromCookie?: boolean;
}

/** Functions that features offer each other. Each feature adds its own by declaration merging. */
// biome-ignore lint/suspicious/noEmptyInterface: filled by declaration merging
export interface Services {}

/** Rules for the models of other plugins, which `checkSetup` enforces. */
export interface ModelRules {
  /** Models that the feature itself declares. Another plugin may only add fields to them. */
  own?: readonly string[];
  /** Models that the application need not list as scoped or shared, as `plugin.model`. */
  needNoDecision?: readonly string[];
  /** Plugins that work on the platform only. */
  platformOnly?: readonly string[];
  /** Models that must not be shared, by plugin. Without `models`, all models of the plugin. */
  neverShared?: Readonly<Record<string, { models?: string[]; because: string }>>;
  /** Returns why the models of a plugin must not be shared, if that depends on its options. */
  whyScoped?(ctx: AuthContext, plugin: BetterAuthPlugin): string | undefined;
}

/**
 * What a feature adds to the core: the core reaches features through this alone. A feature
 * implements the members that it needs. The core asks the features in the order of the list in
 * `plugin.ts`; features of our other plugins (invitations, domains) come first, but their guards
 * last. An error that a member throws becomes the response, unless the caller catches it
 * (`tenantOfHost`, `admitUser`); at startup, it stops better-auth.
 */
export interface Extension {
  /** The key under which the result of `cacheWithTenant` is cached. */
  name: string;

  /*
   * Finding the tenant. The first claim that is not too late counts: see `ClaimPhase`. A later
   * claim for the same tenant also gets its rights (`isTenantItself`).
   */

  /**
   * Returns the tenant that a request belongs to. Asked in up to three phases: see `ClaimPhase`.
   */
  claim?(ctx: HookEndpointContext, phase: ClaimPhase): Promise<Claim | undefined>;
  /**
   * Removes values from the query of a tenant route, before better-auth reads the query. Keys are
   * paths. The result is in `TenantRoute.extracted`.
   */
  extractFromQuery?: Readonly<Record<string, (query: URLSearchParams) => object>>;
  /** Returns the tenant that has verified a host, for `byDomain()`. */
  tenantOfHost?(ctx: ResolveTenantContext, host: string): Promise<string | undefined>;
  /**
   * Returns whether a session of the platform may manage the users of a tenant, or of every tenant
   * if none is given. better-auth's admin endpoints then see that tenant, or all tenants.
   */
  mayVisit?(
    endpoint: Endpoint,
    session: SessionRow,
    tenantId: string | undefined,
    adapter: DBTransactionAdapter,
  ): Promise<boolean>;

  /* Each request, in its scope. */

  /** Hooks that run before and after the endpoint, on the paths that their matchers accept. */
  hooks?: Partial<Omit<Hooks, "resolve">>;
  /**
   * See the calls of the isolated adapter before isolation: not those of `unscoped`. A guard may
   * change a call, or refuse it by throwing.
   */
  guards?: Guard[];

  /* Users and sessions. Asked where rows are written, for sessions in `internalAdapter`. */

  /**
   * Returns what to do for a new user whom the feature expected, for example by an invitation. Not
   * called if a feature has refused the user. At sign-up by email it is called twice: before
   * better-auth looks up the email, with little more than the email in the row, and where the row
   * is created. Must not change anything.
   */
  findAdmission?(candidate: Candidate): Promise<Admission | undefined>;
  /**
   * R13: refuses a new user by throwing, or changes the row. Asked until one refuses. If
   * better-auth hides at sign-up whether an email is taken, it also hides this error. A feature
   * whose error the caller must see also refuses in a hook, as the policy does in `askPolicy`.
   */
  admitUser?(candidate: Candidate): Promise<void>;
  /**
   * R14: refuses a new session, or a new expiry, by throwing, or returns fields to change. Asked
   * until one refuses. The earliest `expiresAt` counts. Token, user, tenant and generation cannot
   * be changed. `/sign-up/email` also undoes the new user, if the database has transactions; a
   * social sign-up keeps the user. A rule for new users is `admitUser`.
   */
  admitSession?(admitted: AdmittedSession): Promise<Row | undefined>;
  /**
   * Returns whether a session is valid in the running request. Asked when a session is looked up
   * by its token, in the database, a storage or a cookie. All features must accept the session. A
   * list of a user's sessions is limited to the scope, and this is not asked.
   */
  acceptsSession?(session: SessionRow, source: SessionSource): Promise<boolean>;

  /* Tenants. */

  /**
   * Returns what the feature needs to know about a tenant in later requests, such as its policy.
   * The core caches it with the tenant for ten seconds, unless it may be uncommitted.
   */
  cacheWithTenant?(ctx: AuthContext, row: Row, adapter?: DBTransactionAdapter): Promise<unknown>;

  /* Startup, in this order. */

  /** Functions that other features get by `serviceOf`. */
  provides?: Partial<Services>;
  /** Says which models of other plugins may be shared or scoped. */
  models?: ModelRules;
  /**
   * Called when all plugins have added their options. May change the options, and wrap functions of
   * the context (`internalAdapter`, `isTrustedOrigin`).
   */
  install?(options: BetterAuthOptions): void;
  /**
   * Refuses unsupported setups by throwing. `plugins` are in the order of the application's list.
   */
  check?(ctx: AuthContext, plugins: BetterAuthPlugin[]): void;
}
