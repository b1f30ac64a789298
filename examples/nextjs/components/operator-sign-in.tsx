"use client";

import { useRouter } from "next/navigation";
import { platformClient } from "@/lib/auth-client";
import { asOutcome, EmailField, OutcomeNote, PasswordField, SubmitButton, useForm } from "./form";

export function OperatorSignInForm() {
  const router = useRouter();
  const { form, pending, outcome } = useForm(async ({ email = "", password = "" }) => {
    const { error } = await platformClient.signIn.email({ email, password });
    if (error) return asOutcome(error);
    router.replace("/console");
  });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <EmailField />
      <PasswordField label="Password" name="password" autoComplete="current-password" required />
      <SubmitButton pending={pending}>Sign in</SubmitButton>
    </form>
  );
}
