"use client";

import { useRouter } from "next/navigation";
import { tenantClient } from "@/lib/auth-client";
import { asOutcome, NameField, NewPasswordField, OutcomeNote, SubmitButton, useForm } from "./form";
import { nextPage } from "./second-factor";
import type { Place } from "./sign-in";

/** Accepts an invitation with a password. The address is in the invitation. */
export function AcceptForm({
  tenantId,
  base,
  token,
  minLength,
}: Place & { token: string; minLength: number }) {
  const router = useRouter();
  const { form, pending, outcome } = useForm(async ({ name = "", password = "" }) => {
    const { data, error } = await tenantClient(tenantId).tenant.invitation.accept({
      ...{ token, name, password },
    });
    if (error) return asOutcome(error);
    router.replace(nextPage(base, data));
  });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <NameField autoComplete="name" />
      <NewPasswordField label="Password" name="password" minLength={minLength} />
      <SubmitButton pending={pending}>Create account</SubmitButton>
    </form>
  );
}
