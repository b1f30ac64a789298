"use client";

import { platformClient } from "@/lib/auth-client";
import { asOutcome, EmailField, OutcomeNote, SubmitButton, useForm } from "./form";

/** Leads to the tenant that has verified the domain of an address. Only the domain is sent. */
export function EmailFirst() {
  const find = async ({ email = "" }: Record<string, string>) => {
    const query = { domain: email.slice(email.lastIndexOf("@") + 1) };
    const { data, error } = await platformClient.tenant.discover({ query });
    if (error) return asOutcome(error);
    const page = data[0]?.signInURL;
    if (!page) return { error: "Nobody signs in here with an email address at this domain." };
    location.assign(page);
  };
  const { form, pending, outcome } = useForm(find, { keep: true });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <EmailField />
      <SubmitButton pending={pending}>Continue</SubmitButton>
    </form>
  );
}
