"use client";

import { useRouter } from "next/navigation";
import { useId, useRef } from "react";
import { providerName } from "@/lib/providers";
import { ActionButton, asOutcome } from "./form";
import { useManagement } from "./management";
import type { Target } from "./oauth-configs";

/** Asks before it removes: the secret cannot be brought back. */
export function RemoveProvider(target: Target) {
  const router = useRouter();
  const { oauthConfig } = useManagement();
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const name = providerName(target.providerId);
  const remove = async () => {
    const { error } = await oauthConfig.delete(target);
    if (error) return asOutcome(error);
    dialog.current?.close();
    router.refresh();
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
          <p className="muted">
            The client ID and the secret are deleted. People can no longer use {name} to sign in
            here, unless it is set up for all tenants.
          </p>
          <div className="row">
            <button
              className="button plain compact"
              type="button"
              onClick={() => dialog.current?.close()}
            >
              Cancel
            </button>
            <ActionButton className="destructive compact" act={remove}>
              Remove {name}
            </ActionButton>
          </div>
        </div>
      </dialog>
    </div>
  );
}
