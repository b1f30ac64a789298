import type { AuthContext } from "better-auth";
import { BASE_ERROR_CODES } from "better-auth";
import { APIError } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import { tenantError } from "../errors";
import { rootCause } from "../framework";
import { getTenantId, type Scope } from "../request/scope";
import type { Row } from "./isolation";
import { isInside } from "./isolation";

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
  const holder = await adapter.findOne<Row>({
    model: "user",
    where: [{ field: "email", value: email }],
  });
  if (!holder || isInside(scope, holder)) return;
  const { requireEmailVerification, autoSignIn } = ctx.options.emailAndPassword ?? {};
  // better-auth hides a 403 from here behind its answer for e-mails that are taken.
  const hidden = requireEmailVerification || autoSignIn === false;
  throw APIError.from(
    hidden ? "FORBIDDEN" : "UNPROCESSABLE_ENTITY",
    BASE_ERROR_CODES.USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL,
  );
}

/**
 * Words of PostgreSQL and of Prisma for a value that is none of the column's type, or too large. The
 * others compare what they can make of it, and whoever reads a row compares again.
 */
const NO_SUCH_VALUE = ["22P02", "22003", "P2007", "P2023"];

/** For a row that was asked for by its id: one that cannot be is one that nobody has. */
export function nullIfInvalidId(error: unknown): null {
  if (NO_SUCH_VALUE.includes(rootCause(error).code ?? "")) return null;
  throw error;
}

/** Where drivers say what a database has refused; none of these holds a value of the row. */
const IDENTIFIERS = ["code", "errcode", "errno", "number"] as const;

/** What they say of a value that is taken, each in a language that does not change with the server's. */
const UNIQUE = ["23505", "ER_DUP_ENTRY", "1062", "2067", "2601", "2627", "11000", "P2002"];

/**
 * What the database refuses, in words of ours where it is not the server's fault.
 *
 * What is unique at large may be taken where nobody here can see it. That is a matter of the value
 * and no fault of the server. For e-mails there is a second reason: an application that had users
 * before it had this plugin still has better-auth's unique index on the e-mail alone, until
 * somebody drops it, and the database's own words do not say that.
 */
export function explainRefusal(ctx: AuthContext, error: unknown): unknown {
  const refusal = rootCause(error);
  const { message = "", constraint, code } = refusal;
  // The user was there a moment ago: somebody has deleted it, perhaps together with its tenant.
  if (getTenantId() !== null && (/foreign key/i.test(message) || code === "23503")) {
    return tenantError("USER_NOT_IN_TENANT");
  }
  const ids = Object.fromEntries(IDENTIFIERS.map((name) => [name, refusal[name]]));
  const isTaken = Object.values(ids).some((id) => UNIQUE.includes(String(id)));
  if (!isTaken && !/unique|duplicate/i.test(`${message} ${code}`)) return error;
  // PostgreSQL names the index, MySQL ends its message with the name, SQLite with the columns.
  const [, index] = /(?:for key|constraint failed:)(.*)$/i.exec(message) ?? [];
  const violated = (constraint ?? index ?? "").trim();
  if (!/email/i.test(violated)) {
    const taken = tenantError("VALUE_TAKEN");
    // A plugin that draws again when a value is taken, as better-auth's device codes do, goes by the
    // driver's identifiers or by these words. The body of the answer keeps its own.
    return Object.assign(taken, ids, { message: `${taken.message} (unique constraint)` });
  }
  if (!/tenant/i.test(violated)) {
    const table = ctx.tables.user?.modelName ?? "user";
    ctx.logger.error(
      `A sign-up at ${getTenantId() === null ? "the platform" : `tenant ${getTenantId()}`} failed: this e-mail exists in another tenant or on the platform, and the table "${table}" still has the unique index on the e-mail alone (${violated}), from before tenantAuth() was installed. Drop that index (see docs/adding.md) or set keepEmailGloballyUnique: true.`,
    );
  }
  return error;
}
