/** A request that can be sent again. */
export interface Repeatable {
  method: string;
  url: string;
  headers: Record<string, string>;
  body?: string;
}

/** Something that crossed from one tenant to another, and the request that shows it. */
export interface Leak {
  /** What was tried: the endpoint, the credential, its side, and the side it was sent to. */
  attempt: string;
  endpoint: string;
  /** What crossed: a row that was changed, a text that was returned, a session that was valid. */
  found: string;
  /** The same in a sentence: "signed in at tenant A, GET /notes/get returned a note of tenant B". */
  summary: string;
  request: Repeatable;
}

/** An endpoint whose crossings are accepted, and why. */
export interface Accepted {
  endpoint: string;
  reason: string;
  leaks: Leak[];
  untried: Untried[];
}

/** Something that the kit need not try, and why. */
export interface NotApplicable {
  what: string;
  reason: string;
}

/** Something that could not be tried, why, and what to pass so that it can be. */
export interface Untried extends NotApplicable {
  give: string;
}
