import { connection } from "next/server";
import { Brand } from "@/components/brand";
import { APP_URL } from "@/lib/hosts";

export default async function NotFound() {
  // The address of the application is known when it runs, not when it is built.
  await connection();
  return (
    <div className="page">
      {/* Here, because a page of a tenant that does not exist has no metadata. */}
      <title>Not found</title>
      <header className="bar">
        <div>
          <Brand name="Tenants" href={APP_URL.origin} />
        </div>
      </header>
      <main id="content" className="content middle">
        <h1>Page not found</h1>
        <p className="muted">The address may be misspelled, or the tenant no longer exists.</p>
        <p>
          <a href={APP_URL.origin}>Go to the start page</a>
        </p>
      </main>
    </div>
  );
}
