import Link from "next/link";
import { notFound } from "next/navigation";
import { Entrance } from "@/components/entrance";
import { SignUpForm, SocialButtons } from "@/components/sign-in";
import { auth } from "@/lib/auth";
import { passwordLength } from "@/lib/policy";
import { byName } from "@/lib/providers";
import { activeTenantOfPage, basePath, domainsToJoin } from "@/lib/tenants";

export const metadata = { title: "Create an account" };

const either = new Intl.ListFormat("en", { type: "disjunction" });

export default async function SignUpPage({ params }: PageProps<"/t/[slug]/sign-up">) {
  const tenant = await activeTenantOfPage((await params).slug);
  const base = await basePath(tenant);
  const { emailAndPassword, providers } = await auth.api.getTenantSignInMethods({
    query: { tenantId: tenant.id },
  });
  if (!emailAndPassword.signUp) notFound();
  const domains = await domainsToJoin(tenant);
  return (
    <Entrance
      brand={tenant.name}
      motto={`Join ${tenant.name} in a minute.`}
      title="Create an account"
      intro={
        <>
          Already have an account at {tenant.name}? <Link href={base || "/"}>Sign in</Link>
        </>
      }
    >
      {domains && (
        <p className="note">
          {domains.length > 0
            ? `You can join with an email address at ${either.format(domains)}.`
            : "Only email addresses at certain domains can join."}
        </p>
      )}
      <SignUpForm tenantId={tenant.id} base={base} minLength={passwordLength(tenant)} />
      {providers.length > 0 && (
        <>
          <p className="divider">or</p>
          <SocialButtons
            tenantId={tenant.id}
            base={base}
            providers={providers.map(({ id }) => id).sort(byName)}
          />
        </>
      )}
    </Entrance>
  );
}
