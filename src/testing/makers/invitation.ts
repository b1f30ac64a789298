import { INVITATION_HEADER } from "../../invitations/error-codes";
import { linkOf } from "../../invitations/link";
import { issue } from "../../invitations/store";
import { unseal } from "../../isolation/links";
import { isSwitchedOff } from "../instance/switched-off";
import type { Maker } from "./maker";

const ACCEPT = "/tenant/invitation/accept";
const SIGN_UP = "/sign-up/email";
const HOUR_MS = 3_600_000;

/**
 * An invitation of somebody new, by the hand of the server: who may invite is the application's to
 * say. The same address is invited everywhere. Its token is tried as it is in the link, taken out of
 * its seal, and in the header that goes along with other ways in.
 */
export const tenantInvitation: Maker = {
  name: "invitation",
  paths: [ACCEPT],
  async make(side) {
    const { place, workshop, oneTimes, things } = side;
    const { ctx, tenantOptions } = workshop.subject;
    // Nobody is invited to the platform.
    if (place.tenantId === null) return;
    const word = tenantOptions.keepEmailGloballyUnique ? `${side.name}-` : "";
    const email = `invited-${word}${workshop.mark}@example.com`;
    const { row, secret } = await side.inside(() =>
      issue(ctx, {
        email,
        role: null,
        mailed: true,
        inviterId: null,
        inviterName: null,
        redirectTo: null,
        expiresAt: new Date(Date.now() + HOUR_MS),
      }),
    );
    things.tenantInvitationId = row.id;
    const url = await linkOf(ctx, row, secret);
    const token = new URLSearchParams(url.split("?")[1]).get("token") ?? "";
    const opened = (await unseal(ctx, token))?.token;
    const { name } = this;
    const canAccept = !isSwitchedOff(ACCEPT, ctx.options);
    const home = canAccept ? ACCEPT : "/tenant/invitation/get";
    const sealed = { home, sealed: true, sealedFor: "/tenant/invitation" };
    oneTimes.push(
      { name, values: { token: opened, email }, home, needsSeal: true },
      { name: `sealed ${name}`, values: { token, email }, ...sealed },
    );
    if (!canAccept) return;
    const inHeader = { headers: { [INVITATION_HEADER]: token }, home: SIGN_UP };
    // Where somebody new signs up, it is whoever is invited.
    const values = { email, freshEmail: email };
    oneTimes.push({ name: `${name} in its header`, values, ...inHeader });
  },
};
