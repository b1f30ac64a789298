import * as z from "zod";
import { limit, offset, textOrEmpty } from "../../core/input";

export const listSorts = ["createdAt", "-createdAt", "slug", "-slug"] as const;

/** The query of `/tenant/list`: which tenants to return, and in which order. */
export const listQuery = z.object({
  limit,
  offset,
  search: textOrEmpty(255).optional(),
  sort: z.enum(listSorts).optional(),
});
