import { Entrance } from "@/components/entrance";
import { SetupForm } from "@/components/second-factor";
import { activeTenantOfPage, basePath } from "@/lib/tenants";

export const metadata = { title: "Second factor" };

/** For who is signed in, and for a setup session, which is no session anywhere else. */
export default async function SetupPage({ params }: PageProps<"/t/[slug]/two-factor/setup">) {
  const tenant = await activeTenantOfPage((await params).slug);
  const base = await basePath(tenant);
  return (
    <Entrance
      brand={tenant.name}
      motto="Two keys are better than one."
      title="Set up a second factor"
      intro="From then on, you sign in with your password and a code from your authenticator app."
    >
      <SetupForm tenantId={tenant.id} base={base} />
    </Entrance>
  );
}
