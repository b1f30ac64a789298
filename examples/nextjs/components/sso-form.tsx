"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { domainsFrom, entityId, PROTOCOLS, type Protocol } from "@/lib/sso";
import { readSamlInput } from "@/lib/sso-actions";
import {
  asOutcome,
  Check,
  Field,
  OutcomeNote,
  PasswordField,
  SelectField,
  SubmitButton,
  TextField,
  useForm,
} from "./form";
import { useOwnTenant, useSSO } from "./management";
import { SSOAddresses, type SSOPlace } from "./single-sign-on";

/** Sets up an identity provider. */
export function SSOForm({ tenantId, slug, origins }: SSOPlace) {
  const router = useRouter();
  const { sso, named } = useSSO(tenantId);
  const readSaml = useSamlInput(tenantId);
  const [protocol, setProtocol] = useState<Protocol>("oidc");
  const [name, setName] = useState("sso");
  // The ids of all tenants are in one list, so that of the tenant comes first.
  const providerId = `${slug}-${name}`;
  const { form, pending, outcome } = useForm(async (values) => {
    const domain = domainsFrom(values.domain ?? "");
    const { error } =
      protocol === "oidc"
        ? await sso.register({ providerId, domain, ...oidcFrom(values) }, named)
        : await readSaml(values, (samlConfig) =>
            sso.register(
              { providerId, domain, issuer: entityId(providerId, origins), samlConfig },
              named,
            ),
          );
    if (error) return asOutcome(error);
    // React empties the form, and does not know of these two.
    setProtocol("oidc");
    setName("sso");
    router.refresh();
    return { done: `${providerId} is set up. Check it, then sign in with it yourself.` };
  });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <SelectField
        label="Protocol"
        name="protocol"
        value={protocol}
        onChange={({ target }) => setProtocol(target.value as Protocol)}
        options={PROTOCOLS}
      />
      <Field
        label="Identifier"
        name="identifier"
        prefix={`${slug}-`}
        value={name}
        onChange={({ target }) => setName(target.value)}
        pattern="[a-z0-9]([a-z0-9\-]*[a-z0-9])?"
        title="Lowercase letters, digits and hyphens"
        maxLength={40}
        autoComplete="off"
        hint="It is part of the addresses below."
        required
      />
      <DomainField />
      <div className="tight">
        <h3 className="small">What to enter at the identity provider</h3>
        <SSOAddresses protocol={protocol} providerId={providerId} origins={origins} />
      </div>
      {protocol === "oidc" ? <OIDCFields /> : <SamlFields />}
      <div>
        <SubmitButton className="" pending={pending}>
          Set up {providerId}
        </SubmitButton>
      </div>
    </form>
  );
}

export function DomainField({ defaultValue }: { defaultValue?: string }) {
  return (
    <Field
      label="Domain"
      name="domain"
      defaultValue={defaultValue}
      placeholder="example.com"
      pattern="\s*@?[\w\-]+(\.[\w\-]+)+([\s,;]+@?[\w\-]+(\.[\w\-]+)+)*\s*"
      title="Domains such as example.com"
      hint="People with an email address at this domain sign in at the identity provider."
      autoComplete="off"
      required
    />
  );
}

function OIDCFields() {
  return (
    <>
      <h3 className="small">What the identity provider has told you</h3>
      <Field
        label="Issuer"
        name="issuer"
        type="url"
        placeholder="https://acme.okta.com"
        autoComplete="off"
        required
      />
      <Field label="Client ID" name="clientId" autoComplete="off" required />
      <PasswordField
        label="Client secret"
        name="clientSecret"
        autoComplete="off"
        hint="It is stored encrypted and never shown again."
        required
      />
    </>
  );
}

type Values = Record<string, string>;

const oidcFrom = ({ issuer = "", clientId = "", clientSecret = "" }: Values) => ({
  issuer: issuer.trim(),
  oidcConfig: {
    ...{ clientId: clientId.trim(), clientSecret, pkce: true },
    scopes: ["openid", "email", "profile"],
  },
});

/** Most providers offer metadata, and the others the three things that are in there. */
function SamlFields() {
  const [byHand, setByHand] = useState(false);
  const choice = (label: string, value: boolean) => (
    <Check
      type="radio"
      name="byHand"
      label={label}
      checked={byHand === value}
      onChange={() => setByHand(value)}
    />
  );
  return (
    <>
      <fieldset className="choices">
        <legend>What the identity provider has told you</legend>
        {choice("Its metadata", false)}
        {choice("Its entity ID, sign-in URL and certificate", true)}
      </fieldset>
      {byHand ? (
        <>
          <Field label="Entity ID" name="entityID" autoComplete="off" required />
          <Field
            label="Sign-in URL"
            name="entryPoint"
            type="url"
            placeholder="https://idp.example.com/sso"
            autoComplete="off"
            required
          />
          <TextField
            label="Certificate"
            name="certificate"
            placeholder="-----BEGIN CERTIFICATE-----"
            required
          />
        </>
      ) : (
        <TextField
          label="Metadata"
          name="metadata"
          placeholder="<EntityDescriptor …>"
          hint="All of the XML that your identity provider offers for download."
          required
        />
      )}
    </>
  );
}

type SamlConfig = Extract<
  Awaited<ReturnType<typeof readSamlInput>>,
  { samlConfig: unknown }
>["samlConfig"];

/** Reads what was entered on the server, as a sign-in does, before it is stored. */
export function useSamlInput(tenantId: string) {
  const isOwn = useOwnTenant() !== null;
  return async (
    { metadata, entityID = "", entryPoint = "", certificate = "" }: Values,
    store: (config: SamlConfig) => Promise<{ error: Parameters<typeof asOutcome>[0] }>,
  ) => {
    const input = metadata === undefined ? { entityID, entryPoint, certificate } : { metadata };
    const read = await readSamlInput({ tenantId, isOwn }, input);
    return "error" in read ? { error: { message: read.error } } : store(read.samlConfig);
  };
}
