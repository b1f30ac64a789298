import type { Tenant } from "better-auth-tenant";
import type { TenantDomain } from "better-auth-tenant/domains";
import type { TenantInvitation } from "better-auth-tenant/invitations";
import { APP_URL, hostAddress } from "@/lib/hosts";
import { offeredMethods } from "@/lib/policy";
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
  const offered = {
    providerIds: configs.map(({ providerId }) => providerId),
    hasSSO: Boolean(identityProviders?.length),
  };
  return (
    <div className="columns two">
      <div className="stack">
        <section className="card" aria-labelledby="details">
          <h2 id="details">Details</h2>
          <TenantForm tenant={{ id, slug, name, metadata }} />
        </section>
        <SocialSignIn tenantId={id} configs={configs} />
        {identityProviders && (
          <SingleSignOn
            tenantId={id}
            slug={slug}
            origins={[APP_URL.origin, hostAddress(slug)]}
            providers={identityProviders}
          />
        )}
      </div>
      <div className="stack">
        <section className="card" aria-labelledby="policy">
          <h2 id="policy">Policy</h2>
          <PolicyForm tenantId={id} policy={policy} methods={offeredMethods(offered, policy)} />
        </section>
        <Invitations tenantId={id} invitations={invitations} />
        <Domains tenantId={id} domains={domains} />
      </div>
    </div>
  );
}
