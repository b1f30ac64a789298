import { appendQueryParams } from "@better-auth/core/utils/url";
import type { AuthContext } from "better-auth";
import { generateRandomString } from "better-auth/crypto";
import { looksSealed, seal, unseal } from "../../core/isolate/links";
import { toHex } from "../../core/utils";
import type { StoredInvitation } from "./options";

/**
 * The path that tokens of invitations are sealed for: encrypted together with it and their tenant
 * (see core/isolate/links.ts). No endpoint has this path, so the core never accepts these tokens as
 * one-time tokens of an endpoint.
 */
const SEALED_FOR = "/tenant/invitation";
const DEFAULT_PAGE = "/accept-invitation";
const SECRET_LENGTH = 32;

/** Creates the secret of a link. Only its hash is stored. */
export async function createSecret() {
  const secret = generateRandomString(SECRET_LENGTH);
  return { secret, tokenHash: await hashSecret(secret) };
}

const hashSecret = async (secret: string) =>
  toHex(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(secret)));

/** Returns the link of an invitation, which leads into its tenant from any host. */
export async function linkOf(
  ctx: AuthContext,
  { id, tenantId, redirectTo }: StoredInvitation,
  secret: string,
): Promise<string> {
  const token = await seal(ctx, { token: `${id}.${secret}`, tenantId, path: SEALED_FOR });
  const page = redirectTo ?? DEFAULT_PAGE;
  const isRelative = page.startsWith("/") && URL.canParse(ctx.baseURL);
  const address = isRelative ? new URL(ctx.baseURL).origin + page : page;
  return appendQueryParams(address, new URLSearchParams({ token }));
}

/** Opens the token of an invitation. Returns undefined for any other value. */
export async function openLink(ctx: AuthContext, token: unknown) {
  const opened = looksSealed(token) ? await unseal(ctx, String(token)) : undefined;
  if (opened?.path !== SEALED_FOR) return undefined;
  const end = opened.token.lastIndexOf(".");
  const tokenHash = await hashSecret(opened.token.slice(end + 1));
  return { tenantId: opened.tenantId, id: opened.token.slice(0, end), tokenHash };
}
