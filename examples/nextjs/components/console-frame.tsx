import { headers } from "next/headers";
import Link from "next/link";
import type { ReactNode } from "react";
import { auth } from "@/lib/auth";
import { Brand } from "./brand";
import { SignOutButton } from "./session-buttons";

/** The frame of the operator's pages. Who may see what, each page asks for itself. */
export async function ConsoleFrame({
  trail = [],
  children,
}: {
  trail?: [label: string, href: string][];
  children: ReactNode;
}) {
  const operator = await auth.api.getSession({ headers: await headers() });
  return (
    <div className="page">
      <header className="bar">
        <div>
          <Brand name="Console" href="/console" />
          <nav aria-label="Demo">
            <Link href="/">Start</Link>
            <Link href="/inbox">Inbox</Link>
          </nav>
          <div className="end">
            <span className="small muted wide-only one-line">{operator?.user.email}</span>
            <SignOutButton href="/console/sign-in" />
          </div>
        </div>
      </header>
      <main id="content" className="content">
        {trail.length > 0 && (
          <nav aria-label="Breadcrumb">
            <ol className="crumbs">
              {trail.map(([label, href]) => (
                <li key={href}>
                  <Link className="one-line" href={href}>
                    {label}
                  </Link>
                </li>
              ))}
            </ol>
          </nav>
        )}
        {children}
      </main>
    </div>
  );
}
