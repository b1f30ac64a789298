import * as z from "zod";
import { isText } from "./cache";

const UNSTORABLE_MESSAGE = "contains characters that cannot be stored";

/** Aborts: otherwise zod runs later checks, such as a regular expression, on the whole text. */
export const limited = (max: number) => z.string().max(max, { abort: true });

/** Text that every database stores and returns unchanged. */
export const text = (max: number) => limited(max).min(1).refine(isText, UNSTORABLE_MESSAGE);

export const tenantId = z.string().meta({ description: "Id of the tenant" });

/** The options of an endpoint that takes a body. */
export const post = <Body extends z.ZodType>(description: string, body: Body) => ({
  method: "POST" as const,
  body,
  metadata: { openapi: { description } },
});

/** The options of an endpoint with an optional query. By itself, better-auth describes required ones. */
export const get = <Query extends z.ZodObject>(description: string, query: Query) => ({
  method: "GET" as const,
  query: query.optional(),
  metadata: {
    openapi: {
      description,
      get parameters() {
        const { properties = {} } = z.toJSONSchema(query, { io: "input" });
        return Object.entries(properties).map(([name, schema]) => ({
          name,
          in: "query" as const,
          schema: schema as { type: "string" },
        }));
      },
    },
  },
});

/** A number that every database accepts. In the query of a URL it is text. */
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

export const listSorts = ["createdAt", "-createdAt", "slug", "-slug"] as const;

/** The part of the list of tenants that a caller asks for. */
export const listQuery = z.object({
  limit,
  offset,
  search: limited(255).refine(isText, UNSTORABLE_MESSAGE).optional(),
  sort: z.enum(listSorts).optional(),
});
