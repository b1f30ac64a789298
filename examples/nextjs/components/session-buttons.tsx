"use client";

import { useRouter } from "next/navigation";
import { platformClient, tenantClient } from "@/lib/auth-client";
import { ActionButton, asOutcome, OutcomeNote, SubmitButton, useForm } from "./form";

/** Signs out of one tenant, or of the platform. Sessions of other tenants stay. */
export function SignOutButton({ tenantId, href }: { tenantId?: string; href: string }) {
  const router = useRouter();
  const signOut = async () => {
    const client = tenantId ? tenantClient(tenantId) : platformClient;
    const { error } = await client.signOut();
    if (error) return asOutcome(error);
    router.replace(href);
  };
  return (
    <ActionButton className="plain compact" act={signOut}>
      Sign out
    </ActionButton>
  );
}

export function EndOtherSessionsButton({ tenantId }: { tenantId: string }) {
  const router = useRouter();
  const { form, pending, outcome } = useForm(async () => {
    const { error } = await tenantClient(tenantId).revokeOtherSessions();
    if (!error) router.refresh();
    return asOutcome(error, "You have been signed out everywhere else.");
  });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <div>
        <SubmitButton className="plain compact" pending={pending}>
          Sign out of all other sessions
        </SubmitButton>
      </div>
    </form>
  );
}
