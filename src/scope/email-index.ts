import type { AuthContext } from "better-auth";
import { BASE_ERROR_CODES } from "better-auth";
import { APIError } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";

/**
 * With `keepEmailGloballyUnique` an e-mail that belongs to somebody outside the tenant is taken
 * inside it as well. That is the one thing about another tenant that has to show, and it shows
 * just as for an e-mail that is taken in this one.
 */
export async function refuseEmailTakenElsewhere(
  ctx: AuthContext,
  adapter: DBTransactionAdapter,
  email: unknown,
): Promise<void> {
  if (typeof email !== "string") return;
  const holder = await adapter.findOne({
    model: "user",
    where: [{ field: "email", value: email }],
  });
  if (!holder) return;
  const { requireEmailVerification, autoSignIn } = ctx.options.emailAndPassword ?? {};
  // better-auth hides a 403 from here behind its answer for e-mails that are taken.
  const hidden = requireEmailVerification || autoSignIn === false;
  throw APIError.from(
    hidden ? "FORBIDDEN" : "UNPROCESSABLE_ENTITY",
    BASE_ERROR_CODES.USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL,
  );
}

/**
 * An application that had users before it had this plugin still has better-auth's unique index on
 * the e-mail alone, until somebody drops it. The database's own words do not say that.
 */
export function explainOldEmailIndex(ctx: AuthContext, error: unknown): void {
  const { message = "", detail = "" } = error as { message?: string; detail?: string };
  const words = `${message} ${detail}`;
  if (!/unique|duplicate/i.test(words) || !/email/i.test(words) || /tenant/i.test(words)) return;
  ctx.logger.error(
    "This e-mail exists in another tenant or on the platform, and the user table still has the unique index on the e-mail alone, from before tenantAuth() was installed. Drop that index (README, “Adding it to an application that has users”) or set `keepEmailGloballyUnique: true`.",
  );
}
