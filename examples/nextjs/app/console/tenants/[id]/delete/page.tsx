import { DeleteTenantForm } from "@/components/console-forms";
import { ConsoleFrame } from "@/components/console-frame";
import { countOf, tenantForOperator } from "@/lib/console";
import { withShownName } from "@/lib/tenants";

export const metadata = { title: "Delete a tenant" };

export default async function DeleteTenantPage({
  params,
}: PageProps<"/console/tenants/[id]/delete">) {
  const tenant = withShownName(await tenantForOperator((await params).id));
  const count = await countOf(tenant.id);
  return (
    <ConsoleFrame
      trail={[
        ["Tenants", "/console"],
        [tenant.name, `/console/tenants/${tenant.id}`],
      ]}
    >
      <div className="tight">
        <h1>Delete {tenant.name}?</h1>
        <p className="muted">
          This cannot be undone. All of the following will be deleted. Other tenants are not
          affected.
        </p>
      </div>
      <section className="card danger" aria-label="What will be deleted">
        <dl className="figures">
          <Figure term="Users" value={count.users} />
          <Figure term="Sessions" value={count.sessions} />
          <Figure term="Accounts" value={count.accounts} />
          <Figure term="OAuth configs" value={count.providers} />
          <Figure term="Emails" value={count.mails} />
        </dl>
        <DeleteTenantForm tenant={tenant} />
      </section>
    </ConsoleFrame>
  );
}

function Figure({ term, value = 0 }: { term: string; value: number | undefined }) {
  return (
    <div>
      <dt>{term}</dt>
      <dd>{value}</dd>
    </div>
  );
}
