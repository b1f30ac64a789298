"use client";

import { useRouter } from "next/navigation";
import { QRCodeSVG } from "qrcode.react";
import { useState } from "react";
import { tenantClient } from "@/lib/auth-client";
import { Copyable } from "./copyable";
import {
  ActionButton,
  asOutcome,
  Check,
  Field,
  OutcomeNote,
  PasswordField,
  SubmitButton,
  useForm,
} from "./form";
import { useManagement } from "./management";
import type { Place } from "./sign-in";

/** Where a sign-in goes next. A tenant may require a second factor, and a user may have one. */
export function nextPage(base: string, answer: object): string {
  if ("twoFactorSetupRequired" in answer) return `${base}/two-factor/setup`;
  return "twoFactorRedirect" in answer ? `${base}/two-factor` : `${base}/dashboard`;
}

function CodeField() {
  return (
    <Field
      label="Code"
      name="code"
      autoComplete="one-time-code"
      pattern="\s*\d{3}\s?\d{3}\s*"
      title="Six digits"
      required
    />
  );
}

const digitsOf = (code = "") => code.replace(/\s/g, "");

/** The second step of a sign-in: a code of the authenticator app, or one of the backup codes. */
export function CodeForm({ tenantId, base }: Place) {
  const router = useRouter();
  const [isBackup, setIsBackup] = useState(false);
  const { form, pending, outcome } = useForm(async ({ code = "", trusted }) => {
    const { twoFactor } = tenantClient(tenantId);
    const trustDevice = trusted !== undefined;
    const { error } = isBackup
      ? await twoFactor.verifyBackupCode({ code: code.trim(), trustDevice })
      : await twoFactor.verifyTotp({ code: digitsOf(code), trustDevice });
    if (error) return asOutcome(error);
    router.replace(`${base}/dashboard`);
  });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      {isBackup ? (
        <Field label="Backup code" name="code" autoComplete="off" required />
      ) : (
        <CodeField />
      )}
      <Check label="Trust this browser for 30 days" name="trusted" />
      <SubmitButton pending={pending}>Continue</SubmitButton>
      <button className="button plain wide" type="button" onClick={() => setIsBackup(!isBackup)}>
        {isBackup ? "Use the authenticator app" : "Use a backup code"}
      </button>
    </form>
  );
}

/** The password first, which better-auth asks for, then a QR code, and a code of the app. */
export function SetupForm({ tenantId, base }: Place) {
  const router = useRouter();
  const [enabled, setEnabled] = useState<{ totpURI: string; backupCodes: string[] }>();
  const { form, pending, outcome } = useForm(async ({ password = "", code = "" }) => {
    const { twoFactor } = tenantClient(tenantId);
    if (!enabled) {
      const { data, error } = await twoFactor.enable({ password });
      if (error) return asOutcome(error);
      if (data.method === "totp") setEnabled(data);
      return;
    }
    const { error } = await twoFactor.verifyTotp({ code: digitsOf(code) });
    if (error) return asOutcome(error);
    router.replace(`${base}/dashboard`);
  });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      {enabled ? (
        <Enrollment {...enabled} />
      ) : (
        <PasswordField label="Password" name="password" autoComplete="current-password" required />
      )}
      <SubmitButton pending={pending}>{enabled ? "Finish" : "Continue"}</SubmitButton>
    </form>
  );
}

function Enrollment({ totpURI, backupCodes }: { totpURI: string; backupCodes: string[] }) {
  const secret = new URL(totpURI).searchParams.get("secret") ?? "";
  return (
    <>
      <p>Scan this code with an authenticator app, or type in the key below it.</p>
      <div className="qr">
        <QRCodeSVG
          value={totpURI}
          size={184}
          marginSize={2}
          title="QR code for an authenticator app"
        />
      </div>
      <Copyable label="Key" name="the key" value={secret} />
      <Copyable label="Backup codes" name="the backup codes" value={backupCodes.join(" ")} />
      <p className="hint">
        Keep the backup codes in a safe place. Each one signs you in once, without the app.
      </p>
      <CodeField />
    </>
  );
}

/** For administrators: a user who has lost the device sets up another one at the next sign-in. */
export function ResetSecondFactor({ tenantId, userId }: { tenantId: string; userId: string }) {
  const router = useRouter();
  const { user } = useManagement();
  const reset = async () => {
    const { error } = await user.resetTwoFactor({ tenantId, userId });
    if (error) return asOutcome(error);
    router.refresh();
  };
  return (
    <ActionButton className="plain compact" act={reset}>
      Reset second factor
    </ActionButton>
  );
}
