import Link from "next/link";
import { Entrance } from "@/components/entrance";
import { ResetPasswordForm } from "@/components/sign-in";
import { basePath, tenantOfPage } from "@/lib/tenants";

export const metadata = { title: "New password" };

export default async function ResetPasswordPage({
  params,
  searchParams,
}: PageProps<"/t/[slug]/reset-password">) {
  const tenant = await tenantOfPage((await params).slug);
  const base = await basePath(tenant);
  const { token } = await searchParams;
  return (
    <Entrance
      brand={tenant.name}
      motto="Fresh start."
      title="Choose a new password"
      intro={`It counts for ${tenant.name} only.`}
    >
      {typeof token === "string" ? (
        <ResetPasswordForm tenantId={tenant.id} base={base} token={token} />
      ) : (
        <p className="note bad" role="alert">
          This link is not good any more.{" "}
          <Link href={`${base}/forgot-password`}>Ask for a new one</Link>
        </p>
      )}
    </Entrance>
  );
}
