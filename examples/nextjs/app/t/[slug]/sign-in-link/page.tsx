import Link from "next/link";
import { notFound } from "next/navigation";
import { Entrance } from "@/components/entrance";
import { MagicLinkForm } from "@/components/sign-in";
import { auth } from "@/lib/auth";
import { APP_URL } from "@/lib/hosts";
import { activeTenantOfPage, basePath } from "@/lib/tenants";

export const metadata = { title: "Sign in by email" };

export default async function SignInLinkPage({ params }: PageProps<"/t/[slug]/sign-in-link">) {
  const tenant = await activeTenantOfPage((await params).slug);
  const base = await basePath(tenant);
  const query = { tenantId: tenant.id };
  const { methods } = await auth.api.getTenantSignInMethods({ query });
  if (!methods.includes("magic-link")) notFound();
  return (
    <Entrance
      brand={tenant.name}
      motto="No password needed."
      title="Sign in by email"
      intro={`Enter your email address and we will send you a link that signs you in to ${tenant.name}.`}
    >
      <MagicLinkForm tenantId={tenant.id} base={base} />
      <p className="small muted">
        This is a demo: emails go to <a href={`${APP_URL.origin}/inbox`}>the inbox</a>.{" "}
        <Link href={base || "/"}>Back to sign-in</Link>
      </p>
    </Entrance>
  );
}
