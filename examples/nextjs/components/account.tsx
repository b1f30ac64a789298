"use client";

import { useRouter } from "next/navigation";
import { tenantClient } from "@/lib/auth-client";
import { formatBrowser } from "@/lib/format";
import {
  asOutcome,
  Check,
  NameField,
  NewPasswordField,
  OutcomeNote,
  PasswordField,
  SubmitButton,
  useForm,
} from "./form";
import { RemoveDialog } from "./remove-provider";

export function NameForm({ tenantId, name }: { tenantId: string; name: string }) {
  const router = useRouter();
  const { form, pending, outcome } = useForm(
    async ({ name = "" }) => {
      const { error } = await tenantClient(tenantId).updateUser({ name });
      if (!error) router.refresh();
      return asOutcome(error, "Saved.");
    },
    { keep: true },
  );
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <NameField autoComplete="name" defaultValue={name} />
      <div>
        <SubmitButton className="" pending={pending}>
          Save
        </SubmitButton>
      </div>
    </form>
  );
}

export function PasswordForm({ tenantId, minLength }: { tenantId: string; minLength: number }) {
  const router = useRouter();
  const { form, pending, outcome } = useForm(
    async ({ currentPassword = "", newPassword = "", others }) => {
      const { error } = await tenantClient(tenantId).changePassword({
        ...{ currentPassword, newPassword },
        revokeOtherSessions: others !== undefined,
      });
      if (!error) router.refresh();
      return asOutcome(error, "Your password has been changed.");
    },
  );
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <PasswordField
        label="Current password"
        name="currentPassword"
        autoComplete="current-password"
        required
      />
      <NewPasswordField label="New password" name="newPassword" minLength={minLength} />
      <Check label="Sign out everywhere else" name="others" defaultChecked />
      <div>
        <SubmitButton className="" pending={pending}>
          Change password
        </SubmitButton>
      </div>
    </form>
  );
}

export function SwitchOffForm({ tenantId }: { tenantId: string }) {
  const router = useRouter();
  const { form, pending, outcome } = useForm(async ({ password = "" }) => {
    const { error } = await tenantClient(tenantId).twoFactor.disable({ password });
    if (!error) router.refresh();
    return asOutcome(error);
  });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <PasswordField label="Password" name="password" autoComplete="current-password" required />
      <div>
        <SubmitButton className="plain" pending={pending}>
          Switch off
        </SubmitButton>
      </div>
    </form>
  );
}

/** The name tells a user's passkeys apart: the browser that has made it. */
export function AddPasskeyButton({ tenantId }: { tenantId: string }) {
  const router = useRouter();
  const { form, pending, outcome } = useForm(async () => {
    const name = formatBrowser(navigator.userAgent);
    const { error } = await tenantClient(tenantId).passkey.addPasskey({ name });
    if (!error) router.refresh();
    return asOutcome(error);
  });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <div>
        <SubmitButton className="plain" pending={pending}>
          Add a passkey
        </SubmitButton>
      </div>
    </form>
  );
}

export function RemovePasskey({
  tenantId,
  id,
  name,
}: {
  tenantId: string;
  id: string;
  name: string;
}) {
  const router = useRouter();
  const remove = async () => {
    const { error } = await tenantClient(tenantId).passkey.deletePasskey({ id });
    if (error) return asOutcome(error);
    router.refresh();
  };
  return (
    <RemoveDialog name={name} remove={remove}>
      You can no longer sign in with this passkey. Your device may still offer it.
    </RemoveDialog>
  );
}
