import Link from "next/link";
import { redirect } from "next/navigation";
import { Entrance } from "@/components/entrance";
import { SignInForm, SocialButtons } from "@/components/sign-in";
import { auth } from "@/lib/auth";
import { byName } from "@/lib/providers";
import { basePath, sessionAt, tenantOfPage } from "@/lib/tenants";

export const metadata = { title: "Sign in" };

export default async function SignInPage({ params, searchParams }: PageProps<"/t/[slug]">) {
  const tenant = await tenantOfPage((await params).slug);
  const base = await basePath(tenant);
  if (await sessionAt(tenant.id)) redirect(`${base}/dashboard`);
  const { emailAndPassword, providers } = await auth.api.getTenantSignInMethods({
    query: { tenantId: tenant.id },
  });
  const { error, done } = await searchParams;
  return (
    <Entrance
      brand={tenant.name}
      motto={`Welcome to ${tenant.name}.`}
      title={`Sign in to ${tenant.name}`}
      intro={
        emailAndPassword.signUp && (
          <>
            New here? <Link href={`${base}/sign-up`}>Create an account</Link>
          </>
        )
      }
    >
      {error && (
        <p className="note bad" role="alert">
          {refusal(String(error))}
        </p>
      )}
      {done === "password" && (
        <p className="note good" role="status">
          Your password has been changed. You can sign in with it now.
        </p>
      )}
      {emailAndPassword.enabled && <SignInForm tenantId={tenant.id} base={base} />}
      {emailAndPassword.enabled && providers.length > 0 && <p className="divider">or</p>}
      {providers.length > 0 && (
        <SocialButtons
          tenantId={tenant.id}
          base={base}
          providers={providers.map(({ id }) => id).sort(byName)}
        />
      )}
    </Entrance>
  );
}

/** What a provider's refusal means. */
function refusal(code: string): string {
  if (code === "access_denied") return "You cancelled signing in with this provider.";
  if (code === "account_not_linked") {
    return "There is already an account with this email address. Please sign in as you did before.";
  }
  return "We could not sign you in with this provider. Please try again.";
}
