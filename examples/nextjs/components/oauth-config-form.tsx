"use client";

import { useRouter } from "next/navigation";
import { Fragment, useEffect, useState } from "react";
import { checkedProblem, providerFields, providerIds, providerName } from "@/lib/providers";
import { RedirectURI } from "./copyable";
import { asOutcome, Field, OutcomeNote, PasswordField, SubmitButton, useForm } from "./form";
import { useManagement } from "./management";

type Options = Record<string, string>;

/** Sets up a provider, or replaces what is there. It stays off if a check finds a problem. */
export function OAuthConfigForm({ tenantId }: { tenantId: string }) {
  const router = useRouter();
  const { oauthConfig } = useManagement();
  const [providerId, setProviderId] = useState("gitlab");
  const [options, setOptions] = useState<Options>({});
  const [saved, setSaved] = useState(0);
  const name = providerName(providerId);
  const save = async ({ clientId = "", clientSecret = "" }: Record<string, string>) => {
    const given = filledIn(options);
    const config = {
      ...{ tenantId, providerId, clientId, clientSecret },
      options: Object.keys(given).length ? given : null,
    };
    const { data: check, error: unchecked } = await oauthConfig.check(config);
    if (!check) return asOutcome(unchecked);
    const { error } = await oauthConfig.register({ ...config, enabled: check.ok });
    if (error) return asOutcome(error);
    setOptions({});
    setSaved(saved + 1);
    router.refresh();
    const off = `It stays off, because the check found a problem: ${checkedProblem(check)}.`;
    return { done: check.ok ? `${name} is set up.` : `${name} is set up. ${off}` };
  };
  // React's reset would show the first provider of the list, while the form still saves the chosen one.
  const { form, pending, outcome } = useForm(save, { keep: true });
  const choose = (id: string) => {
    setProviderId(id);
    setOptions({});
  };
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <ProviderChoice chosen={providerId} choose={choose} />
      {(providerFields[providerId] ?? []).map((field) => (
        <Field
          key={field.name}
          {...field}
          value={options[field.name] ?? ""}
          onChange={({ target }) => setOptions({ ...options, [field.name]: target.value })}
        />
      ))}
      <RedirectURIBefore {...{ tenantId, providerId, options }} />
      {/* Empty again for the next provider. */}
      <Fragment key={saved}>
        <Field label="Client ID" name="clientId" autoComplete="off" required />
        <PasswordField
          label="Client secret"
          name="clientSecret"
          autoComplete="off"
          hint="It is stored encrypted and never shown again."
          required
        />
      </Fragment>
      <div>
        <SubmitButton className="" pending={pending}>
          Set up {name}
        </SubmitButton>
      </div>
    </form>
  );
}

function ProviderChoice({ chosen, choose }: { chosen: string; choose: (id: string) => void }) {
  return (
    <div className="field">
      <label htmlFor="provider">Provider</label>
      <select id="provider" value={chosen} onChange={({ target }) => choose(target.value)}>
        {providerIds.map((id) => (
          <option key={id} value={id}>
            {providerName(id)}
          </option>
        ))}
      </select>
    </div>
  );
}

const filledIn = (options: Options) =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value));

/** The plugin knows what to register at a provider before there is a client id. */
function RedirectURIBefore(config: { tenantId: string; providerId: string; options: Options }) {
  const management = useManagement();
  const [uri, setURI] = useState<string>();
  const asked = JSON.stringify({ ...config, options: filledIn(config.options) });
  useEffect(() => {
    let current = true;
    const ask = async () => {
      const { data } = await management.oauthConfig.check(JSON.parse(asked));
      if (current && data) setURI(data.redirectURI);
    };
    // Not for every letter that is typed.
    const timer = setTimeout(ask, 250);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [asked, management]);
  return uri && <RedirectURI provider={providerName(config.providerId)} uri={uri} />;
}
