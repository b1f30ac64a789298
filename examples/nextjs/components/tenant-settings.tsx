import type { Tenant } from "better-auth-tenant";
import type { TenantDomain } from "better-auth-tenant/domains";
import type { TenantInvitation } from "better-auth-tenant/invitations";
import { APP_URL, hostAddress } from "@/lib/hosts";
import { methodsOf } from "@/lib/policy";
import type { IdentityProvider } from "@/lib/sso";
import { Domains } from "./domains";
import { Invitations } from "./invitations";
import type { Config } from "./oauth-configs";
import { PolicyForm } from "./policy-form";
import { SingleSignOn } from "./single-sign-on";
import { SocialSignIn } from "./social-sign-in";
import { TenantForm } from "./tenant-form";

/** What can be changed of a tenant, by an operator and by an administrator of its own. */
export function TenantSettings({
  tenant: { id, slug, name, metadata, policy },
  configs,
  invitations,
  domains,
  identityProviders,
}: {
  tenant: Tenant;
  configs: Config[];
  invitations: TenantInvitation[];
  domains: TenantDomain[];
  /** Not there while the tenant is suspended. */
  identityProviders: IdentityProvider[] | undefined;
}) {
  const enabled = configs.filter((config) => config.enabled).map(({ providerId }) => providerId);
  const sections = Object.entries(SECTIONS).filter(
    ([section]) => identityProviders || section !== "single-sign-on",
  );
  return (
    <>
      <nav className="sections" aria-label="Settings">
        {sections.map(([section, label]) => (
          <a key={section} className="badge" href={`#${section}`}>
            {label}
          </a>
        ))}
      </nav>
      <div className="columns two">
        <div className="stack">
          <section className="card" aria-labelledby="details">
            <h2 id="details">{SECTIONS.details}</h2>
            <TenantForm tenant={{ id, slug, name, metadata }} />
          </section>
          <section className="card" aria-labelledby="policy">
            <h2 id="policy">{SECTIONS.policy}</h2>
            <PolicyForm
              tenantId={id}
              policy={policy}
              methods={methodsOf(enabled, Boolean(identityProviders?.length))}
            />
          </section>
        </div>
        <div className="stack">
          <SocialSignIn tenantId={id} configs={configs} />
          {identityProviders && (
            <SingleSignOn
              tenantId={id}
              slug={slug}
              origins={[APP_URL.origin, hostAddress(slug)]}
              providers={identityProviders}
            />
          )}
          <Domains tenantId={id} domains={domains} />
          <Invitations tenantId={id} invitations={invitations} />
        </div>
      </div>
    </>
  );
}

/** In the order of the page, by the ids of their headings. People are below the settings. */
const SECTIONS = {
  details: "Details",
  policy: "Policy",
  providers: "Social sign-in",
  "single-sign-on": "Single sign-on",
  domains: "Domains",
  invitations: "Invitations",
  people: "People",
};
