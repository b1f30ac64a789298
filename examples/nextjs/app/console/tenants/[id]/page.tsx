import Link from "next/link";
import type { CSSProperties } from "react";
import { Monogram } from "@/components/brand";
import { ConsoleFrame } from "@/components/console-frame";
import { People } from "@/components/people";
import { Status, StatusBadge } from "@/components/status";
import { TenantSettings } from "@/components/tenant-settings";
import { auth } from "@/lib/auth";
import { hostAddress } from "@/lib/hosts";
import { asOperator, settingsOf, tenantForOperator } from "@/lib/management";
import { hueOf, withShownName } from "@/lib/tenants";

export async function generateMetadata({ params }: PageProps<"/console/tenants/[id]">) {
  return { title: withShownName(await tenantForOperator((await params).id)).name };
}

export default async function TenantPage({ params }: PageProps<"/console/tenants/[id]">) {
  const stored = await tenantForOperator((await params).id);
  const tenant = withShownName(stored);
  const { id, slug, name, status } = tenant;
  const settings = await settingsOf(tenant, asOperator);
  const people = await peopleOf(id);
  return (
    <ConsoleFrame trail={[["Tenants", "/console"]]}>
      <div className="row themed" style={{ "--hue": hueOf(tenant) } as CSSProperties}>
        <Monogram name={name} large />
        <div className="tight">
          <h1>{name}</h1>
          <p className="small row">
            <StatusBadge status={status} />
            <a href={`/t/${slug}`}>/t/{slug}</a>
            <a href={hostAddress(slug)}>{new URL(hostAddress(slug)).host}</a>
          </p>
        </div>
      </div>
      <Status tenant={tenant} />
      <TenantSettings tenant={stored} {...settings} />
      <People tenant={tenant} {...people} />
      <section className="card danger" aria-labelledby="danger">
        <h2 id="danger">Delete this tenant</h2>
        <div className="spread">
          <p className="muted">The next page shows what would be deleted.</p>
          <Link className="button plain" href={`/console/tenants/${id}/delete`}>
            <span className="name">Delete {name} …</span>
          </Link>
        </div>
      </section>
    </ConsoleFrame>
  );
}

/**
 * An operator looks into a tenant with better-auth's own admin plugin. The call names no tenant:
 * there, whoever is signed in at the tenant in the same browser would be the one who asks.
 */
const peopleOf = (tenantId: string) =>
  asOperator((headers) =>
    auth.api.listUsers({
      query: {
        ...{ filterField: "tenantId", filterValue: tenantId },
        ...{ limit: 50, sortBy: "createdAt" },
      },
      headers,
    }),
  );
