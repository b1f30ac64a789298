import Link from "next/link";
import { redirect } from "next/navigation";
import { Entrance } from "@/components/entrance";
import { SignInForm, SocialButtons } from "@/components/sign-in";
import { auth } from "@/lib/auth";
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
      motto={`Good to see you at ${tenant.name}.`}
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
          Your new password is saved. Sign in with it.
        </p>
      )}
      {emailAndPassword.enabled && <SignInForm tenantId={tenant.id} base={base} />}
      {emailAndPassword.enabled && providers.length > 0 && <p className="divider">or</p>}
      {providers.length > 0 && (
        <SocialButtons tenantId={tenant.id} base={base} providers={providers} />
      )}
    </Entrance>
  );
}

/** What a provider's refusal means. */
function refusal(code: string): string {
  if (code === "access_denied") return "You did not agree to sign in with this provider.";
  if (code === "account_not_linked") {
    return "There is an account with this e-mail address already. Sign in the way you did before.";
  }
  return "Signing in with this provider did not work. Please try again.";
}
