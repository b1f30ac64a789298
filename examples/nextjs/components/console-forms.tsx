"use client";

import { useRouter } from "next/navigation";
import type { CSSProperties } from "react";
import { platformClient } from "@/lib/auth-client";
import {
  asOutcome,
  EmailField,
  Field,
  NameField,
  OutcomeNote,
  PasswordField,
  SubmitButton,
  useForm,
} from "./form";

export function OperatorSignInForm() {
  const router = useRouter();
  const { form, pending, outcome } = useForm(async ({ email = "", password = "" }) => {
    const { error } = await platformClient.signIn.email({ email, password });
    if (error) return asOutcome(error);
    router.replace("/console");
  });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <EmailField />
      <PasswordField label="Password" name="password" autoComplete="current-password" required />
      <SubmitButton pending={pending}>Sign in</SubmitButton>
    </form>
  );
}

const COLOURS = { Blue: 255, Violet: 285, Pink: 350, Orange: 50, Green: 155, Teal: 200 };

interface KnownTenant {
  id: string;
  name: string;
  slug: string;
  metadata: Record<string, unknown> | null;
}

/** Creates a tenant, or changes the one that it is given. */
export function TenantForm({ tenant }: { tenant?: KnownTenant }) {
  const router = useRouter();
  const save = async ({ name = "", slug = "", hue }: Record<string, string>) => {
    const fields = { name, slug, metadata: { ...tenant?.metadata, hue: Number(hue) } };
    const { data, error } = tenant
      ? await platformClient.tenant.update({ tenantId: tenant.id, ...fields })
      : await platformClient.tenant.create(fields);
    if (error) return asOutcome(error);
    if (tenant) router.refresh();
    else router.push(`/console/tenants/${data.id}`);
    return { done: "Saved." };
  };
  const { form, pending, outcome } = useForm(save, { keep: true });
  const hue = nearestColour(Number(tenant?.metadata?.hue ?? COLOURS.Blue));
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <NameField defaultValue={tenant?.name} />
      <Field
        label="Slug"
        name="slug"
        prefix="/t/"
        defaultValue={tenant?.slug}
        hint="Lowercase letters, digits and hyphens. It is part of the tenant’s address."
        required
      />
      <fieldset>
        <legend>Colour</legend>
        <div className="swatches">
          {Object.entries(COLOURS).map(([label, value]) => (
            <label className="themed" key={label} style={{ "--hue": value } as CSSProperties}>
              <input type="radio" name="hue" value={value} defaultChecked={value === hue} />
              {label}
            </label>
          ))}
        </div>
      </fieldset>
      <div>
        <SubmitButton className="" pending={pending}>
          {tenant ? "Save" : "Create tenant"}
        </SubmitButton>
      </div>
    </form>
  );
}

function nearestColour(hue: number): number {
  const distance = (other: number) => Math.abs(other - hue);
  return Object.values(COLOURS).reduce((a, b) => (distance(b) < distance(a) ? b : a));
}

/** Deleting cannot be undone, so the slug has to be typed. */
export function DeleteTenantForm({ tenant }: { tenant: KnownTenant }) {
  const router = useRouter();
  const { form, pending, outcome } = useForm(async ({ confirmation }) => {
    if (confirmation !== tenant.slug) return { error: `Type “${tenant.slug}” to confirm.` };
    const { error } = await platformClient.tenant.delete({ tenantId: tenant.id });
    if (error) return asOutcome(error);
    router.replace(`/console?deleted=${encodeURIComponent(tenant.name)}`);
  });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <Field
        label={`Type “${tenant.slug}” to confirm`}
        name="confirmation"
        autoComplete="off"
        required
      />
      <div>
        <SubmitButton className="destructive" pending={pending}>
          <span className="name">Delete {tenant.name} permanently</span>
        </SubmitButton>
      </div>
    </form>
  );
}
