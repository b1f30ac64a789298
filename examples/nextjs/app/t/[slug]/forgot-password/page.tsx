import Link from "next/link";
import { Entrance } from "@/components/entrance";
import { ForgotPasswordForm } from "@/components/sign-in";
import { APP_URL } from "@/lib/hosts";
import { basePath, tenantOfPage } from "@/lib/tenants";

export const metadata = { title: "Forgotten password" };

export default async function ForgotPasswordPage({
  params,
}: PageProps<"/t/[slug]/forgot-password">) {
  const tenant = await tenantOfPage((await params).slug);
  const base = await basePath(tenant);
  return (
    <Entrance
      brand={tenant.name}
      motto="It happens to everybody."
      title="Forgotten password"
      intro={`We send you a link to choose a new one for ${tenant.name}.`}
    >
      <ForgotPasswordForm tenantId={tenant.id} base={base} />
      <p className="small muted">
        This is a demo: mails go to <a href={`${APP_URL.origin}/inbox`}>the inbox</a>.{" "}
        <Link href={base || "/"}>Back to sign-in</Link>
      </p>
    </Entrance>
  );
}
