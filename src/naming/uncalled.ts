import type { ResolvedOptions } from "../options";
import { refuse } from "../schema";
import { byDomain, bySubdomain } from "./by-host";
import { bySlug } from "./by-slug";

/** What to write where the function itself was written, which makes a resolver and is none. */
const MAKERS = new Map<unknown, string>([
  [bySlug, "bySlug()"],
  [bySubdomain, 'bySubdomain({ baseDomain: "example.com" })'],
  [byDomain, 'byDomain({ "login.acme.com": { slug: "acme" } })'],
]);

export function assertResolver({ resolveTenantId }: ResolvedOptions): void {
  const call = MAKERS.get(resolveTenantId);
  if (call) refuse(`resolveTenantId is a function that makes a resolver. Call it: ${call}`);
}
