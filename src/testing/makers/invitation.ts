import { unseal } from "../../core/isolate/links";
import { INVITATION_HEADER } from "../../features/invitations/error-codes";
import { linkOf } from "../../features/invitations/link";
import { issue } from "../../features/invitations/store";
import { isSwitchedOff } from "../instance/switched-off";
import { inAnHour, maker } from "./maker";

const ACCEPT = "/tenant/invitation/accept";

// The server's own code makes it, because the application decides who may invite. The same address is
// invited everywhere, and the token is tried as in the link, unsealed, and in its header.
export const tenantInvitation = maker("invitation", [ACCEPT], async (side) => {
  const { place, workshop, things } = side;
  const { ctx, tenantOptions } = workshop.subject;
  // There are no invitations to the platform.
  if (place.tenantId === null) return;
  const word = tenantOptions.keepEmailGloballyUnique ? `${side.name}-` : "";
  const email = `invited-${word}${workshop.mark}@example.com`;
  const inviter = { inviterId: null, inviterName: null };
  const rest = { role: null, mailed: true, redirectTo: null, expiresAt: inAnHour() };
  const { row, secret } = await side.inside(() => issue(ctx, { email, ...inviter, ...rest }));
  things.tenantInvitationId = row.id;
  const url = await linkOf(ctx, row, secret);
  const token = new URLSearchParams(url.split("?")[1]).get("token") ?? "";
  const opened = (await unseal(ctx, token))?.token;
  const canAccept = !isSwitchedOff(ACCEPT, ctx.options);
  const home = canAccept ? ACCEPT : "/tenant/invitation/get";
  const sealed = { home, sealed: true, sealedFor: "/tenant/invitation" };
  const made = [
    { values: { token: opened, email }, home, needsSeal: true },
    { name: "sealed invitation", values: { token, email }, ...sealed },
  ];
  if (!canAccept) return made;
  const headers = { [INVITATION_HEADER]: token };
  // The new user who signs up is the one who is invited.
  const values = { email, freshEmail: email };
  return [...made, { name: "invitation in its header", values, headers, home: "/sign-up/email" }];
});
