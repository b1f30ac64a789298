import type { Tenant } from "better-auth-tenant";
import Link from "next/link";
import { redirect } from "next/navigation";
import type { ReactNode } from "react";
import {
  AddPasskeyButton,
  NameForm,
  PasswordForm,
  RemovePasskey,
  SwitchOffForm,
} from "@/components/account";
import { EndOtherSessionsButton } from "@/components/session-buttons";
import { TenantFrame } from "@/components/tenant-frame";
import { Time } from "@/components/time";
import { auth } from "@/lib/auth";
import { formatBrowser } from "@/lib/format";
import { passwordLength } from "@/lib/policy";
import { activeTenantOfPage, basePath, headersFor, orSignIn, sessionAt } from "@/lib/tenants";

export const metadata = { title: "Account" };

/** What users change about themselves. It is theirs at this tenant, and at no other. */
export default async function AccountPage({ params }: PageProps<"/t/[slug]/account">) {
  const tenant = await activeTenantOfPage((await params).slug);
  const base = await basePath(tenant);
  const signedIn = await sessionAt(tenant.id);
  if (!signedIn) redirect(base || "/");
  const { user, session } = signedIn;
  const headers = await headersFor(tenant.id);
  const accounts = await orSignIn(tenant, auth.api.listUserAccounts({ headers }));
  const hasPassword = accounts.some(({ providerId }) => providerId === "credential");
  const { methods } = await auth.api.getTenantSignInMethods({ query: { tenantId: tenant.id } });
  return (
    <TenantFrame tenant={tenant} current="account">
      <div className="tight">
        <h1>Your account</h1>
        <p className="muted three-lines">
          At {tenant.name}, as {user.email}.
        </p>
      </div>
      <div className="columns two">
        <div className="stack">
          <Section id="name" title="Name">
            <NameForm tenantId={tenant.id} name={user.name} />
          </Section>
          {hasPassword && (
            <Section id="password" title="Password">
              <PasswordForm tenantId={tenant.id} minLength={passwordLength(tenant)} />
            </Section>
          )}
        </div>
        <div className="stack">
          {hasPassword && (
            <Section id="second-factor" title="Second factor">
              <SecondFactor tenant={tenant} base={base} isOn={Boolean(user.twoFactorEnabled)} />
            </Section>
          )}
          {methods.includes("passkey") && <Passkeys tenant={tenant} />}
          <Sessions tenant={tenant} current={session.id} />
        </div>
      </div>
    </TenantFrame>
  );
}

function Section({ id, title, children }: { id: string; title: string; children: ReactNode }) {
  return (
    <section className="card" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  );
}

/** It comes after a password. A tenant may require it, and then it stays on. */
function SecondFactor({ tenant, base, isOn }: { tenant: Tenant; base: string; isOn: boolean }) {
  if (!isOn) {
    return (
      <>
        <p className="muted">Signing in with your password takes no second step yet.</p>
        <div>
          <Link className="button plain" href={`${base}/two-factor/setup`}>
            Set up a second factor
          </Link>
        </div>
      </>
    );
  }
  return (
    <>
      <p className="muted">
        A second factor is set up.{" "}
        {tenant.policy?.twoFactor?.required && `${tenant.name} requires one.`}
      </p>
      {!tenant.policy?.twoFactor?.required && <SwitchOffForm tenantId={tenant.id} />}
    </>
  );
}

async function Passkeys({ tenant }: { tenant: Tenant }) {
  const headers = await headersFor(tenant.id);
  const passkeys = await orSignIn(tenant, auth.api.listPasskeys({ headers }));
  return (
    <Section id="passkeys" title="Passkeys">
      {passkeys.length === 0 && (
        <p className="muted">With a passkey you sign in as you unlock your device.</p>
      )}
      <ul className="list">
        {passkeys.map(({ id, name, createdAt }) => (
          <li key={id}>
            <div className="grow">
              {name || "Passkey"}
              <div className="small muted">{createdAt && <Time date={createdAt} />}</div>
            </div>
            <RemovePasskey tenantId={tenant.id} id={id} name={name || "passkey"} />
          </li>
        ))}
      </ul>
      <AddPasskeyButton tenantId={tenant.id} />
    </Section>
  );
}

async function Sessions({ tenant, current }: { tenant: Tenant; current: string }) {
  const headers = await headersFor(tenant.id);
  const sessions = await orSignIn(tenant, auth.api.listSessions({ headers }));
  return (
    <Section id="sessions" title="Sessions">
      <ul className="list">
        {sessions.map(({ id, userAgent, ipAddress, createdAt }) => (
          <li key={id}>
            <div className="grow">
              {formatBrowser(userAgent)}
              <div className="small muted">
                <Time date={createdAt} />
                {ipAddress && `, from ${ipAddress}`}
              </div>
            </div>
            {id === current && <span className="badge good">This session</span>}
          </li>
        ))}
      </ul>
      {sessions.length > 1 && <EndOtherSessionsButton tenantId={tenant.id} />}
    </Section>
  );
}
