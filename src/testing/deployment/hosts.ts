import { isReservedSlug } from "../../features/management/store";
import type { Tenant } from "../../features/management/tenant";
import type { StoredOAuthConfig } from "../../features/oauth/config-store";
import type { Subject } from "../instance/subject";
import { askResolver, isTenant } from "../sides/places";
import { type Finding, rowsOf } from "./findings";

/** Hosts that two tenants claim, hosts that no request matches, and reserved slugs. */
export async function hostFindings(subject: Subject): Promise<Finding[]> {
  const findings: Finding[] = [];
  const claims = new Map<string, Set<string>>();
  const claim = (host: string, tenantId: string) =>
    claims.set(host, (claims.get(host) ?? new Set()).add(tenantId));
  const idOf = new Map<string, string>();
  for await (const { id, slug, metadata } of rowsOf<Tenant>(subject, "tenant")) {
    idOf.set(slug, id).set(id, id);
    if (isReservedSlug(subject.ctx, slug)) findings.push(reservedFinding(id, slug));
    for (const written of hostsIn(metadata)) {
      const { host, name } = normalHost(written);
      if (host) claim(host, id);
      if (name === written) continue;
      // The application's resolver may find the tenant all the same.
      const answer = host && (await askResolver(subject, `https://${host}`, { host }));
      if (!host || !isTenant(answer, { id, slug })) findings.push(hostFinding(id, written, name));
    }
  }
  for await (const config of rowsOf<StoredOAuthConfig>(subject, "tenantOauthConfig")) {
    const { tenantId, redirectURI } = config;
    if (!redirectURI || !URL.canParse(redirectURI)) continue;
    const { host, origin } = new URL(redirectURI);
    const answer = await askResolver(subject, origin, { host });
    const owner = idOf.get(typeof answer === "object" ? (answer?.slug ?? "") : String(answer));
    if (owner) claim(host, owner).get(host)?.add(tenantId);
  }
  const shared = [...claims].filter(([, tenants]) => tenants.size > 1);
  const sharedFindings = shared.map(([host, tenants]) => ({
    id: "shared-host",
    found: `${host} is claimed by the tenants ${[...tenants].join(" and ")}`,
    meaning: "Requests to it run in one of them, and the users of the other end up there.",
    mend: "Decide which tenant it belongs to, and change the metadata or the redirect URI of the other: auth.api.updateTenant, auth.api.updateTenantOAuthConfig.",
  }));
  return [...findings, ...sharedFindings];
}

function reservedFinding(tenantId: string, slug: string): Finding {
  return {
    id: "reserved-slug",
    found: `the tenant ${tenantId} has the reserved slug "${slug}"`,
    meaning:
      "Its host or path may be one that the application or a mail program uses. `bySubdomain()` takes a reserved name for the platform.",
    mend: "Give the tenant another slug with auth.api.updateTenant, or take this one out of `reservedSlugs`.",
  };
}

function hostFinding(tenantId: string, written: string, name: string): Finding {
  const shown = JSON.stringify(written.slice(0, 100));
  return {
    id: "host-form",
    found: `the tenant ${tenantId} has the host ${shown} in its metadata`,
    meaning:
      "`byDomain()` looks up the bare host: in lower case, without scheme, path, port or final dot. Requests to this one run on the platform.",
    mend: name
      ? `Write "${name}" with auth.api.updateTenant.`
      : "It is not a host: correct it with auth.api.updateTenant.",
  };
}

/** A host with its port, and its name as `byDomain()` looks it up; empty if the text is not one. */
function normalHost(written: string) {
  const text = written.trim();
  const url = text.includes("://") ? text : `http://${text}`;
  if (text.length > 2000 || !URL.canParse(url)) return { host: "", name: "" };
  const { hostname, port } = new URL(url);
  const name = hostname.endsWith(".") ? hostname.slice(0, -1) : hostname;
  return { host: port ? `${name}:${port}` : name, name };
}

/** The hosts that applications keep in the metadata, under the names that they mostly have. */
function hostsIn(metadata: unknown): string[] {
  const entries = typeof metadata === "object" && metadata ? Object.entries(metadata) : [];
  return entries
    .filter(([key]) => /^(custom)?(host|domain|hostname)s?$/i.test(key.replaceAll("_", "")))
    .flatMap(([, value]) => [value].flat())
    .filter((value) => typeof value === "string" && value !== "");
}
