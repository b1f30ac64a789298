"use client";

import type { TenantDomain } from "better-auth-tenant/domains";
import { useRouter } from "next/navigation";
import { Copyable } from "./copyable";
import { ActionButton, asOutcome, Field, OutcomeNote, SubmitButton, useForm } from "./form";
import { useManagement } from "./management";

/** The domains that a tenant has added, and how to prove that they are its own. */
export function Domains({ tenantId, domains }: { tenantId: string; domains: TenantDomain[] }) {
  const router = useRouter();
  const { domain } = useManagement();
  const { form, pending, outcome } = useForm(async ({ domain: name = "" }) => {
    const { error } = await domain.add({ tenantId, domain: name });
    if (!error) router.refresh();
    return asOutcome(error);
  });
  return (
    <section className="card" aria-labelledby="domains">
      <h2 id="domains">Domains</h2>
      <form className="stack" {...form}>
        <OutcomeNote {...outcome} />
        <Field label="Domain" name="domain" autoComplete="off" placeholder="acme.com" required />
        <div>
          <SubmitButton className="" pending={pending}>
            Add domain
          </SubmitButton>
        </div>
      </form>
      <ul className="list">
        {domains.map((known) => (
          <Domain key={known.domain} {...known} />
        ))}
      </ul>
    </section>
  );
}

function Domain({ tenantId, domain, verified, record }: TenantDomain) {
  const router = useRouter();
  const { domain: calls } = useManagement();
  const verify = async () => {
    const { data, error } = await calls.verify({ tenantId, domain });
    if (error) return asOutcome(error);
    if (!data.verified) return { error: "The record is not there yet." };
    router.refresh();
  };
  const remove = async () => {
    const { error } = await calls.remove({ tenantId, domain });
    router.refresh();
    return asOutcome(error);
  };
  return (
    <li aria-label={domain}>
      <div className="grow">
        <span className="row">
          <span>{domain}</span>
          <span className={`badge ${verified ? "good" : "tint"}`}>
            {verified ? "Verified" : "Not verified"}
          </span>
        </span>
        {!verified && (
          <>
            <Copyable label="Add a TXT record" name="the name of the record" value={record.name} />
            <Copyable label="with this value" name="the value of the record" value={record.value} />
          </>
        )}
      </div>
      <div className="row">
        {!verified && (
          <ActionButton className="plain compact" act={verify}>
            Verify<span className="visually-hidden"> {domain}</span>
          </ActionButton>
        )}
        <ActionButton className="plain compact" act={remove}>
          Remove<span className="visually-hidden"> {domain}</span>
        </ActionButton>
      </div>
    </li>
  );
}
