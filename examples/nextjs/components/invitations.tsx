"use client";

import type { InvitationStatus, TenantInvitation } from "better-auth-tenant/invitations";
import { useRouter } from "next/navigation";
import { invitationPage, ROLES, roleName } from "@/lib/invitations";
import {
  ActionButton,
  asOutcome,
  Field,
  OutcomeNote,
  SelectField,
  SubmitButton,
  useForm,
} from "./form";
import { useManagement } from "./management";
import { Time } from "./time";

/** Whom a tenant has invited, and the form to invite somebody else. */
export function Invitations({
  tenantId,
  invitations,
}: {
  tenantId: string;
  invitations: TenantInvitation[];
}) {
  return (
    <section className="card" aria-labelledby="invitations">
      <h2 id="invitations">Invitations</h2>
      <InviteForm tenantId={tenantId} />
      <ul className="list">
        {invitations.map((invitation) => (
          <Invitation key={invitation.id} invitation={invitation} />
        ))}
      </ul>
    </section>
  );
}

function InviteForm({ tenantId }: { tenantId: string }) {
  const router = useRouter();
  const { invitation } = useManagement();
  const { form, pending, outcome } = useForm(async ({ email = "", role }) => {
    const { error } = await invitation.create({
      ...{ tenantId, email, role },
      redirectTo: invitationPage(tenantId),
    });
    if (!error) router.refresh();
    return asOutcome(error, `We have sent an invitation to ${email}.`);
  });
  return (
    <form className="stack" {...form}>
      <OutcomeNote {...outcome} />
      <Field label="Email" name="email" type="email" autoComplete="off" required />
      <SelectField label="Role" name="role" defaultValue="user" options={ROLES} />
      <div>
        <SubmitButton className="" pending={pending}>
          Send invitation
        </SubmitButton>
      </div>
    </form>
  );
}

const STATUSES: Record<InvitationStatus, [label: string, tone: string]> = {
  pending: ["Pending", "tint"],
  accepted: ["Accepted", "good"],
  expired: ["Expired", "bad"],
  revoked: ["Revoked", ""],
};

function Invitation({ invitation }: { invitation: TenantInvitation }) {
  const { id, email, role, status, inviterName } = invitation;
  const [label, tone] = STATUSES[status];
  const isOpen = status === "pending" || status === "expired";
  return (
    <li aria-label={email}>
      <div className="grow">
        <span className="row">
          <span>{email}</span>
          <span className={`badge ${tone}`}>{label}</span>
        </span>
        <div className="small muted three-lines">
          {roleName(role)}
          {inviterName && `, invited by ${inviterName}`}, {status === "pending" && "until "}
          <Time date={timeOf(invitation)} />
        </div>
      </div>
      {isOpen && <InvitationButtons id={id} email={email} />}
    </li>
  );
}

function timeOf({ status, expiresAt, acceptedAt, updatedAt }: TenantInvitation): Date {
  if (status === "pending" || status === "expired") return expiresAt;
  return acceptedAt ?? updatedAt;
}

function InvitationButtons({ id, email }: { id: string; email: string }) {
  const router = useRouter();
  const { invitation } = useManagement();
  const button = (label: string, call: "resend" | "revoke") => {
    const act = async () => {
      const { error } = await invitation[call]({ id });
      router.refresh();
      return asOutcome(error, call === "resend" ? "Sent again." : undefined);
    };
    return (
      <ActionButton className="plain compact" act={act}>
        {label}
        <span className="visually-hidden"> the invitation to {email}</span>
      </ActionButton>
    );
  };
  return (
    <div className="row">
      {button("Resend", "resend")}
      {button("Revoke", "revoke")}
    </div>
  );
}
