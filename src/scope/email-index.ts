import type { AuthContext } from "better-auth";
import { BASE_ERROR_CODES } from "better-auth";
import { APIError } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import { isInside, type Scope } from "./scope";

/**
 * With `keepEmailGloballyUnique` an e-mail that belongs to somebody outside the scope is taken
 * inside it as well. That is the one thing about another tenant that has to show, and it shows
 * just as for an e-mail that is taken in this one.
 */
export async function refuseEmailTakenElsewhere(
  ctx: AuthContext,
  adapter: DBTransactionAdapter,
  scope: Scope,
  email: string,
): Promise<void> {
  const holder = await adapter.findOne<{ tenantId?: string | null }>({
    model: "user",
    where: [{ field: "email", value: email }],
  });
  if (!holder || isInside(scope, holder.tenantId)) return;
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
  const { message = "", constraint } = error as { message?: string; constraint?: string };
  // PostgreSQL names the index, MySQL ends its message with the name, SQLite with the columns.
  const [, index] = /(?:for key|constraint failed:)(.*)$/i.exec(message) ?? [];
  const violated = constraint ?? index;
  if (!violated || !/email/i.test(violated) || /tenant/i.test(violated)) return;
  const table = ctx.tables.user?.modelName ?? "user";
  ctx.logger.error(
    `This e-mail exists in another tenant or on the platform, and the table "${table}" still has the unique index on the e-mail alone (${violated.trim()}), from before tenantAuth() was installed. Drop that index (README, "Adding it to an application that has users") or set keepEmailGloballyUnique: true.`,
  );
}
