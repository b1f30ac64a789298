"use client";

import type { OAuthConfigCheck } from "better-auth-tenant";
import { useRouter } from "next/navigation";
import { useState } from "react";
import { checkedProblem, providerName } from "@/lib/providers";
import { RedirectURI } from "./copyable";
import { ActionButton, asOutcome, OutcomeNote, PasswordField, SubmitButton, useForm } from "./form";
import { useManagement } from "./management";
import { ProviderIcon } from "./provider-icon";
import { RemoveProvider } from "./remove-provider";
import { Time } from "./time";

export interface Config {
  providerId: string;
  clientId: string | null;
  callbackURL: string;
  enabled: boolean;
  readable: boolean;
  issuer: string | null;
  secretChangedAt: string;
  /** Another one after every change. */
  version: string;
}

/** A tenant's credentials at one provider. */
export function OAuthConfig({ tenantId, config }: { tenantId: string; config: Config }) {
  const { providerId, enabled } = config;
  const name = providerName(providerId);
  const target = { tenantId, providerId };
  return (
    <article className="stack grow" aria-labelledby={`provider-${providerId}`}>
      <div className="spread">
        <div className="row">
          <ProviderIcon id={providerId} />
          <h3 id={`provider-${providerId}`}>{name}</h3>
          <span className={enabled ? "badge good" : "badge"}>{enabled ? "On" : "Off"}</span>
          {!config.readable && <span className="badge bad">Cannot be decrypted</span>}
        </div>
        <ToggleButton {...target} enabled={enabled} />
      </div>
      <Facts {...config} />
      <RedirectURI provider={name} uri={config.callbackURL} />
      {/* What was found out about an older version says nothing about this one. */}
      <Check key={config.version} {...target} />
      <details>
        <summary>Change the secret or remove {name}</summary>
        <div className="stack">
          <SecretForm {...target} />
          <RemoveProvider {...target} />
        </div>
      </details>
    </article>
  );
}

function Facts({ clientId, issuer, secretChangedAt }: Config) {
  return (
    <dl className="facts">
      <div>
        <dt>Client ID</dt>
        <dd>
          <code>{clientId ?? "unknown"}</code>
        </dd>
      </div>
      {issuer && (
        <div>
          <dt>Issuer</dt>
          <dd>
            <code>{issuer}</code>
          </dd>
        </div>
      )}
      <div>
        <dt>Secret changed</dt>
        <dd>
          <Time date={secretChangedAt} />
        </dd>
      </div>
    </dl>
  );
}

export interface Target {
  tenantId: string;
  providerId: string;
}

/** A provider goes on once a check finds no problem. */
function ToggleButton({ enabled, ...target }: Target & { enabled: boolean }) {
  const router = useRouter();
  const { oauthConfig } = useManagement();
  const toggle = async () => {
    if (!enabled) {
      const { data: check, error } = await oauthConfig.check(target);
      if (!check) return asOutcome(error);
      if (!check.ok) return { error: `The check found a problem: ${checkedProblem(check)}.` };
    }
    const { error } = await oauthConfig.update({ ...target, enabled: !enabled });
    if (!error) router.refresh();
    return asOutcome(error);
  };
  return (
    <ActionButton className="plain compact" act={toggle}>
      Turn {providerName(target.providerId)} {enabled ? "off" : "on"}
    </ActionButton>
  );
}

/** Tries the config before users do. */
function Check(target: Target) {
  const { oauthConfig } = useManagement();
  const [result, setResult] = useState<OAuthConfigCheck>();
  const { form, pending, outcome } = useForm(async () => {
    const { data, error } = await oauthConfig.check(target);
    setResult(data ?? undefined);
    return asOutcome(error);
  });
  return (
    <form className="stack" {...form}>
      <div>
        <SubmitButton className="plain compact" pending={pending}>
          Check {providerName(target.providerId)}
        </SubmitButton>
      </div>
      <OutcomeNote {...outcome} />
      <div className="outcome" role="status">
        {result && <Findings {...result} />}
      </div>
    </form>
  );
}

interface Found {
  ok: boolean;
  findings: { subject: string; ok: boolean | null; message: string }[];
}

const VERDICTS: Record<string, string> = { true: "OK", false: "Failed", null: "Not checked" };

export function Findings({ ok, findings }: Found) {
  return (
    <div className={ok ? "note good stack" : "note bad stack"}>
      <p>{ok ? "No problems found." : "This config does not work."}</p>
      <ul className="findings">
        {findings.map(({ subject, ok, message }) => (
          <li key={subject}>
            <strong>{VERDICTS[String(ok)]}</strong> {message}.
          </li>
        ))}
      </ul>
    </div>
  );
}

function SecretForm(target: Target) {
  const router = useRouter();
  const { oauthConfig } = useManagement();
  const { form, pending, outcome } = useForm(async ({ clientSecret = "" }) => {
    const { error } = await oauthConfig.update({ ...target, clientSecret });
    if (!error) router.refresh();
    return asOutcome(error, "The new secret is in use. Please check it.");
  });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <PasswordField label="New client secret" name="clientSecret" autoComplete="off" required />
      <div>
        <SubmitButton className="plain compact" pending={pending}>
          Save secret
        </SubmitButton>
      </div>
    </form>
  );
}
