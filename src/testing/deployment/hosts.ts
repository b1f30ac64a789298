import type { StoredOAuthConfig } from "../../oauth/config-store";
import type { Tenant } from "../../tenants/cache";
import type { Subject } from "../instance/subject";
import { pagesOf } from "../sides/pages";
import { askResolver } from "../sides/places";
import type { Finding } from "./findings";

/** Hosts that two tenants claim: in their metadata, or in a redirect URI at the host of another. */
export async function hostFindings(subject: Subject): Promise<Finding[]> {
  const claims = new Map<string, Set<string>>();
  const claim = (host: string, tenantId: string) =>
    claims.set(host, (claims.get(host) ?? new Set()).add(tenantId));
  const idOf = new Map<string, string>();
  for await (const tenants of pagesOf<Tenant>(subject, "tenant")) {
    for (const { id, slug, metadata } of tenants) {
      idOf.set(slug, id).set(id, id);
      for (const host of hostsIn(metadata)) claim(host, id);
    }
  }
  for await (const configs of pagesOf<StoredOAuthConfig>(subject, "tenantOauthConfig")) {
    for (const { tenantId, redirectURI } of configs) {
      if (!redirectURI || !URL.canParse(redirectURI)) continue;
      const { host, origin } = new URL(redirectURI);
      const answer = await askResolver(subject, origin, { host });
      const owner = idOf.get(typeof answer === "object" ? (answer?.slug ?? "") : String(answer));
      if (owner) claim(host, owner);
      if (owner) claim(host, tenantId);
    }
  }
  const shared = [...claims].filter(([, tenants]) => tenants.size > 1);
  return shared.map(([host, tenants]) => ({
    id: "shared-host",
    found: `${host} is claimed by the tenants ${[...tenants].join(" and ")}`,
    meaning: "Requests to it run in one of them, and the people of the other end up there.",
    mend: "Decide whose it is, and change the metadata or the redirect URI of the other: auth.api.updateTenant, auth.api.updateTenantOAuthConfig.",
  }));
}

const KEYS = ["host", "hosts", "domain", "domains", "hostname"];

/** The hosts that applications keep in the metadata, under the names that they mostly have. */
function hostsIn(metadata: unknown): string[] {
  const entries = typeof metadata === "object" && metadata ? Object.entries(metadata) : [];
  return entries
    .filter(([key]) => KEYS.includes(key))
    .flatMap(([, value]) => [value].flat())
    .filter((value) => typeof value === "string")
    .map((value) => value.toLowerCase());
}
