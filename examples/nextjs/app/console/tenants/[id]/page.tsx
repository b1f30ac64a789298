import type { Tenant, TenantOAuthConfig } from "better-auth-tenant";
import Link from "next/link";
import type { CSSProperties } from "react";
import { Monogram } from "@/components/brand";
import { TenantForm } from "@/components/console-forms";
import { ConsoleFrame } from "@/components/console-frame";
import { OAuthConfigForm } from "@/components/oauth-config-form";
import { OAuthConfig } from "@/components/oauth-configs";
import { auth } from "@/lib/auth";
import { asOperator, tenantForOperator } from "@/lib/console";
import { formatTime, shownName } from "@/lib/format";
import { hostAddress } from "@/lib/hosts";
import { byName } from "@/lib/providers";
import { hueOf, withShownName } from "@/lib/tenants";

export async function generateMetadata({ params }: PageProps<"/console/tenants/[id]">) {
  return { title: withShownName(await tenantForOperator((await params).id)).name };
}

export default async function TenantPage({ params }: PageProps<"/console/tenants/[id]">) {
  const stored = await tenantForOperator((await params).id);
  const tenant = withShownName(stored);
  return (
    <ConsoleFrame trail={[["Tenants", "/console"]]}>
      <div className="row themed" style={{ "--hue": hueOf(tenant) } as CSSProperties}>
        <Monogram name={tenant.name} large />
        <div className="tight">
          <h1>{tenant.name}</h1>
          <p className="small row">
            <a href={`/t/${tenant.slug}`}>/t/{tenant.slug}</a>
            <a href={hostAddress(tenant.slug)}>{new URL(hostAddress(tenant.slug)).host}</a>
          </p>
        </div>
      </div>
      <div className="columns two">
        <section className="card" aria-labelledby="details">
          <h2 id="details">Details</h2>
          <TenantForm tenant={stored} />
        </section>
        <Providers tenant={tenant} />
      </div>
      <People tenant={tenant} />
      <section className="card danger" aria-labelledby="danger">
        <h2 id="danger">Delete this tenant</h2>
        <div className="spread">
          <p className="muted">The next page shows what would be deleted.</p>
          <Link className="button plain" href={`/console/tenants/${tenant.id}/delete`}>
            <span className="name">Delete {tenant.name} …</span>
          </Link>
        </div>
      </section>
    </ConsoleFrame>
  );
}

async function Providers({ tenant: { id: tenantId } }: { tenant: Tenant }) {
  const configs = await asOperator((headers) =>
    auth.api.listTenantOAuthConfigs({ query: { tenantId }, headers }),
  );
  return (
    <section className="card" aria-labelledby="providers">
      <h2 id="providers">Social sign-in</h2>
      {configs.length === 0 && <p className="nothing">People can sign in with a password only.</p>}
      <ul className="list">
        {configs
          .toSorted((a, b) => byName(a.providerId, b.providerId))
          .map((config) => (
            <li key={config.providerId}>
              <OAuthConfig tenantId={tenantId} config={shownConfig(config)} />
            </li>
          ))}
      </ul>
      <details>
        <summary>Set up a provider</summary>
        <OAuthConfigForm tenantId={tenantId} />
      </details>
    </section>
  );
}

/** Of a config, what the browser needs to know. */
function shownConfig(config: TenantOAuthConfig) {
  const { providerId, clientId, callbackURL, enabled, readable, options } = config;
  return {
    ...{ providerId, clientId, callbackURL, enabled, readable },
    issuer: typeof options?.issuer === "string" ? options.issuer : null,
    secretChangedAt: formatTime(config.secretChangedAt),
    version: new Date(config.updatedAt).toISOString(),
  };
}

/**
 * An operator looks into a tenant with better-auth's own admin plugin. The call names no tenant:
 * there, whoever is signed in at the tenant in the same browser would be the one who asks.
 */
async function People({ tenant }: { tenant: Tenant }) {
  const { users, total } = await asOperator((headers) =>
    auth.api.listUsers({
      query: {
        ...{ filterField: "tenantId", filterValue: tenant.id },
        ...{ limit: 50, sortBy: "createdAt" },
      },
      headers,
    }),
  );
  return (
    <section className="card" aria-labelledby="people">
      <h2 id="people">People at {tenant.name}</h2>
      {users.length === 0 && <p className="nothing">Nobody has signed up yet.</p>}
      {users.length > 0 && (
        <div className="table">
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Email</th>
                <th scope="col" className="wide-only">
                  Created
                </th>
              </tr>
            </thead>
            <tbody>
              {users.map(({ id, name, email, emailVerified, createdAt }) => (
                <tr key={id}>
                  <th scope="row">
                    <span className="three-lines">{shownName(name, "No name")}</span>
                  </th>
                  <td>
                    <span className="row">
                      <span className="grow">{email}</span>
                      {emailVerified && <span className="badge good">Confirmed</span>}
                    </span>
                  </td>
                  <td className="small muted wide-only time">{formatTime(createdAt)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {total > users.length && <p className="muted">The first 50 of {total}.</p>}
    </section>
  );
}
