/** A request that can be sent again. */
export interface Repeatable {
  method: string;
  url: string;
  headers: Record<string, string>;
  body?: string;
}

/** Something that crossed the border, and the request that shows it. */
export interface Leak {
  /** What was tried: the endpoint, the credential, whose it is, and where it was shown. */
  attempt: string;
  endpoint: string;
  /** What crossed: a row that was changed, a text that was told, a session that was good. */
  found: string;
  request: Repeatable;
}

/** Something that nothing is proved about, why, and what to give so that it can be tried. */
export interface Untried {
  what: string;
  reason: string;
  give: string;
}
