import type { Tenant } from "better-auth-tenant";
import Link from "next/link";
import { redirect } from "next/navigation";
import { Entrance } from "@/components/entrance";
import {
  MagicLinkForm,
  PasskeyButton,
  SignInForm,
  SingleSignOnForm,
  SocialButtons,
} from "@/components/sign-in";
import { auth } from "@/lib/auth";
import { explainRefusal } from "@/lib/errors";
import { socialIn } from "@/lib/policy";
import { basePath, sessionAt, tenantOfPage } from "@/lib/tenants";

export const metadata = { title: "Sign in" };

export default async function SignInPage({ params, searchParams }: PageProps<"/t/[slug]">) {
  const tenant = await tenantOfPage((await params).slug);
  const base = await basePath(tenant);
  if (await sessionAt(tenant.id)) redirect(`${base}/dashboard`);
  const { methods, emailAndPassword } = await auth.api.getTenantSignInMethods({
    query: { tenantId: tenant.id },
  });
  if (tenant.status !== "active") return <Closed tenant={tenant} />;
  const { error, done } = await searchParams;
  const place = { tenantId: tenant.id, base };
  const hasPassword = methods.includes("password");
  const hasSSO = methods.includes("sso");
  const hasLink = methods.includes("magic-link");
  const hasForm = hasSSO || hasPassword;
  const hasPasskey = methods.includes("passkey");
  const providers = socialIn(methods);
  const hasMore = (hasForm && hasLink) || hasPasskey || providers.length > 0;
  return (
    <Entrance
      brand={tenant.name}
      motto={`Welcome to ${tenant.name}.`}
      title={`Sign in to ${tenant.name}`}
      intro={
        emailAndPassword.signUp ? (
          <>
            New here? <Link href={`${base}/sign-up`}>Create an account</Link>
          </>
        ) : (
          tenant.policy?.signUp === "invited" && "New here? You can join by invitation only."
        )
      }
    >
      {error && (
        <p className="note bad" role="alert">
          {explainRefusal(String(error))}
        </p>
      )}
      {done === "password" && (
        <p className="note good" role="status">
          Your password has been changed. You can sign in with it now.
        </p>
      )}
      {hasSSO && <SingleSignOnForm {...place} hasPassword={hasPassword} />}
      {!hasSSO && hasPassword && <SignInForm {...place} />}
      {!hasForm && hasLink && <MagicLinkForm {...place} />}
      {(hasForm || hasLink) && hasMore && <p className="divider">or</p>}
      {hasForm && hasLink && (
        <Link className="button plain wide" href={`${base}/sign-in-link`}>
          Email me a sign-in link
        </Link>
      )}
      {hasPasskey && <PasskeyButton {...place} />}
      {providers.length > 0 && <SocialButtons {...place} providers={providers} />}
    </Entrance>
  );
}

/** While a tenant is suspended, nobody can sign in, and nothing else of it is shown. */
function Closed({ tenant: { name, status } }: { tenant: Tenant }) {
  return (
    <Entrance
      brand={name}
      motto="Please come back later."
      title={`${name} is suspended`}
      intro={`Nobody can sign in at the moment.${status === "suspended" ? " Your account is kept." : ""}`}
    />
  );
}
