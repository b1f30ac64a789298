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
  /** Every way to name the tenant with everything; without it they take turns. @default false */
  everyNaming?: boolean;
  /** Only one attempt out of so many; the endpoints take turns in what they leave out. @default 1 */
  oneOf?: number;
  /** Which of them. */
  offset?: number;
  /** Only endpoints whose path begins with one of these. */
  paths?: string[];
}

/** A mail or message that the application would have sent. */
export interface Mail {
  /** The name of the option that would have sent it: `sendResetPassword`. */
  sender: string;
  /** What the sender was called with. */
  data: Record<string, unknown>;
}

/** Gives the mails that were sent since it was last asked. */
export type Outbox = () => Mail[] | Promise<Mail[]>;

/** The address of a tenant, and headers that name the tenant there. */
export type Address = (
  tenant: { id: string; slug: string } | null,
) => string | { url?: string; headers?: Record<string, string> };

/** Tables of the application's own, read by the application: by table, all rows. */
export type ReadTables = () => Promise<Record<string, Record<string, unknown>[]>>;

/** The tenant and user that a request is about. */
export interface About {
  tenantId: string | null;
  slug: string | null;
  userId: string;
  email: string;
  /** A text that no other tenant has: what you store with it is recognized in responses. */
  mark: string;
  /** Their rows in a table of a plugin, or in one of `tables`. */
  rows(table: string): Row[];
}

/** A user who is signed in: send these headers. */
export interface Caller extends About {
  headers: Record<string, string>;
  origin: string;
}

/** Calls a route of the application as one user, about the data of another. */
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
  /** Crossings that you accept, with the reason: `{ "GET /workspaces": "public by design" }`. */
  allow?: Record<string, string>;
  /** HTTP routes of your own, called as one user about the data of another. */
  routes?: Route[];
  /** The address of a tenant, or of the platform (null), if your resolver uses more than a subdomain. */
  address?: Address;
  /** Values for fields that your users must have. */
  person?: Values;
  /** Mails that your own senders have stored, if the kit cannot replace them. */
  outbox?: Outbox;
  /** How much is tried. */
  extent?: Extent;
  /** Runs on a database that has tenants already. @default false */
  allowExistingTenants?: boolean;
  /** Leaves tenants and users in place, to repeat requests by hand. @default false */
  keep?: boolean;
  /** A line on a terminal that shows the progress. @default true */
  progress?: boolean;
}
