/** Values by the names of fields. */
export type Values = Record<string, unknown>;

export type Row = Record<string, unknown> & { id: string };

/** What an endpoint of the application's own is called with. */
export interface GivenInput {
  body?: Values;
  query?: Record<string, string>;
  params?: Record<string, string>;
  headers?: Record<string, string>;
}

/** How much is tried. */
export interface Extent {
  /**
   * Every way to name the tenant with everything; without it they take turns.
   * @default false
   */
  everyNaming?: boolean;
  /**
   * Only one attempt out of so many; the endpoints take turns in what they leave out.
   * @default 1
   */
  oneOf?: number;
  /** Which of them. */
  offset?: number;
  /** Only endpoints whose path begins with one of these. */
  paths?: string[];
}

/** Something that was on its way to a person. */
export interface Mail {
  /** The name of the option that would have sent it: `sendResetPassword`. */
  sender: string;
  /** What the sender was called with. */
  data: Record<string, unknown>;
}

/** Gives the mails that were sent since it was last asked. */
export type Outbox = () => Mail[] | Promise<Mail[]>;

/** Where people of a tenant go: an address, and headers that name the tenant there. */
export type Address = (
  tenant: { id: string; slug: string } | null,
) => string | { url?: string; headers?: Record<string, string> };

/** Tables of the application's own, read by the application: by table, all rows. */
export type ReadTables = () => Promise<Record<string, Record<string, unknown>[]>>;

/** Whose things a request is about. */
export interface About {
  tenantId: string | null;
  slug: string | null;
  userId: string;
  email: string;
  /** A text that no other tenant has: what you store with it is recognized in responses. */
  mark: string;
  /** Rows of theirs in a table of a plugin, or in one of `tables`. */
  rows(table: string): Row[];
}

/** Somebody who is signed in: send these headers. */
export interface Caller extends About {
  headers: Record<string, string>;
  origin: string;
}

/** Calls a route of the application as one person, about the things of another. */
export type Route = (as: Caller, about: About) => Promise<Response>;

/** What `checkIsolation` can be told about an application. */
export interface IsolationOptions {
  /**
   * Inputs for your own endpoints, by path. A function is called for each tenant, first when the
   * test data is created, then with what is stored:
   * `({ mark, rows }) => ({ body: { id: rows("note")[0]?.id, text: mark } })`.
   */
  endpoints?: Record<string, GivenInput | ((about: About) => GivenInput)>;
  /**
   * Tables that better-auth does not know, by name or by a function that reads them. Tables in
   * better-auth's own database are found without this.
   */
  tables?: string[] | ReadTables;
  /** Your own tables whose rows belong to no tenant, such as a global counter. */
  sharedTables?: string[];
  /**
   * Crossings that you know and accept, with the reason: `{ "GET /workspaces": "public by design" }`.
   */
  allow?: Record<string, string>;
  /** HTTP routes of your own, called as one person about the things of another. */
  routes?: Route[];
  /**
   * Where people of a tenant go, if a resolver of your own goes by more than a subdomain: an
   * address, perhaps with headers. With null it is asked for the platform's.
   */
  address?: Address;
  /** Values for fields that your users must have. */
  person?: Values;
  /** Mails that senders of your own have kept, where the kit cannot stand in for them. */
  outbox?: Outbox;
  /** How much is tried. */
  extent?: Extent;
  /**
   * Runs on a database that has tenants already.
   * @default false
   */
  allowExistingTenants?: boolean;
  /**
   * Leaves tenants and people in place, to repeat requests by hand.
   * @default false
   */
  keep?: boolean;
  /**
   * A line on a terminal that says how far it is.
   * @default true
   */
  progress?: boolean;
}
