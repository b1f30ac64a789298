import Link from "next/link";
import type { CSSProperties } from "react";
import { Brand, Monogram } from "@/components/brand";
import demo from "@/demo.json";
import { auth } from "@/lib/auth";
import { hostAddress } from "@/lib/hosts";
import { hueOf, sessionAt } from "@/lib/tenants";

// It shows who is signed in.
export const dynamic = "force-dynamic";

/** Where the demo begins. An application of yours has its own front page, and lists no tenants. */
export default async function StartPage() {
  const tenants = await auth.api.listTenants({ query: { limit: 20 } });
  const places = await Promise.all(
    tenants.map(async (tenant) => ({
      tenant,
      found: await sessionAt(tenant.id),
      people: demo.tenants.find(({ slug }) => slug === tenant.slug)?.people ?? [],
    })),
  );
  return (
    <div className="page">
      <header className="bar">
        <div>
          <Brand name="Tenants" />
          <nav aria-label="Demo">
            <Link href="/console">Console</Link>
            <Link href="/inbox">Inbox</Link>
          </nav>
        </div>
      </header>
      <main id="content" className="content">
        <div className="hero">
          <h1>One application, many tenants</h1>
          <p className="muted">
            Each has its own users, its own way to sign in and its own sessions. The same e-mail
            address at two of them is two people. Open both, side by side.
          </p>
        </div>
        <div className="columns even">
          {places.map(({ tenant, found, people }) => (
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
                  <p className="small muted">
                    {found ? `Signed in as ${found.user.name}` : "Nobody is signed in"}
                  </p>
                </div>
              </div>
              {people.map(({ email, password }) => (
                <Credentials key={email} email={email} password={password} />
              ))}
              <div className="row">
                <Link className="button" href={`/t/${tenant.slug}`}>
                  Open {tenant.name}
                </Link>
                <a className="small" href={hostAddress(tenant.slug)}>
                  {new URL(hostAddress(tenant.slug)).host}
                </a>
              </div>
            </section>
          ))}
          <section className="card" aria-labelledby="operators">
            <h2 id="operators">For operators</h2>
            <p className="muted">Tenants, their providers and their people, in one place.</p>
            <Credentials email={demo.operator.email} password={demo.operator.password} />
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

function Credentials({ email, password }: { email: string; password: string }) {
  return (
    <dl className="facts">
      <div>
        <dt>E-mail</dt>
        <dd>
          <code>{email}</code>
        </dd>
      </div>
      <div>
        <dt>Password</dt>
        <dd>
          <code>{password}</code>
        </dd>
      </div>
    </dl>
  );
}
