import Link from "next/link";
import { redirect } from "next/navigation";
import { Entrance } from "@/components/entrance";
import { activeTenantOfPage, basePath, sessionAt } from "@/lib/tenants";

export const metadata = { title: "Email confirmation" };

/** Where the link in a confirmation mail leads to. */
export default async function ConfirmedPage({
  params,
  searchParams,
}: PageProps<"/t/[slug]/confirmed">) {
  const tenant = await activeTenantOfPage((await params).slug);
  const base = await basePath(tenant);
  const { error } = await searchParams;
  const signedIn = await sessionAt(tenant.id);
  if (signedIn && !error) redirect(`${base}/dashboard`);
  return (
    <Entrance
      brand={tenant.name}
      motto={`Welcome to ${tenant.name}.`}
      title={error ? "This link does not work" : "Your email address is confirmed"}
      intro={error ? "It has expired, or your email address has changed since." : undefined}
    >
      <div>
        <Link className="button" href={signedIn ? `${base}/dashboard` : base || "/"}>
          {signedIn ? "Go to the dashboard" : "Sign in"}
        </Link>
      </div>
    </Entrance>
  );
}
