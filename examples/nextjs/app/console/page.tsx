import Link from "next/link";
import type { CSSProperties } from "react";
import { Monogram } from "@/components/brand";
import { ConsoleFrame } from "@/components/console-frame";
import { StatusBadge } from "@/components/status";
import { Time } from "@/components/time";
import { auth } from "@/lib/auth";
import { countOf } from "@/lib/console";
import { asOperator } from "@/lib/management";
import { hueOf, withShownName } from "@/lib/tenants";

const PAGE_SIZE = 20;

export default async function ConsolePage({ searchParams }: PageProps<"/console">) {
  const { deleted, search: asked, page: number } = await searchParams;
  const search = String(asked ?? "");
  const page = Math.max(1, Math.trunc(Number(number)) || 1);
  const query = { limit: PAGE_SIZE + 1, offset: (page - 1) * PAGE_SIZE, search };
  const tenants = await asOperator((headers) => auth.api.listTenants({ query, headers }));
  const rows = await Promise.all(
    tenants.slice(0, PAGE_SIZE).map(async (tenant) => ({
      tenant: withShownName(tenant),
      count: await countOf(tenant.id),
    })),
  );
  return (
    <ConsoleFrame>
      <div className="spread">
        <h1>Tenants</h1>
        <Link className="button" href="/console/tenants/new">
          New tenant
        </Link>
      </div>
      {deleted && (
        <p className="note good" role="status">
          {deleted} and everything that belonged to it have been deleted.
        </p>
      )}
      <search>
        <form className="row">
          <div className="field grow">
            <label htmlFor="search">Find a tenant by name or slug</label>
            <input id="search" name="search" type="search" defaultValue={search} />
          </div>
          <button className="button plain" type="submit">
            Find
          </button>
        </form>
      </search>
      {rows.length === 0 && <p className="nothing">No tenants found.</p>}
      {rows.length > 0 && (
        <section className="card" aria-label="All tenants">
          <div className="table">
            <table>
              <thead>
                <tr>
                  <th scope="col">Tenant</th>
                  <th scope="col" className="number">
                    Users
                  </th>
                  <th scope="col" className="number">
                    Sessions
                  </th>
                  <th scope="col" className="number wide-only">
                    Providers
                  </th>
                  <th scope="col" className="wide-only">
                    Created
                  </th>
                </tr>
              </thead>
              <tbody>
                {rows.map(({ tenant, count }) => (
                  <tr key={tenant.id}>
                    <th scope="row">
                      <span
                        className="themed row"
                        style={{ "--hue": hueOf(tenant) } as CSSProperties}
                      >
                        <Monogram name={tenant.name} />
                        <span className="grow">
                          <Link className="three-lines" href={`/console/tenants/${tenant.id}`}>
                            {tenant.name}
                          </Link>
                          <span className="small muted">/t/{tenant.slug}</span>{" "}
                          {tenant.status !== "active" && <StatusBadge status={tenant.status} />}
                        </span>
                      </span>
                    </th>
                    <td className="number">{count.users}</td>
                    <td className="number">{count.sessions}</td>
                    <td className="number wide-only">{count.providers}</td>
                    <td className="small muted wide-only time">
                      <Time date={tenant.createdAt} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
      <nav className="row" aria-label="Pages">
        {page > 1 && <Link href={`?${pageQuery(search, page - 1)}`}>Previous page</Link>}
        {tenants.length > PAGE_SIZE && (
          <Link href={`?${pageQuery(search, page + 1)}`}>Next page</Link>
        )}
      </nav>
    </ConsoleFrame>
  );
}

function pageQuery(search: string, page: number): string {
  return new URLSearchParams({ search, page: String(page) }).toString();
}
