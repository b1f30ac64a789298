import { isAPIError } from "better-auth/api";
import { notFound, redirect } from "next/navigation";
import { auth } from "@/lib/auth";
import { acceptAddress } from "@/lib/invitations";

/** Leads the link of an invitation to its tenant, whatever that is called by now. */
export default async function InvitationPage({ searchParams }: PageProps<"/accept-invitation">) {
  const { tenant: id, token } = await searchParams;
  const slug = await auth.api.getTenant({ query: { id: String(id) } }).then(
    (tenant) => tenant.slug,
    (error) => {
      if (isAPIError(error)) notFound();
      throw error;
    },
  );
  redirect(acceptAddress(`/t/${slug}`, String(token)));
}
