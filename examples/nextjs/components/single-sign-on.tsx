"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { addressesFor, type IdentityProvider, PROTOCOLS } from "@/lib/sso";
import { checkProvider } from "@/lib/sso-actions";
import { Copyable } from "./copyable";
import { OutcomeNote, SubmitButton, useForm } from "./form";
import { useOwnTenant } from "./management";
import { Findings } from "./oauth-configs";
import { ChangeProvider, RemoveIdentityProvider } from "./sso-change";
import { SSOForm } from "./sso-form";

/** The tenant of a page, and the addresses that its people sign in at. */
export interface SSOPlace {
  tenantId: string;
  slug: string;
  origins: string[];
}

/** A tenant's own identity providers. */
export function SingleSignOn({
  providers,
  ...place
}: SSOPlace & { providers: IdentityProvider[] }) {
  return (
    <section className="card" aria-labelledby="single-sign-on">
      <h2 id="single-sign-on">Single sign-on</h2>
      <p className="muted">
        People with an email address at your domain sign in at your own identity provider, such as
        Okta, Entra or Google Workspace.
      </p>
      <ul className="list">
        {providers.map((provider) => (
          <li key={provider.providerId}>
            <Provider provider={provider} {...place} />
          </li>
        ))}
      </ul>
      <details>
        <summary>Set up single sign-on</summary>
        <SSOForm {...place} />
      </details>
    </section>
  );
}

function Provider({ provider, ...place }: SSOPlace & { provider: IdentityProvider }) {
  const router = useRouter();
  const [version, setVersion] = useState(0);
  const { tenantId, origins } = place;
  const { providerId, type } = provider;
  const changed = () => {
    setVersion(version + 1);
    router.refresh();
  };
  return (
    <article className="stack grow" aria-labelledby={`sso-${providerId}`}>
      <div className="row">
        <h3 id={`sso-${providerId}`}>{providerId}</h3>
        <span className="badge tint">{PROTOCOLS[type]}</span>
      </div>
      <Facts {...provider} />
      {/* What was found out about an older version says nothing about this one. */}
      <Check key={version} tenantId={tenantId} providerId={providerId} />
      <details>
        <summary>Addresses for the identity provider</summary>
        <SSOAddresses protocol={type} providerId={providerId} origins={origins} />
      </details>
      <details>
        <summary>Change or remove {providerId}</summary>
        <div className="stack">
          <ChangeProvider tenantId={tenantId} provider={provider} changed={changed} />
          <RemoveIdentityProvider tenantId={tenantId} providerId={providerId} />
        </div>
      </details>
    </article>
  );
}

function Facts({ type, domain, address, clientId }: IdentityProvider) {
  const facts = {
    Domain: domain.replaceAll(",", ", "),
    [type === "oidc" ? "Issuer" : "Sign-in URL"]: address,
    ...(clientId && { "Client ID": clientId }),
  };
  return (
    <dl className="facts">
      {Object.entries(facts).map(([term, value]) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd>
            <code>{value}</code>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** What to enter at the identity provider, ready to copy. */
export function SSOAddresses({
  protocol,
  providerId,
  origins,
}: {
  protocol: IdentityProvider["type"];
  providerId: string;
  origins: string[];
}) {
  return (
    <div className="stack">
      {addressesFor(protocol, providerId, origins).map(({ label, value }) => (
        <Copyable key={value} label={label} name={`the ${label} of ${providerId}`} value={value} />
      ))}
    </div>
  );
}

type Checked = Parameters<typeof Findings>[0];

/** Tries the provider before people do. */
function Check({ tenantId, providerId }: { tenantId: string; providerId: string }) {
  const isOwn = useOwnTenant() !== null;
  const [result, setResult] = useState<Checked>();
  const { form, pending, outcome } = useForm(async () => {
    const checked = await checkProvider({ tenantId, isOwn }, providerId);
    if ("error" in checked) return checked;
    setResult(checked);
  });
  return (
    <form className="stack" {...form}>
      <div>
        <SubmitButton className="plain compact" pending={pending}>
          Check {providerId}
        </SubmitButton>
      </div>
      <OutcomeNote {...outcome} />
      <div className="outcome" role="status">
        {result && <Findings {...result} />}
      </div>
    </form>
  );
}
