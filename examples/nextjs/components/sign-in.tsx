"use client";

import { INVITATION_HEADER } from "better-auth-tenant/invitations/client";
import Link from "next/link";
import { useRouter } from "next/navigation";
import { type MouseEvent, useEffect, useRef, useState } from "react";
import { tenantClient } from "@/lib/auth-client";
import { acceptAddress } from "@/lib/invitations";
import { providerName } from "@/lib/providers";
import {
  asOutcome,
  EmailField,
  NameField,
  NewPasswordField,
  OutcomeNote,
  PasswordField,
  SubmitButton,
  useForm,
} from "./form";
import { ProviderIcon } from "./provider-icon";
import { nextPage } from "./second-factor";

export interface Place {
  tenantId: string;
  /** What goes before the paths of the tenant's pages. */
  base: string;
}

/** With an address that was typed before, the keyboard goes on at the password. */
export function SignInForm({ tenantId, base, email: typed }: Place & { email?: string }) {
  const router = useRouter();
  const fields = useRef<HTMLFormElement>(null);
  useEffect(() => {
    const next = typed ? "password" : "email";
    if (typed !== undefined) fields.current?.querySelector<HTMLElement>(`[name=${next}]`)?.focus();
  }, [typed]);
  const { form, pending, outcome } = useForm(async ({ email = "", password = "" }) => {
    const { data, error } = await tenantClient(tenantId).tenant.signIn.email({ email, password });
    if (error) return asOutcome(error);
    router.replace(nextPage(base, data));
  });
  return (
    <form className="stack" ref={fields} {...form}>
      <OutcomeNote {...outcome} />
      <EmailField defaultValue={typed} />
      <PasswordField
        label="Password"
        name="password"
        autoComplete="current-password"
        required
        aside={<Link href={`${base}/forgot-password`}>Forgot password?</Link>}
      />
      <SubmitButton pending={pending}>Sign in</SubmitButton>
    </form>
  );
}

/**
 * First the address: whoever has one of a domain with single sign-on goes there, and everybody else
 * is asked for a password, if the tenant allows it.
 */
export function SingleSignOnForm({
  tenantId,
  base,
  hasPassword,
}: Place & { hasPassword: boolean }) {
  const [email, setEmail] = useState<string>();
  const { form, pending, outcome } = useForm(async ({ email = "" }) => {
    const { error } = await tenantClient(tenantId).signIn.sso({
      email,
      callbackURL: `${base}/dashboard`,
      errorCallbackURL: base || "/",
    });
    if (!error) return;
    if (error.status !== 404) return asOutcome(error);
    if (!hasPassword) return { error: "There is no single sign-on for this email address." };
    setEmail(email);
  });
  const usePassword = ({ currentTarget: { form } }: MouseEvent<HTMLButtonElement>) =>
    setEmail(String(new FormData(form ?? undefined).get("email") ?? ""));
  if (email !== undefined) return <SignInForm tenantId={tenantId} base={base} email={email} />;
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <EmailField />
      <SubmitButton pending={pending}>Continue</SubmitButton>
      {hasPassword && (
        <button className="button plain wide" type="button" onClick={usePassword}>
          Use a password
        </button>
      )}
    </form>
  );
}

export function SignUpForm({ tenantId, base, minLength }: Place & { minLength: number }) {
  const router = useRouter();
  const { form, pending, outcome } = useForm(async ({ name = "", email = "", password = "" }) => {
    const { data, error } = await tenantClient(tenantId).tenant.signUp.email({
      name,
      email,
      password,
      // Where the link in the confirmation mail leads to.
      callbackURL: `${base}/confirmed`,
    });
    if (error) return asOutcome(error);
    // Where only some domains may join, the address has to be confirmed first.
    if (!data.token) return { done: "Please confirm your email address. We have sent you a link." };
    router.replace(nextPage(base, data));
  });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <NameField autoComplete="name" />
      <EmailField />
      <NewPasswordField label="Password" name="password" minLength={minLength} />
      <SubmitButton pending={pending}>Create account</SubmitButton>
    </form>
  );
}

export function PasskeyButton({ tenantId, base }: Place) {
  const router = useRouter();
  const { form, pending, outcome } = useForm(async () => {
    const { error } = await tenantClient(tenantId).signIn.passkey();
    if (error) return asOutcome(error);
    router.replace(`${base}/dashboard`);
  });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <SubmitButton className="plain wide" pending={pending}>
        Sign in with a passkey
      </SubmitButton>
    </form>
  );
}

/** One button for each provider that the tenant has. An invitation goes along, if there is one. */
export function SocialButtons({
  tenantId,
  base,
  providers,
  invitation,
}: Place & { providers: string[]; invitation?: string }) {
  const { form, pending, outcome } = useForm(async ({ provider = "" }) => {
    const { error } = await tenantClient(tenantId).tenant.signIn.social({
      provider,
      callbackURL: `${base}/dashboard`,
      errorCallbackURL: invitation ? acceptAddress(base, invitation) : base || "/",
      fetchOptions: { headers: invitation ? { [INVITATION_HEADER]: invitation } : {} },
    });
    return error ? asOutcome(error) : undefined;
  });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      {providers.map((id) => (
        <button
          key={id}
          className="button plain wide"
          type="submit"
          name="provider"
          value={id}
          aria-disabled={pending}
        >
          <ProviderIcon id={id} />
          Continue with {providerName(id)}
        </button>
      ))}
    </form>
  );
}

/** A link by email in place of a password. */
export function MagicLinkForm({ tenantId, base }: Place) {
  const { form, pending, outcome } = useForm(async ({ email = "" }) => {
    const { error } = await tenantClient(tenantId).signIn.magicLink({
      email,
      callbackURL: `${base}/dashboard`,
      errorCallbackURL: base || "/",
    });
    return asOutcome(error, `We have sent a sign-in link to ${email}.`);
  });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <EmailField />
      <SubmitButton pending={pending}>Email me a sign-in link</SubmitButton>
    </form>
  );
}

export function ForgotPasswordForm({ tenantId, base }: Place) {
  const { form, pending, outcome } = useForm(async ({ email = "" }) => {
    const { error } = await tenantClient(tenantId).requestPasswordReset({
      email,
      redirectTo: `${base}/reset-password`,
    });
    return asOutcome(
      error,
      "If there is an account with this email address, we have sent a link to it.",
    );
  });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <EmailField />
      <SubmitButton pending={pending}>Send link</SubmitButton>
    </form>
  );
}

export function ResetPasswordForm({
  tenantId,
  base,
  token,
  minLength,
}: Place & { token: string; minLength: number }) {
  const router = useRouter();
  const { form, pending, outcome } = useForm(async ({ newPassword = "" }) => {
    const { error } = await tenantClient(tenantId).resetPassword({ newPassword, token });
    if (error) return asOutcome(error);
    router.replace(`${base || "/"}?done=password`);
  });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <NewPasswordField label="New password" name="newPassword" minLength={minLength} />
      <SubmitButton pending={pending}>Save new password</SubmitButton>
    </form>
  );
}
