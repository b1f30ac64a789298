import { appendQueryParams } from "@better-auth/core/utils/url";
import type { AuthContext } from "better-auth";
import { generateRandomString } from "better-auth/crypto";
import { looksSealed, seal, unseal } from "../isolation/links";
import type { StoredInvitation } from "./schema";

/** What is in a link: the invitation, and the secret that shows that one was given the link. */
export interface OpenedLink {
  tenantId: string;
  id: string;
  secret: string;
}

/**
 * What the token is sealed for. No endpoint has this path, so the isolation never opens it: it is good
 * for invitations, and no one-time token of anything else.
 */
const SEALED_FOR = "/tenant/invitation";
const DEFAULT_PAGE = "/accept-invitation";
const SECRET_LENGTH = 32;

/** A secret for a new link, and what is stored of it. */
export async function createSecret(): Promise<{ secret: string; tokenHash: string }> {
  const secret = generateRandomString(SECRET_LENGTH);
  return { secret, tokenHash: await hashSecret(secret) };
}

export async function hashSecret(secret: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(secret));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The link of an invitation, which leads into its tenant wherever it is opened. */
export async function linkOf(
  ctx: AuthContext,
  { id, tenantId, redirectTo }: StoredInvitation,
  secret: string,
): Promise<string> {
  const token = await seal(ctx, { token: `${id}.${secret}`, tenantId, path: SEALED_FOR });
  return appendQueryParams(addressOf(ctx, redirectTo), new URLSearchParams({ token }));
}

function addressOf({ baseURL }: AuthContext, redirectTo: string | null): string {
  const page = redirectTo ?? DEFAULT_PAGE;
  const isComplete = !page.startsWith("/") || !URL.canParse(baseURL);
  return isComplete ? page : new URL(baseURL).origin + page;
}

/** Undefined for whatever is not the token of an invitation. */
export async function openLink(ctx: AuthContext, token: unknown): Promise<OpenedLink | undefined> {
  const opened = looksSealed(token) ? await unseal(ctx, String(token)) : undefined;
  if (opened?.path !== SEALED_FOR) return undefined;
  const { tenantId } = opened;
  const end = opened.token.lastIndexOf(".");
  return { tenantId, id: opened.token.slice(0, end), secret: opened.token.slice(end + 1) };
}
