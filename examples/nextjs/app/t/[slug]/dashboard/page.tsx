import type { Tenant } from "better-auth-tenant";
import { headers } from "next/headers";
import Link from "next/link";
import { redirect } from "next/navigation";
import { Monogram } from "@/components/brand";
import { TenantFrame } from "@/components/tenant-frame";
import { Time } from "@/components/time";
import { auth } from "@/lib/auth";
import { APP_URL, slugOfHost } from "@/lib/hosts";
import { providerName } from "@/lib/providers";
import {
  activeTenantOfPage,
  basePath,
  headersFor,
  hueOf,
  listedTenants,
  orSignIn,
  sessionAt,
} from "@/lib/tenants";

export const metadata = { title: "Dashboard" };

export default async function DashboardPage({
  params,
  searchParams,
}: PageProps<"/t/[slug]/dashboard">) {
  const tenant = await activeTenantOfPage((await params).slug);
  const base = await basePath(tenant);
  const signedIn = await sessionAt(tenant.id);
  if (!signedIn) {
    // A sign-in with SAML that is refused ends here, and the sign-in page says why.
    const { error } = await searchParams;
    redirect(`${base || "/"}${error ? `?error=${encodeURIComponent(String(error))}` : ""}`);
  }
  const { user, session } = signedIn;
  return (
    <TenantFrame tenant={tenant} current="dashboard">
      <div className="tight">
        <h1>Hello, {user.name}</h1>
        <p className="muted three-lines">
          You are signed in to {tenant.name} as {user.email}.
        </p>
      </div>
      {!user.emailVerified && (
        <p className="note">
          Please confirm your email address. We have sent a link to{" "}
          <a href={`${APP_URL.origin}/inbox`}>your inbox</a>.
        </p>
      )}
      <div className="columns two">
        <section className="card" aria-labelledby="account">
          <h2 id="account">Your account at {tenant.name}</h2>
          <dl className="facts">
            <Fact term="Tenant">{tenant.name}</Fact>
            <Fact term="Name">{user.name}</Fact>
            <Fact term="Email">
              {user.email} {user.emailVerified && <span className="badge good">Confirmed</span>}
            </Fact>
            <Fact term="User ID">
              <code>{user.id}</code>
            </Fact>
            <Fact term="Signed in">
              <Time date={session.createdAt} />
            </Fact>
          </dl>
          <Accounts tenant={tenant} />
          <p className="small">
            {user.twoFactorEnabled ? (
              "A second factor is set up."
            ) : (
              <Link href={`${base}/two-factor/setup`}>Set up a second factor</Link>
            )}
          </p>
        </section>
        <Elsewhere here={tenant} />
      </div>
    </TenantFrame>
  );
}

function Fact({ term, children }: { term: string; children: React.ReactNode }) {
  return (
    <div>
      <dt>{term}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** The ways to sign in that this user has, in this tenant. */
async function Accounts({ tenant }: { tenant: Tenant }) {
  const headers = await headersFor(tenant.id);
  const accounts = await orSignIn(tenant, auth.api.listUserAccounts({ headers }));
  return (
    <div className="row">
      <span className="small muted">You can sign in with</span>
      {accounts.length === 0 && <span className="badge tint">a link by email</span>}
      {accounts.map(({ id, providerId }) => (
        <span className="badge tint" key={id}>
          {providerId === "credential" ? "a password" : providerName(providerId)}
        </span>
      ))}
    </div>
  );
}

/**
 * Each tenant has its own session cookie, so one browser can be at several at once. A tenant on a
 * host of its own has its cookies there, and nobody else's.
 */
async function Elsewhere({ here }: { here: Tenant }) {
  if (slugOfHost((await headers()).get("host"))) {
    return (
      <section className="card" aria-labelledby="elsewhere">
        <h2 id="elsewhere">This address</h2>
        <p className="muted">
          This address belongs to {here.name} only. Sessions of other tenants are not available
          here.
        </p>
      </section>
    );
  }
  const tenants = await listedTenants();
  const places = await Promise.all(
    tenants.map(async (tenant) => ({ tenant, found: await sessionAt(tenant.id) })),
  );
  return (
    <section className="card" aria-labelledby="elsewhere">
      <h2 id="elsewhere">In this browser</h2>
      <ul className="list">
        {places.map(({ tenant, found }) => (
          <li
            key={tenant.id}
            className="themed"
            style={{ "--hue": hueOf(tenant) } as React.CSSProperties}
          >
            <Monogram name={tenant.name} />
            <div className="grow">
              <Link className="three-lines" href={`/t/${tenant.slug}`}>
                {tenant.name}
              </Link>
              <div className="small muted three-lines">
                {found ? `${found.user.name}, ${found.user.email}` : "Not signed in"}
              </div>
            </div>
            {tenant.id === here.id && <span className="badge tint">You are here</span>}
          </li>
        ))}
      </ul>
    </section>
  );
}
