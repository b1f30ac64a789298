"use client";

import { useRouter } from "next/navigation";
import { domainsFrom, type IdentityProvider } from "@/lib/sso";
import { asOutcome, OutcomeNote, PasswordField, SubmitButton, TextField, useForm } from "./form";
import { useSSO } from "./management";
import { RemoveDialog } from "./remove-provider";
import { DomainField, useSamlInput } from "./sso-form";

/** Changes the domain, and what expires: a secret or a certificate. */
export function ChangeProvider({
  tenantId,
  provider: { providerId, type, domain },
  changed,
}: {
  tenantId: string;
  provider: IdentityProvider;
  changed: () => void;
}) {
  const { sso, named } = useSSO(tenantId);
  const readSaml = useSamlInput(tenantId);
  const { form, pending, outcome } = useForm(async (values) => {
    const change = { providerId, domain: domainsFrom(values.domain ?? "") };
    const { clientSecret, metadata } = values;
    const { error } = metadata
      ? await readSaml(values, ({ entryPoint, idpMetadata }) =>
          sso.updateProvider({ ...change, samlConfig: { entryPoint, idpMetadata } }, named),
        )
      : await sso.updateProvider(
          { ...change, ...(clientSecret && { oidcConfig: { clientSecret } }) },
          named,
        );
    if (error) return asOutcome(error);
    changed();
    return { done: "Saved." };
  });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <DomainField defaultValue={domain.replaceAll(",", ", ")} />
      {type === "oidc" ? (
        <PasswordField
          label="New client secret"
          name="clientSecret"
          autoComplete="off"
          hint="Leave empty to keep the one that is stored."
        />
      ) : (
        <TextField
          label="New metadata"
          name="metadata"
          hint="Leave empty to keep what is stored."
        />
      )}
      <div>
        <SubmitButton className="plain compact" pending={pending}>
          Save changes
        </SubmitButton>
      </div>
    </form>
  );
}

/** Asks before it removes: the secret cannot be brought back. */
export function RemoveIdentityProvider({
  tenantId,
  providerId,
}: {
  tenantId: string;
  providerId: string;
}) {
  const router = useRouter();
  const { sso, named } = useSSO(tenantId);
  const remove = async () => {
    const { error } = await sso.deleteProvider({ providerId }, named);
    if (error) return asOutcome(error);
    router.refresh();
  };
  return (
    <RemoveDialog name={providerId} remove={remove}>
      Nobody can sign in with {providerId} any more. People who have no other way to sign in cannot
      come back.
    </RemoveDialog>
  );
}
