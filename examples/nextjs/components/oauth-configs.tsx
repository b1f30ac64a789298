"use client";

import type { OAuthConfigCheck } from "better-auth-tenant";
import { useRouter } from "next/navigation";
import { useState } from "react";
import { platformClient } from "@/lib/auth-client";
import { providerFields } from "@/lib/providers";
import {
  ActionButton,
  asOutcome,
  Field,
  OutcomeNote,
  PasswordField,
  SubmitButton,
  useForm,
} from "./form";

const { oauthConfig } = platformClient.tenant;

interface Config {
  providerId: string;
  clientId: string | null;
  enabled: boolean;
  readable: boolean;
  issuer: string | null;
  secretChangedAt: string;
}

/** A tenant's credentials at one provider. */
export function OAuthConfig({ tenantId, config }: { tenantId: string; config: Config }) {
  const { providerId, enabled } = config;
  const target = { tenantId, providerId };
  return (
    <article className="stack grow" aria-labelledby={`provider-${providerId}`}>
      <div className="spread">
        <div className="row">
          <h3 id={`provider-${providerId}`}>{providerId}</h3>
          <span className={enabled ? "badge good" : "badge"}>{enabled ? "On" : "Off"}</span>
          {!config.readable && <span className="badge bad">Cannot be decrypted</span>}
        </div>
        <ToggleButton {...target} enabled={enabled} />
      </div>
      <dl className="facts">
        <div>
          <dt>Client id</dt>
          <dd>
            <code>{config.clientId ?? "unknown"}</code>
          </dd>
        </div>
        {config.issuer && (
          <div>
            <dt>Issuer</dt>
            <dd>
              <code>{config.issuer}</code>
            </dd>
          </div>
        )}
        <div>
          <dt>Secret changed</dt>
          <dd>{config.secretChangedAt}</dd>
        </div>
      </dl>
      <Check {...target} />
      <details>
        <summary>Change the secret or remove {providerId}</summary>
        <div className="stack">
          <SecretForm {...target} />
          <RemoveButton {...target} />
        </div>
      </details>
    </article>
  );
}

interface Target {
  tenantId: string;
  providerId: string;
}

function ToggleButton({ enabled, ...target }: Target & { enabled: boolean }) {
  const router = useRouter();
  const toggle = async () => {
    const { error } = await oauthConfig.update({ ...target, enabled: !enabled });
    if (!error) router.refresh();
    return asOutcome(error);
  };
  return (
    <ActionButton className="plain compact" act={toggle}>
      Turn {target.providerId} {enabled ? "off" : "on"}
    </ActionButton>
  );
}

/** Tries the config before users meet it. */
function Check(target: Target) {
  const [result, setResult] = useState<OAuthConfigCheck>();
  const { action, pending, outcome } = useForm(async () => {
    const { data, error } = await oauthConfig.check(target);
    setResult(data ?? undefined);
    return asOutcome(error);
  });
  return (
    <form className="stack" action={action}>
      <div>
        <SubmitButton className="plain compact" pending={pending}>
          Check {target.providerId}
        </SubmitButton>
      </div>
      <OutcomeNote {...outcome} />
      <div className="outcome" role="status">
        {result && (
          <div className={result.ok ? "note good stack" : "note bad stack"}>
            <p>{result.ok ? "This config works." : "This config does not work."}</p>
            <ul className="findings">
              {result.findings.map(({ subject, ok, message }) => (
                <li key={subject}>
                  <strong>{ok ? "OK" : "Not OK"}</strong> {subject}: {message}
                </li>
              ))}
            </ul>
            <p>
              Redirect URI to register there: <code>{result.redirectURI}</code>
            </p>
          </div>
        )}
      </div>
    </form>
  );
}

function SecretForm(target: Target) {
  const router = useRouter();
  const { action, pending, outcome } = useForm(async ({ clientSecret = "" }) => {
    const { error } = await oauthConfig.update({ ...target, clientSecret });
    if (!error) router.refresh();
    return asOutcome(error, "The new secret counts from now on.");
  });
  return (
    <form className="stack" action={action}>
      <OutcomeNote {...outcome} />
      <PasswordField label="New client secret" name="clientSecret" autoComplete="off" required />
      <div>
        <SubmitButton className="plain compact" pending={pending}>
          Save the secret
        </SubmitButton>
      </div>
    </form>
  );
}

function RemoveButton(target: Target) {
  const router = useRouter();
  const remove = async () => {
    const { error } = await oauthConfig.delete(target);
    if (!error) router.refresh();
    return asOutcome(error);
  };
  return (
    <ActionButton className="destructive compact" act={remove}>
      Remove {target.providerId}
    </ActionButton>
  );
}

/** Sets up a provider, or replaces what is there. */
export function OAuthConfigForm({
  tenantId,
  providers,
}: {
  tenantId: string;
  providers: string[];
}) {
  const router = useRouter();
  const [providerId, setProviderId] = useState("gitlab");
  const fields = providerFields[providerId] ?? [];
  const { action, pending, values, outcome } = useForm(
    async ({ clientId = "", clientSecret = "", ...rest }) => {
      const given = fields.map(({ name }) => [name, rest[name]]).filter(([, value]) => value);
      const { error } = await oauthConfig.register({
        tenantId,
        providerId,
        clientId,
        clientSecret,
        options: given.length ? Object.fromEntries(given) : null,
      });
      if (!error) router.refresh();
      return asOutcome(error, `${providerId} is set up.`);
    },
  );
  return (
    <form className="stack" action={action}>
      <OutcomeNote {...outcome} />
      <div className="field">
        <label htmlFor="provider">Provider</label>
        <select
          id="provider"
          value={providerId}
          onChange={(event) => setProviderId(event.target.value)}
        >
          {providers.map((id) => (
            <option key={id}>{id}</option>
          ))}
        </select>
      </div>
      <Field
        label="Client id"
        name="clientId"
        autoComplete="off"
        defaultValue={values.clientId}
        required
      />
      <PasswordField
        label="Client secret"
        name="clientSecret"
        autoComplete="off"
        defaultValue={values.clientSecret}
        hint="It is stored encrypted, and never shown again."
        required
      />
      {fields.map((field) => (
        <Field key={field.name} {...field} defaultValue={values[field.name]} />
      ))}
      <div>
        <SubmitButton className="" pending={pending}>
          Set up {providerId}
        </SubmitButton>
      </div>
    </form>
  );
}
