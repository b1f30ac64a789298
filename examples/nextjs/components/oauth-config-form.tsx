"use client";

import { useRouter } from "next/navigation";
import { useEffect, useState } from "react";
import { providerFields, providerIds, providerName } from "@/lib/providers";
import { RedirectURI } from "./copyable";
import { asOutcome, Field, OutcomeNote, PasswordField, SubmitButton, useForm } from "./form";
import { useManagement } from "./management";

type Options = Record<string, string>;

/** Sets up a provider, or replaces what is there. */
export function OAuthConfigForm({ tenantId }: { tenantId: string }) {
  const router = useRouter();
  const { oauthConfig } = useManagement();
  const [providerId, setProviderId] = useState("gitlab");
  const [options, setOptions] = useState<Options>({});
  const name = providerName(providerId);
  const { form, pending, outcome } = useForm(async ({ clientId = "", clientSecret = "" }) => {
    const given = filledIn(options);
    const { error } = await oauthConfig.register({
      ...{ tenantId, providerId, clientId, clientSecret },
      options: Object.keys(given).length ? given : null,
    });
    if (!error) router.refresh();
    return asOutcome(error, `${name} is set up.`);
  });
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
      <Field label="Client ID" name="clientId" autoComplete="off" required />
      <PasswordField
        label="Client secret"
        name="clientSecret"
        autoComplete="off"
        hint="It is stored encrypted and never shown again."
        required
      />
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
