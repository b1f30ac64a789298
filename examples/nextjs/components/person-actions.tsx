"use client";

import { useRouter } from "next/navigation";
import { ActionButton, asOutcome } from "./form";
import { useAdmin } from "./management";
import { RemoveDialog } from "./remove-provider";
import { ResetSecondFactor } from "./second-factor";

type Outcome = ReturnType<typeof asOutcome> | undefined;

/** The server decides who may do what. Users cannot ban or remove themselves. */
export function PersonActions({
  tenantId,
  userId,
  name,
  isAdministrator,
  isBanned,
  hasSecondFactor,
  isSelf,
}: {
  tenantId: string;
  userId: string;
  name: string;
  isAdministrator: boolean;
  isBanned: boolean;
  hasSecondFactor: boolean;
  isSelf: boolean;
}) {
  const router = useRouter();
  const admin = useAdmin();
  const refreshed = ({ error }: { error: Parameters<typeof asOutcome>[0] }, done?: string) => {
    if (error) return asOutcome(error);
    router.refresh();
    return done ? { done } : undefined;
  };
  const role = isAdministrator ? "user" : "admin";
  const setRole = async () => refreshed(await admin.setRole({ userId, role }));
  const ban = async () =>
    refreshed(await (isBanned ? admin.unbanUser({ userId }) : admin.banUser({ userId })));
  const endSessions = async () =>
    refreshed(await admin.revokeUserSessions({ userId }), "All sessions have ended.");
  const remove = async () => refreshed(await admin.removeUser({ userId }));
  const button = (label: string, rest: string, act: () => Promise<Outcome>) => (
    <ActionButton className="plain compact" act={act}>
      {label}
      <span className="visually-hidden"> {rest}</span>
    </ActionButton>
  );
  return (
    <details className="actions">
      <summary>
        Manage<span className="visually-hidden"> {name}</span>
      </summary>
      <div className="row">
        {button(isAdministrator ? "Make a user" : "Make an administrator", `of ${name}`, setRole)}
        {hasSecondFactor && <ResetSecondFactor tenantId={tenantId} userId={userId} />}
        {!isSelf && (
          <>
            {button("End sessions", `of ${name}`, endSessions)}
            {button(isBanned ? "Unban" : "Ban", name, ban)}
            <RemoveDialog name={name} remove={remove}>
              The account and everything that belongs to it are deleted. This cannot be undone.
            </RemoveDialog>
          </>
        )}
      </div>
    </details>
  );
}
