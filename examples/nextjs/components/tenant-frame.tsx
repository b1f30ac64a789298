import type { Tenant } from "better-auth-tenant";
import Link from "next/link";
import type { ReactNode } from "react";
import { administratorOf } from "@/lib/management";
import { basePath, sessionAt } from "@/lib/tenants";
import { Brand } from "./brand";
import { SignOutButton } from "./session-buttons";

const PAGES = { dashboard: "Dashboard", account: "Account", settings: "Settings" };

/** The frame of a tenant's pages for whoever is signed in there. */
export async function TenantFrame({
  tenant,
  current,
  children,
}: {
  tenant: Tenant;
  current: keyof typeof PAGES;
  children: ReactNode;
}) {
  const base = await basePath(tenant);
  const signedIn = await sessionAt(tenant.id);
  const isAdministrator = (await administratorOf(tenant)) !== null;
  const pages = Object.entries(PAGES).filter(([path]) => isAdministrator || path !== "settings");
  return (
    <div className="page">
      <header className="bar">
        <div>
          <Brand name={tenant.name} />
          <nav aria-label={tenant.name}>
            {pages.map(([path, label]) => (
              <Link
                key={path}
                href={`${base}/${path}`}
                aria-current={path === current ? "page" : undefined}
              >
                {label}
              </Link>
            ))}
          </nav>
          <div className="end">
            <span className="small muted wide-only one-line">{signedIn?.user.email}</span>
            <SignOutButton tenantId={tenant.id} href={base || "/"} />
          </div>
        </div>
      </header>
      <main id="content" className="content">
        {children}
      </main>
    </div>
  );
}
