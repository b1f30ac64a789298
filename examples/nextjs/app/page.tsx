import type { TenantStatus } from "better-auth-tenant";
import Link from "next/link";
import type { CSSProperties } from "react";
import { Brand, Monogram } from "@/components/brand";
import { type DemoAccount, demoAccounts } from "@/lib/demo";
import { hostAddress } from "@/lib/hosts";
import { hueOf, listedTenants, sessionAt } from "@/lib/tenants";

// It shows who is signed in.
export const dynamic = "force-dynamic";

/** Where the demo begins. An application of yours has its own front page, and lists no tenants. */
export default async function StartPage() {
  const tenants = await listedTenants();
  const accounts = await demoAccounts();
  const places = await Promise.all(
    tenants.map(async (tenant) => ({
      tenant,
      found: await sessionAt(tenant.id),
    })),
  );
  return (
    <div className="page">
      <header className="bar">
        <div>
          <Brand name="Tenants" />
          <nav aria-label="Demo">
            <Link href="/sign-in">Sign in</Link>
            <Link href="/console">Console</Link>
            <Link href="/inbox">Inbox</Link>
          </nav>
        </div>
      </header>
      <main id="content" className="content">
        <div className="hero">
          <h1>One application, many tenants</h1>
          <p className="muted">
            Each has its own users, its own sign-in and its own sessions. The same email address in
            two tenants belongs to two separate accounts. Open both side by side.
          </p>
        </div>
        <div className="columns even">
          {places.map(({ tenant, found }) => (
            <section
              key={tenant.id}
              className="card themed"
              style={{ "--hue": hueOf(tenant) } as CSSProperties}
              aria-labelledby={`tenant-${tenant.slug}`}
            >
              <div className="row">
                <Monogram name={tenant.name} large />
                <div className="tight">
                  <h2 id={`tenant-${tenant.slug}`}>{tenant.name}</h2>
                  <p className="small muted three-lines">
                    {placeOf(tenant.status, found?.user.name)}
                  </p>
                </div>
              </div>
              {accounts
                .filter(({ slug }) => slug === tenant.slug)
                .map((account) => (
                  <Credentials key={account.email} {...account} />
                ))}
              <div className="row">
                <Link className="button" href={`/t/${tenant.slug}`}>
                  <span className="name">Open {tenant.name}</span>
                </Link>
                <a className="small" href={hostAddress(tenant.slug)}>
                  {new URL(hostAddress(tenant.slug)).host}
                </a>
              </div>
            </section>
          ))}
          <section className="card" aria-labelledby="operators">
            <h2 id="operators">For operators</h2>
            <p className="muted">Manage tenants, their sign-in providers and their users.</p>
            {accounts
              .filter(({ slug }) => slug === null)
              .map((account) => (
                <Credentials key={account.email} {...account} />
              ))}
            <div>
              <Link className="button plain" href="/console">
                Open the console
              </Link>
            </div>
          </section>
        </div>
      </main>
    </div>
  );
}

function placeOf(status: TenantStatus, name: string | undefined): string {
  if (status !== "active") return "Suspended: nobody can sign in";
  return name ? `Signed in as ${name}` : "Not signed in";
}

function Credentials({ slug, email, password, isAdmin }: DemoAccount) {
  return (
    <dl className="facts">
      <div>
        <dt>Email</dt>
        <dd>
          <code>{email}</code>{" "}
          {slug && isAdmin && <span className="badge tint">Administrator</span>}
        </dd>
      </div>
      <div>
        <dt>Password</dt>
        <dd>{password ? <code>{password}</code> : "Changed since the start of the demo"}</dd>
      </div>
    </dl>
  );
}
