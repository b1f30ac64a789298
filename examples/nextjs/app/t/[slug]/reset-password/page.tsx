import Link from "next/link";
import { Entrance } from "@/components/entrance";
import { ResetPasswordForm } from "@/components/sign-in";
import { passwordLength } from "@/lib/policy";
import { activeTenantOfPage, basePath } from "@/lib/tenants";

export const metadata = { title: "New password" };

export default async function ResetPasswordPage({
  params,
  searchParams,
}: PageProps<"/t/[slug]/reset-password">) {
  const tenant = await activeTenantOfPage((await params).slug);
  const base = await basePath(tenant);
  const { token } = await searchParams;
  return (
    <Entrance
      brand={tenant.name}
      motto="A fresh start."
      title="Set a new password"
      intro={`This changes your password for ${tenant.name} only.`}
    >
      {typeof token === "string" ? (
        <ResetPasswordForm
          tenantId={tenant.id}
          base={base}
          token={token}
          minLength={passwordLength(tenant)}
        />
      ) : (
        <p className="note bad" role="alert">
          This link has expired or has already been used.{" "}
          <Link href={`${base}/forgot-password`}>Request a new link</Link>
        </p>
      )}
    </Entrance>
  );
}
