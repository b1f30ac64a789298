"use client";

import { useRouter } from "next/navigation";
import { platformClient } from "@/lib/auth-client";
import { ActionButton, asOutcome, Field, OutcomeNote, SubmitButton, useForm } from "./form";

interface DoomedTenant {
  id: string;
  name: string;
  slug: string;
}

const WEEK = 7 * 24 * 60 * 60;

/** There is a week to take it back. */
export function DeleteLaterButton({ tenant }: { tenant: DoomedTenant }) {
  const router = useRouter();
  const schedule = async () => {
    const { error } = await platformClient.tenant.delete({ tenantId: tenant.id, after: WEEK });
    if (error) return asOutcome(error);
    router.push(`/console/tenants/${tenant.id}`);
  };
  return (
    <ActionButton className="" act={schedule}>
      <span className="name">Delete {tenant.name} in a week</span>
    </ActionButton>
  );
}

/** This cannot be undone, so the slug has to be typed. */
export function DeleteNowForm({ tenant }: { tenant: DoomedTenant }) {
  const router = useRouter();
  const { form, pending, outcome } = useForm(async ({ confirmation }) => {
    if (confirmation !== tenant.slug) return { error: `Type “${tenant.slug}” to confirm.` };
    const { error } = await platformClient.tenant.delete({ tenantId: tenant.id });
    if (error) return asOutcome(error);
    router.replace(`/console?deleted=${encodeURIComponent(tenant.name)}`);
  });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <Field
        label={`Type “${tenant.slug}” to confirm`}
        name="confirmation"
        autoComplete="off"
        required
      />
      <div>
        <SubmitButton className="destructive" pending={pending}>
          <span className="name">Delete {tenant.name} permanently</span>
        </SubmitButton>
      </div>
    </form>
  );
}
