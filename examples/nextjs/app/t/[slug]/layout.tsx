import type { CSSProperties } from "react";
import { hueOf, tenantOfPage } from "@/lib/tenants";

export async function generateMetadata({ params }: LayoutProps<"/t/[slug]">) {
  const { name } = await tenantOfPage((await params).slug);
  return { title: { default: name, template: `%s · ${name}` } };
}

/** Everything of a tenant is in its colour. */
export default async function TenantLayout({ params, children }: LayoutProps<"/t/[slug]">) {
  const tenant = await tenantOfPage((await params).slug);
  return (
    <div className="themed" style={{ "--hue": hueOf(tenant) } as CSSProperties}>
      {children}
    </div>
  );
}
