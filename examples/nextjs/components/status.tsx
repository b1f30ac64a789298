"use client";

import type { TenantStatus } from "better-auth-tenant";
import { useRouter } from "next/navigation";
import { platformClient } from "@/lib/auth-client";
import { ActionButton, asOutcome } from "./form";
import { Time } from "./time";

interface TenantWithStatus {
  id: string;
  name: string;
  status: TenantStatus;
  deleteAt: Date | null;
}

const LABELS: Record<TenantStatus, string> = {
  active: "Active",
  suspended: "Suspended",
  deleting: "Will be deleted",
};

export function StatusBadge({ status }: { status: TenantStatus }) {
  return <span className={status === "active" ? "badge good" : "badge bad"}>{LABELS[status]}</span>;
}

/** Whether people can sign in at a tenant, and the way to change that. */
export function Status({ tenant }: { tenant: TenantWithStatus }) {
  const { name, status, deleteAt } = tenant;
  return (
    <section className="card" aria-labelledby="status">
      <div className="spread">
        <div className="tight grow">
          <h2 id="status">Status</h2>
          <p className="muted">
            {status === "active" && "People can sign in."}
            {status === "suspended" &&
              "Nobody can sign in, and all sessions have ended. Nothing else is lost."}
            {status === "deleting" && deleteAt && (
              <>
                Nobody can sign in. Everything will be deleted after <Time date={deleteAt} />. Until
                then, you can cancel this.
              </>
            )}
          </p>
        </div>
        <StatusButton tenant={tenant} to={status === "active" ? "suspended" : "active"}>
          {{ active: "Suspend", suspended: "Resume", deleting: "Do not delete" }[status]} {name}
        </StatusButton>
      </div>
    </section>
  );
}

function StatusButton({
  tenant,
  to,
  children,
}: {
  tenant: TenantWithStatus;
  to: "active" | "suspended";
  children: React.ReactNode;
}) {
  const router = useRouter();
  const change = async () => {
    const { error } = await platformClient.tenant.update({ tenantId: tenant.id, status: to });
    router.refresh();
    return asOutcome(error);
  };
  return (
    <ActionButton className={to === "suspended" ? "plain" : ""} act={change}>
      <span className="name">{children}</span>
    </ActionButton>
  );
}
