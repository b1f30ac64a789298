import type { AuthContext } from "better-auth";
import { APIError } from "better-auth/api";
import type { Where } from "better-auth/types";
import { tenantError } from "../errors";
import { parseJSON } from "../framework";
import type { Row } from "../isolation/isolation";
import { isText } from "../tenants/cache";

/*
 * MySQL compares text by collations: to it, "CORP", "cörp" and "corp " are "corp". better-auth
 * compares provider ids itself as well, and to it they are four. So a row that was looked up by an id
 * is asked whether it has that very id, and new ids have nothing in them that is like something else.
 */

type Call = { where?: Where[] };

const isEqual = ({ field, operator = "eq", connector = "AND" }: Where) =>
  field === "providerId" && operator === "eq" && connector === "AND";

/** What a look-up by the id of a provider has found, without rows that have another one. */
export function exactly({ where = [] }: Call, found: unknown): unknown {
  const asked = where.find(isEqual)?.value;
  if (asked === undefined) return found;
  // One that was not asked for its id does not show it.
  const isAsked = (row: unknown) => ((row as Row | null)?.providerId ?? asked) === asked;
  if (Array.isArray(found)) return found.filter(isAsked);
  return isAsked(found) ? found : null;
}

/** What finds nothing: no column holds such a text, and PostgreSQL would fail. */
export const findsNothing = (name: string, { where = [] }: Call): boolean =>
  name.startsWith("find") && where.some(({ value }) => typeof value === "string" && !isText(value));

const PLAIN_ID = /^[a-z\d][a-z\d._-]*$/;
const { compare } = new Intl.Collator("en", { sensitivity: "base" });

/**
 * Refuses ids that somebody could take for others, whichever endpoint asks for it. better-auth has
 * refused reserved ones, if they are written in the same way.
 */
export function assertPlainId(ctx: AuthContext, { providerId }: Row): void {
  const id = String(providerId);
  if (!PLAIN_ID.test(id)) {
    throw new APIError("BAD_REQUEST", {
      code: "INVALID_PROVIDER_ID",
      message: `[body.providerId] Expected lower-case letters, digits, hyphens, dots and underscores: "acme-okta"`,
    });
  }
  const reserved = [
    // A function may show none.
    ...ctx.socialProviders.flatMap(({ id }) => id ?? []),
    ...ctx.trustedProviders,
    ...sharedProviders(ctx),
  ];
  if (!reserved.some((name) => compare(name.trim(), id) === 0)) return;
  throw tenantError("VALUE_TAKEN", `The provider id "${id}" is reserved`);
}

/** The application's own providers. */
export function defaultProviders({ options: { plugins } }: AuthContext) {
  const options = plugins?.find(({ id }) => id === "sso")?.options;
  const { defaultSSO = [] } = (options ?? {}) as { defaultSSO?: { providerId: string }[] };
  return defaultSSO;
}

/** The ids of these. */
export const sharedProviders = (ctx: AuthContext): string[] =>
  defaultProviders(ctx).map(({ providerId }) => providerId);

/** Whether better-auth marks, by this value, a SAML assertion of one of these as seen. */
export function isSharedMark(ctx: AuthContext, value: unknown): boolean {
  const { assertionId, providerId } = Object(parseJSON(value));
  return assertionId !== undefined && sharedProviders(ctx).includes(providerId);
}
