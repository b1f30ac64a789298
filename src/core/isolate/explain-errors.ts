import type { AuthContext } from "better-auth";
import { BASE_ERROR_CODES } from "better-auth";
import { APIError } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import type { Row } from "../database";
import {
  findViolatedIndex,
  isForeignKeyViolation,
  isTaken,
  isTooLong,
  readIdentifiers,
  rootCause,
} from "../database-errors";
import { tenantError } from "../errors";
import type { Isolation } from "../isolation";
import { getTenantId, type Scope } from "../request";
import { isInside } from "./in-scope";

/**
 * Refuses an email that a user outside the scope has, for `keepEmailGloballyUnique`. This option
 * must reveal to a tenant that the email is taken. The error is the same as for an email inside the
 * tenant.
 */
export async function refuseEmailTakenElsewhere(
  { ctx }: Isolation,
  adapter: DBTransactionAdapter,
  scope: Scope,
  email: string,
): Promise<void> {
  const where = [{ field: "email", value: email }];
  const holder = await adapter.findOne<Row>({ model: "user", where });
  if (holder && !isInside(scope, holder)) throw emailTaken(ctx);
}

/** Returns the error that better-auth gives for an email that is taken. */
function emailTaken({ options }: AuthContext, isInvited = false): APIError {
  const { requireEmailVerification, autoSignIn } = options.emailAndPassword ?? {};
  // If better-auth hides which emails are taken, it also hides a 403 from here. An invited user
  // sees the error, and can accept the invitation again.
  const isHidden = !isInvited && (requireEmailVerification || autoSignIn === false);
  return APIError.from(
    isHidden ? "FORBIDDEN" : "UNPROCESSABLE_ENTITY",
    BASE_ERROR_CODES.USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL,
  );
}

/**
 * Turns a database error into an error of this plugin if the caller caused it. A unique value may
 * be taken outside the scope, or by a look-alike: see `withExactRows`. An email may also be taken
 * because better-auth's unique index on the email alone is left from before this plugin was
 * installed.
 */
export function explainDatabaseError(
  ctx: AuthContext,
  error: unknown,
  model?: string,
  isInvited = false,
): unknown {
  const refusal = rootCause(error);
  const tenantId = getTenantId();
  // The user was just deleted, perhaps together with its tenant.
  if (tenantId !== null && isForeignKeyViolation(refusal)) return tenantError("USER_NOT_IN_TENANT");
  if (isTooLong(refusal)) return tenantError("INVALID_VALUE", "A value is too long");
  if (!isTaken(refusal)) return error;
  const violated = findViolatedIndex(refusal);
  const { modelName: table = "user", fields } = ctx.tables.user ?? {};
  const column = fields?.email?.fieldName ?? "email";
  // Matches `user_email_key` and `user.tenantId, user.email`, but not a column such as `workEmail`.
  const email = new RegExp(`(^|\\W|(user|${table})s?_|id_)${column}(_|\\W|$)`, "i");
  if (model !== "user" || !email.test(violated)) {
    const taken = tenantError("VALUE_TAKEN");
    // Plugins that retry with another value (device codes) recognize the driver's identifiers or
    // these words. The response body keeps its own message.
    return Object.assign(taken, readIdentifiers(refusal), {
      message: `${taken.message} (unique constraint)`,
    });
  }
  if (!/tenant/i.test(violated)) {
    ctx.logger.error(
      `A sign-up at ${tenantId === null ? "the platform" : `tenant ${tenantId}`} failed: this email exists in another tenant or on the platform, and the table "${table}" still has the unique index on the email alone (${violated}), from before tenantAuth() was installed. Drop that index (see docs/adding.md) or set keepEmailGloballyUnique: true.`,
    );
  }
  return emailTaken(ctx, isInvited);
}
