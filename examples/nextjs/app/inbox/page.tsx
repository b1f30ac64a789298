import Link from "next/link";
import type { CSSProperties } from "react";
import { Brand } from "@/components/brand";
import { Time } from "@/components/time";
import { mailsOf } from "@/lib/mail";
import { hueOf, listedTenants } from "@/lib/tenants";

export const metadata = { title: "Inbox" };

/** Everybody's mails. It belongs to the demo: an application of yours sends them. */
export default async function InboxPage({ searchParams }: PageProps<"/inbox">) {
  const { tenant: chosen } = await searchParams;
  const tenants = await listedTenants();
  const shown = tenants.filter(({ slug }) => !chosen || slug === chosen);
  const mails = (
    await Promise.all(
      shown.map(async (tenant) => (await mailsOf(tenant.id)).map((mail) => ({ tenant, mail }))),
    )
  )
    .flat()
    .sort((a, b) => b.mail.createdAt.getTime() - a.mail.createdAt.getTime());
  return (
    <div className="page">
      <header className="bar">
        <div>
          <Brand name="Inbox" href="/inbox" />
          <nav aria-label="Demo">
            <Link href="/">Start</Link>
            <Link href="/console">Console</Link>
          </nav>
        </div>
      </header>
      <main id="content" className="content">
        <div className="tight">
          <h1>Inbox</h1>
          <p className="muted">The emails this demo would have sent, newest first.</p>
        </div>
        <nav className="row" aria-label="Filter by tenant">
          <Link className="badge" href="/inbox" aria-current={chosen ? undefined : "page"}>
            All tenants
          </Link>
          {tenants.map(({ id, slug, name }) => (
            <Link
              key={id}
              className="badge"
              href={`/inbox?tenant=${slug}`}
              aria-current={chosen === slug ? "page" : undefined}
            >
              {name}
            </Link>
          ))}
        </nav>
        {mails.length === 0 && <p className="nothing">No emails yet.</p>}
        {mails.map(({ tenant, mail }) => (
          <article
            key={mail.id}
            className="card themed"
            style={{ "--hue": hueOf(tenant) } as CSSProperties}
            aria-labelledby={`mail-${mail.id}`}
          >
            <div className="spread">
              <h2 id={`mail-${mail.id}`}>{mail.subject}</h2>
              <span className="badge tint">{tenant.name}</span>
            </div>
            <p className="small muted">
              To {mail.to}, <Time date={mail.createdAt} />
            </p>
            <p>{mail.text}</p>
            <div>
              <a className="button" href={mail.link}>
                <span className="name">{mail.subject}</span>
              </a>
            </div>
          </article>
        ))}
      </main>
    </div>
  );
}
