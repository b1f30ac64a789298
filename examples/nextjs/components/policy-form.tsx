"use client";

import type { SignInMethod, TenantPolicy } from "better-auth-tenant";
import { useRouter } from "next/navigation";
import { useState } from "react";
import { exemptMethods, LIMITS, methodName, policyFrom } from "@/lib/policy";
import { asOutcome, Check, Field, OutcomeNote, SelectField, SubmitButton, useForm } from "./form";
import { useManagement } from "./management";

const SIGN_UP = {
  open: "Anyone",
  invited: "Invited people only",
  closed: "No one new",
};

/** What a tenant decides: who may join, and how people sign in. */
export function PolicyForm({
  tenantId,
  policy,
  methods,
}: {
  tenantId: string;
  policy: TenantPolicy | null;
  /** Those that are set up. */
  methods: SignInMethod[];
}) {
  const router = useRouter();
  const { update } = useManagement();
  const [endSessions, setEndSessions] = useState(false);
  const { form, pending, outcome } = useForm(
    async (_, data) => {
      const { error } = await update({ tenantId, policy: policyFrom(data, policy), endSessions });
      if (error) return asOutcome(error);
      setEndSessions(false);
      router.refresh();
      return { done: "Policy saved." };
    },
    { keep: true },
  );
  const { signUp = "open", emailDomains = [], password, session } = policy ?? {};
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <SelectField label="Who may join" name="signUp" defaultValue={signUp} options={SIGN_UP} />
      <Field
        label="Allowed domains"
        name="emailDomains"
        defaultValue={[emailDomains].flat().join(", ")}
        placeholder="example.com, example.org"
        hint="New users need an email address at one of these domains. Enter “verified” for the verified domains of this tenant. Leave empty to allow all."
      />
      <Methods
        methods={[...new Set([...methods, ...(policy?.methods ?? [])])]}
        allowed={policy?.methods}
      />
      <Field
        label="Minimum password length"
        name="minLength"
        type="number"
        min={LIMITS.minPassword}
        max={LIMITS.maxPassword}
        defaultValue={password?.minLength?.toString()}
        placeholder={String(LIMITS.minPassword)}
        hint={`In characters, for new passwords. Leave empty for ${LIMITS.minPassword}.`}
      />
      <Field
        label="Session length"
        name="sessionHours"
        type="number"
        step="any"
        max={LIMITS.sessionHours}
        defaultValue={hoursOf(session?.expiresIn)}
        placeholder={String(LIMITS.sessionHours)}
        hint={`In hours. Leave empty for ${LIMITS.sessionHours}, the maximum.`}
      />
      <Check
        label="Require a second factor after a password"
        name="twoFactor"
        defaultChecked={policy?.twoFactor?.required}
      />
      {exemptMethods(policy, methods).map((method) => (
        <input key={method} type="hidden" name="exempt" value={method} />
      ))}
      <Check
        label="End all sessions now, so that everyone has to sign in again"
        checked={endSessions}
        onChange={({ target }) => setEndSessions(target.checked)}
      />
      <div>
        <SubmitButton className="" pending={pending}>
          Save policy
        </SubmitButton>
      </div>
    </form>
  );
}

const hoursOf = (seconds: number | undefined) =>
  seconds === undefined ? undefined : String(seconds / 3600);

function Methods({
  methods,
  allowed,
}: {
  methods: SignInMethod[];
  allowed: SignInMethod[] | undefined;
}) {
  const [isLimited, setIsLimited] = useState(allowed !== undefined);
  const choice = (label: string, value: string) => (
    <Check
      type="radio"
      name="limited"
      label={label}
      value={value}
      checked={isLimited === Boolean(value)}
      onChange={() => setIsLimited(Boolean(value))}
    />
  );
  return (
    <fieldset className="choices">
      <legend>How people sign in</legend>
      {choice("With every method that is set up, now or later", "")}
      {choice("Only with these methods", "yes")}
      {isLimited && (
        <div className="choices inner">
          {methods.map((method) => (
            <Check
              key={method}
              name="methods"
              value={method}
              label={methodName(method)}
              defaultChecked={!allowed || allowed.includes(method)}
            />
          ))}
        </div>
      )}
    </fieldset>
  );
}
