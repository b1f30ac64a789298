"use client";

import { useRouter } from "next/navigation";
import { type CSSProperties, type FormEvent, useRef } from "react";
import { asOutcome, Field, NameField, OutcomeNote, SubmitButton, useForm } from "./form";
import { useManagement, useOwnTenant } from "./management";

const COLORS = { Blue: 255, Violet: 285, Pink: 350, Orange: 50, Green: 155, Teal: 200 };

interface KnownTenant {
  id: string;
  name: string;
  slug: string;
  metadata: Record<string, unknown> | null;
}

/** Creates a tenant, or changes the one that it is given. The slug is a matter of operators. */
export function TenantForm({ tenant }: { tenant?: KnownTenant }) {
  const router = useRouter();
  const management = useManagement();
  const isOwn = useOwnTenant() !== null;
  const save = async ({ name = "", slug = "", hue }: Record<string, string>) => {
    const fields = { name, metadata: { ...tenant?.metadata, hue: Number(hue) } };
    const { data, error } = tenant
      ? await management.update({ tenantId: tenant.id, ...fields, ...(!isOwn && { slug }) })
      : await management.create({ ...fields, slug });
    if (error) return asOutcome(error);
    if (tenant) router.refresh();
    else router.push(`/console/tenants/${data.id}`);
    return { done: "Saved." };
  };
  const { form, pending, outcome } = useForm(save, { keep: true });
  const hue = nearestColor(Number(tenant?.metadata?.hue ?? COLORS.Blue));
  const suggested = useRef("");
  /** The slug follows the name until it is edited. */
  const suggestSlug = ({ currentTarget }: FormEvent<HTMLFormElement>) => {
    const [name, slug] = ["name", "slug"].map((field) => currentTarget.elements.namedItem(field));
    if (!(name instanceof HTMLInputElement && slug instanceof HTMLInputElement)) return;
    if (slug.value === suggested.current) slug.value = suggested.current = slugFrom(name.value);
  };
  return (
    <form className="stack" onInput={tenant ? undefined : suggestSlug} {...form}>
      <OutcomeNote {...outcome} />
      <NameField defaultValue={tenant?.name} />
      {!isOwn && (
        <Field
          label="Slug"
          name="slug"
          prefix="/t/"
          defaultValue={tenant?.slug}
          hint="Lowercase letters, digits and hyphens. It is part of the tenant’s address."
          required
        />
      )}
      <fieldset>
        <legend>Color</legend>
        <div className="swatches">
          {Object.entries(COLORS).map(([label, value]) => (
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

/** "Café Müller" becomes "cafe-muller". */
const slugFrom = (name: string) =>
  name
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 63)
    .replace(/^-|-$/g, "");

function nearestColor(hue: number): number {
  const distance = (other: number) => Math.abs(other - hue);
  return Object.values(COLORS).reduce((a, b) => (distance(b) < distance(a) ? b : a));
}
