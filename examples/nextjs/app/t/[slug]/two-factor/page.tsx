import Link from "next/link";
import { Entrance } from "@/components/entrance";
import { CodeForm } from "@/components/second-factor";
import { activeTenantOfPage, basePath } from "@/lib/tenants";

export const metadata = { title: "Second step" };

export default async function TwoFactorPage({ params }: PageProps<"/t/[slug]/two-factor">) {
  const tenant = await activeTenantOfPage((await params).slug);
  const base = await basePath(tenant);
  return (
    <Entrance
      brand={tenant.name}
      motto="Two keys are better than one."
      title="Enter your code"
      intro="Open your authenticator app. If you have lost it, use a backup code, or ask an administrator."
    >
      <CodeForm tenantId={tenant.id} base={base} />
      <p className="small">
        <Link href={base || "/"}>Sign in as someone else</Link>
      </p>
    </Entrance>
  );
}
