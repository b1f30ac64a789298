import { ConsoleFrame } from "@/components/console-frame";
import { DeleteLaterButton, DeleteNowForm } from "@/components/delete-tenant";
import { auth } from "@/lib/auth";
import { asOperator, tenantForOperator } from "@/lib/management";
import { withShownName } from "@/lib/tenants";

export const metadata = { title: "Delete a tenant" };

export default async function DeleteTenantPage({
  params,
}: PageProps<"/console/tenants/[id]/delete">) {
  const { id, slug, name } = withShownName(await tenantForOperator((await params).id));
  const tenant = { id, slug, name };
  const { rows = {} } = await asOperator((headers) =>
    auth.api.deleteTenant({ body: { tenantId: id, dryRun: true }, headers }),
  );
  return (
    <ConsoleFrame
      trail={[
        ["Tenants", "/console"],
        [name, `/console/tenants/${id}`],
      ]}
    >
      <div className="tight">
        <h1>Delete {name}?</h1>
        <p className="muted">
          All of the following will be deleted. Other tenants are not affected.
        </p>
      </div>
      <section className="card" aria-label="What will be deleted">
        <dl className="figures">
          {Object.entries(rows).map(([model, count]) => (
            <div key={model}>
              <dt>{MODELS[model] ?? model}</dt>
              <dd>{count}</dd>
            </div>
          ))}
        </dl>
      </section>
      <section className="card" aria-labelledby="later">
        <h2 id="later">Delete in a week</h2>
        <p className="muted">
          From now on nobody can sign in. You have a week to change your mind; then everything is
          deleted.
        </p>
        <DeleteLaterButton tenant={tenant} />
      </section>
      <section className="card danger" aria-labelledby="now">
        <h2 id="now">Delete now</h2>
        <p className="muted">This cannot be undone.</p>
        <DeleteNowForm tenant={tenant} />
      </section>
    </ConsoleFrame>
  );
}

const MODELS: Record<string, string> = {
  user: "Users",
  session: "Sessions",
  account: "Accounts",
  verification: "Verifications",
  twoFactor: "Second factors",
  tenantInvitation: "Invitations",
  tenantDomain: "Domains",
  tenantOauthConfig: "OAuth configs",
  ssoProvider: "Identity providers",
  passkey: "Passkeys",
  mail: "Emails",
};
