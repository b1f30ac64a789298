import Link from "next/link";
import { Entrance } from "@/components/entrance";
import { ForgotPasswordForm } from "@/components/sign-in";
import { APP_URL } from "@/lib/hosts";
import { activeTenantOfPage, basePath } from "@/lib/tenants";

export const metadata = { title: "Forgot your password?" };

export default async function ForgotPasswordPage({
  params,
}: PageProps<"/t/[slug]/forgot-password">) {
  const tenant = await activeTenantOfPage((await params).slug);
  const base = await basePath(tenant);
  return (
    <Entrance
      brand={tenant.name}
      motto="It happens to all of us."
      title="Forgot your password?"
      intro={`Enter your email address and we will send you a link to set a new password for ${tenant.name}.`}
    >
      <ForgotPasswordForm tenantId={tenant.id} base={base} />
      <p className="small muted">
        This is a demo: emails go to <a href={`${APP_URL.origin}/inbox`}>the inbox</a>.{" "}
        <Link href={base || "/"}>Back to sign-in</Link>
      </p>
    </Entrance>
  );
}
