"use client";

import { useRouter } from "next/navigation";
import { type ReactNode, useId, useRef } from "react";
import { providerName } from "@/lib/providers";
import { ActionButton, asOutcome } from "./form";
import { useManagement } from "./management";
import type { Target } from "./oauth-configs";

/** Asks before it removes: the secret cannot be brought back. */
export function RemoveProvider(target: Target) {
  const router = useRouter();
  const { oauthConfig } = useManagement();
  const name = providerName(target.providerId);
  const remove = async () => {
    const { error } = await oauthConfig.delete(target);
    if (error) return asOutcome(error);
    router.refresh();
  };
  return (
    <RemoveDialog name={name} remove={remove}>
      The client ID and the secret are deleted. People can no longer use {name} to sign in here,
      unless it is set up for all tenants.
    </RemoveDialog>
  );
}

/** A button, and behind it the question whether that was meant. */
export function RemoveDialog({
  name,
  remove,
  children,
}: {
  name: string;
  remove: Parameters<typeof ActionButton>[0]["act"];
  children: ReactNode;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const act = async () => {
    const outcome = await remove();
    if (!outcome) dialog.current?.close();
    return outcome;
  };
  return (
    <div>
      <button
        className="button destructive compact"
        type="button"
        onClick={() => dialog.current?.showModal()}
      >
        Remove {name} …
      </button>
      <dialog ref={dialog} aria-labelledby={titleId}>
        <div className="stack">
          <h3 id={titleId}>Remove {name}?</h3>
          <p className="muted">{children}</p>
          <div className="row">
            <button
              className="button plain compact"
              type="button"
              onClick={() => dialog.current?.close()}
            >
              Cancel
            </button>
            <ActionButton className="destructive compact" act={act}>
              Remove {name}
            </ActionButton>
          </div>
        </div>
      </dialog>
    </div>
  );
}
