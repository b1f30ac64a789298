"use client";

import type { SignInMethod, TenantPolicy } from "better-auth-tenant";
import { useRouter } from "next/navigation";
import { useState } from "react";
import { LIMITS, methodName, policyFrom } from "@/lib/policy";
import { asOutcome, Check, Field, OutcomeNote, SelectField, SubmitButton, useForm } from "./form";
import { useManagement } from "./management";

const SIGN_UP = {
  open: "Everybody",
  invited: "Only people who are invited",
  closed: "Nobody new",
};

/** What a tenant decides: who may join, and how people sign in. */
export function PolicyForm({
  tenantId,
  policy,
  methods,
}: {
  tenantId: string;
  policy: TenantPolicy | null;
  /** Those to choose from. */
  methods: SignInMethod[];
}) {
  const router = useRouter();
  const { update } = useManagement();
  const [endSessions, setEndSessions] = useState(false);
  const { form, pending, outcome } = useForm(
    async (_, data) => {
      const { error } = await update({ tenantId, policy: policyFrom(data), endSessions });
      if (error) return asOutcome(error);
      setEndSessions(false);
      router.refresh();
      return { done: "The policy is in force." };
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
        hint="New people need an email address of one of these domains, or of one that is verified: enter “verified”. Leave empty to allow all."
      />
      <Methods methods={methods} allowed={policy?.methods} />
      <Field
        label="Shortest password"
        name="minLength"
        type="number"
        min={LIMITS.minPassword}
        max={LIMITS.maxPassword}
        defaultValue={password?.minLength?.toString()}
        placeholder={String(LIMITS.minPassword)}
        hint={`In characters, for new passwords. Leave empty for ${LIMITS.minPassword}.`}
      />
      <Field
        label="Length of a session"
        name="sessionHours"
        type="number"
        step="any"
        max={LIMITS.sessionHours}
        defaultValue={hoursOf(session?.expiresIn)}
        placeholder={String(LIMITS.sessionHours)}
        hint={`In hours. Leave empty for ${LIMITS.sessionHours}, which is also the most.`}
      />
      <Check
        label="Require a second factor after a password"
        name="twoFactor"
        defaultChecked={policy?.twoFactor?.required}
      />
      {methods.filter(isElsewhere).map((method) => (
        <input key={method} type="hidden" name="exempt" value={method} />
      ))}
      <Check
        label="End all sessions now, so that everybody has to sign in again"
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

/** People sign in elsewhere, and may have a second factor there. */
const isElsewhere = (method: SignInMethod) => method === "sso" || method.startsWith("social:");

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
      {choice("In every way that is set up, now or later", "")}
      {choice("Only in these ways", "yes")}
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
