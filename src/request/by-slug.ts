import { BetterAuthError } from "better-auth";
import { DEFAULT_SLUG_HEADER } from "../constants";
import type { ResolveTenant, SlugResolver } from "../options";

/**
 * Names the tenant by a slug that the request carries in a header: for pages at `/t/acme`, with
 * `tenantAuthClient({ tenantSlug })` in the browser. The header is a claim of the caller, as
 * `x-tenant-id` is, and comes before that one. Body and query come first, and no address belongs to
 * a tenant because of it.
 */
export function bySlug(
  options: {
    /**
     * The header that carries the slug; the client's `slugHeader`.
     * @default "x-tenant-slug"
     */
    header?: string;
  } = {},
): ResolveTenant {
  const { header = DEFAULT_SLUG_HEADER } = options;
  if (typeof options === "string") {
    throw new BetterAuthError(`bySlug(): write { header: "${options}" }`);
  }
  const resolve: ResolveTenant = ({ headers, request }) => {
    // Slugs are in lower case. The address of a page may be typed otherwise.
    const slug = (headers ?? request?.headers)?.get(header)?.toLowerCase();
    return slug ? { slug } : undefined;
  };
  return Object.assign(resolve, { slugHeader: header }) satisfies SlugResolver;
}
