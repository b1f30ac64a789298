import type { AuthContext } from "better-auth";
import { BASE_ERROR_CODES } from "better-auth";
import { APIError } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import { tenantError } from "../errors";
import { rootCause } from "../framework";
import { getTenantId, type Scope } from "../request/scope";
import { type Isolation, isInside, type Row } from "./isolation";

/**
 * With `keepEmailGloballyUnique`, an email of a user outside the scope is taken inside it as well. A
 * tenant has to learn that much about others, and learns it as for an email that it has itself.
 */
export async function refuseEmailTakenElsewhere(
  { ctx }: Isolation,
  adapter: DBTransactionAdapter,
  scope: Scope,
  email: string,
): Promise<void> {
  const where = [{ field: "email", value: email }];
  const holder = await adapter.findOne<Row>({ model: "user", where });
  if (!holder || isInside(scope, holder)) return;
  const { requireEmailVerification, autoSignIn } = ctx.options.emailAndPassword ?? {};
  // better-auth hides a 403 from here behind its response for emails that are taken.
  const isHidden = requireEmailVerification || autoSignIn === false;
  throw APIError.from(
    isHidden ? "FORBIDDEN" : "UNPROCESSABLE_ENTITY",
    BASE_ERROR_CODES.USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL,
  );
}

/** Codes of PostgreSQL and Prisma for a value of the wrong type or range. */
const INVALID_VALUE = ["22P02", "22003", "P2007", "P2023"];

/** For a lookup by id: an id that the column cannot hold belongs to no row. */
export function nullIfInvalidId(error: unknown): null {
  if (INVALID_VALUE.includes(rootCause(error).code ?? "")) return null;
  throw error;
}

/** Where drivers say what the database refused; none of these holds a value of the row. */
const IDENTIFIERS = ["code", "errcode", "errno", "number"] as const;

/** What they say about a value that is taken. */
const UNIQUE = ["23505", "ER_DUP_ENTRY", "1062", "2067", "2601", "2627", "11000", "P2002"];

/** And about a value that the column, or its index, cannot hold: a unique one is longer in a tenant. */
const TOO_LONG = ["ER_DATA_TOO_LONG", "1406", "22001", "54000", "2628", "8152", "P2000"];

/**
 * Turns a refusal of the database into an error of ours if the caller caused it. A unique value may
 * be taken where the scope cannot see it. For emails there is a second reason: an application that
 * had users before this plugin still has better-auth's unique index on the email alone.
 */
export function explainDatabaseError(ctx: AuthContext, error: unknown, model?: string): unknown {
  const refusal = rootCause(error);
  const { message = "", constraint, code } = refusal;
  const tenantId = getTenantId();
  // The user was deleted a moment ago, perhaps together with its tenant.
  if (tenantId !== null && (/foreign key/i.test(message) || code === "23503")) {
    return tenantError("USER_NOT_IN_TENANT");
  }
  const ids = Object.fromEntries(IDENTIFIERS.map((name) => [name, refusal[name]]));
  const isOneOf = (codes: string[]) => Object.values(ids).some((id) => codes.includes(String(id)));
  if (isOneOf(TOO_LONG)) return tenantError("INVALID_VALUE", "A value is too long");
  const isTaken = isOneOf(UNIQUE);
  if (!isTaken && !/unique|duplicate/i.test(`${message} ${code}`)) return error;
  // PostgreSQL names the index, MySQL ends its message with the name, SQLite with the columns.
  const [, index] = /(?:for key|constraint failed:)(.*)$/i.exec(message) ?? [];
  const violated = (constraint ?? index ?? "").trim();
  const { modelName: table = "user", fields } = ctx.tables.user ?? {};
  const column = fields?.email?.fieldName ?? "email";
  // `user_email_key`, `user.tenantId, user.email` and the like, not the `workEmail` of a user.
  const email = new RegExp(`(^|\\W|(user|${table})s?_|id_)${column}(_|\\W|$)`, "i");
  if (model !== "user" || !email.test(violated)) {
    const taken = tenantError("VALUE_TAKEN");
    // Plugins that try again with another value (device codes) go by the driver's identifiers or by
    // these words. The response keeps its own.
    return Object.assign(taken, ids, { message: `${taken.message} (unique constraint)` });
  }
  if (!/tenant/i.test(violated)) {
    ctx.logger.error(
      `A sign-up at ${tenantId === null ? "the platform" : `tenant ${tenantId}`} failed: this email exists in another tenant or on the platform, and the table "${table}" still has the unique index on the email alone (${violated}), from before tenantAuth() was installed. Drop that index (see docs/adding.md) or set keepEmailGloballyUnique: true.`,
    );
  }
  return error;
}
