import * as z from "zod";
import { MANAGEMENT } from "./management-calls";
import { isText } from "./utils";

const UNSTORABLE_MESSAGE = "contains characters that cannot be stored";

/**
 * Text of limited length. A longer text ends the checks, because zod would run the others, such as
 * a regular expression, on all of it.
 */
export const limited = (max: number) => z.string().max(max, { abort: true });

/** Text that databases can store (see `isText`), or an empty text. */
export const textOrEmpty = (max: number) => limited(max).refine(isText, UNSTORABLE_MESSAGE);

/** Like `textOrEmpty`, but not empty. */
export const text = (max: number) => limited(max).min(1).refine(isText, UNSTORABLE_MESSAGE);

export const tenantId = z.string().meta({ description: "Id of the tenant" });

/** The options of a management endpoint that takes a body. */
export const post = <Body extends z.ZodType>(body: Body, description: string) =>
  ({ method: "POST", body, metadata: { openapi: { description }, ...MANAGEMENT } }) as const;

/**
 * The options of a management endpoint that takes a query. `optional` describes parameters for
 * OpenAPI, because better-auth describes only required queries.
 */
export const get = <Query extends z.ZodType>(
  query: Query,
  description: string,
  optional?: Record<string, { type: "string" | "integer"; enum?: string[] }>,
) => {
  const entries = optional && Object.entries(optional);
  const parameters = entries?.map(([name, schema]) => ({ name, in: "query", schema }) as const);
  return {
    method: "GET",
    query,
    metadata: { openapi: { description, parameters }, ...MANAGEMENT },
  } as const;
};

const tenantQuery = z.object({ tenantId: tenantId.optional() }).optional();

/** The options of a management endpoint whose query has only a tenant. */
export const getOfTenant = (description: string) =>
  get(tenantQuery, description, { tenantId: { type: "string" } });

/** A number that fits an integer column of 32 bits. In the query of a URL, the number is text. */
const wholeNumber = z
  .number()
  .or(limited(10).regex(/^\d+$/).transform(Number))
  .pipe(z.int32().nonnegative());

/** The size of a page of a list. */
export const limit = wholeNumber
  .refine((limit) => limit > 0 && limit <= 1000, "must be 1 to 1000")
  .optional();
export const offset = wholeNumber.optional();

/** Any JSON object. Not z.record(), which rebuilds the object and loses the key `__proto__`. */
export const jsonObject = z.custom<Record<string, unknown>>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  "expected an object",
);
