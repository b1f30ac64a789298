import Link from "next/link";
import { AsAdministrator } from "@/components/management";
import { People } from "@/components/people";
import { TenantFrame } from "@/components/tenant-frame";
import { TenantSettings } from "@/components/tenant-settings";
import { auth } from "@/lib/auth";
import { administratorOf, settingsOf } from "@/lib/management";
import { activeTenantOfPage, basePath, sessionAt } from "@/lib/tenants";

export const metadata = { title: "Settings" };

/** For a tenant's own administrators: the console's forms, for one tenant. */
export default async function SettingsPage({ params }: PageProps<"/t/[slug]/settings">) {
  const tenant = await activeTenantOfPage((await params).slug);
  const asAdministrator = await administratorOf(tenant);
  if (!asAdministrator) {
    return (
      <TenantFrame tenant={tenant} current="settings">
        <h1>Settings</h1>
        <p className="muted">Only administrators of {tenant.name} can change its settings.</p>
        <div>
          <Link className="button" href={`${await basePath(tenant)}/dashboard`}>
            Go to the dashboard
          </Link>
        </div>
      </TenantFrame>
    );
  }
  const query = { id: tenant.id };
  const stored = await asAdministrator((headers) => auth.api.getTenant({ query, headers }));
  const settings = await settingsOf(tenant, asAdministrator);
  const people = await asAdministrator((headers) =>
    auth.api.listUsers({ query: { limit: 50, sortBy: "createdAt" }, headers }),
  );
  const signedIn = await sessionAt(tenant.id);
  return (
    <TenantFrame tenant={tenant} current="settings">
      <div className="tight">
        <h1>{tenant.name} settings</h1>
        <p className="muted">You are one of its administrators.</p>
      </div>
      <AsAdministrator tenantId={tenant.id}>
        <TenantSettings tenant={stored} {...settings} />
        <People tenant={tenant} self={signedIn?.user.id} {...people} />
      </AsAdministrator>
    </TenantFrame>
  );
}
