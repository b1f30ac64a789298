import * as z from "zod";
import { METHOD_NAMES, type SignInMethod } from "../../core/sign-in-endpoints";

const SOCIAL = /^social:.+$/;

/** Matches a plain ASCII domain name, without wildcards. */
export const DOMAIN =
  /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$/i;

const domain = z
  .string()
  .max(253, { abort: true })
  .toLowerCase()
  .regex(DOMAIN, "expected a domain: example.com");

/** Shortens an invalid value for an error message, because callers can send any value. */
const shown = (input: unknown) =>
  typeof input === "string"
    ? JSON.stringify(input.slice(0, 64))
    : `a value of type ${typeof input}`;
/** Stands for the domains that the tenant has verified with `tenantDomains()`. */
export const VERIFIED = "verified";

const method = z.custom<SignInMethod>(
  (name) => METHOD_NAMES.includes(name as never) || (typeof name === "string" && SOCIAL.test(name)),
  {
    error: ({ input }) =>
      `unknown method ${shown(input)}: expected ${METHOD_NAMES.join(", ")} or social:<provider>`,
  },
);

const listOf = <Item extends z.ZodType>(item: Item) => z.array(item).min(1).max(100);
const unique = <Item>(items: Item[]) => [...new Set(items)];

const methods = listOf(method).transform(unique).optional();

/** Returns the schema of a duration, whose error message names the unit. */
export const seconds = ({ min = 1, max = Number.MAX_SAFE_INTEGER }) => {
  const most = max < Number.MAX_SAFE_INTEGER ? ` to ${max}` : " on";
  const error = `expected a duration in seconds: a whole number from ${min}${most}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
};

/** The schema of a policy. Strict, so that a misspelled rule is an error. */
export const policySchema = z.strictObject({
  /** Who may become a user: everyone, invited people only, or no one. */
  signUp: z
    .enum(["open", "invited", "closed"], {
      error: ({ input }) => `expected "open", "invited" or "closed", not ${shown(input)}`,
    })
    .optional(),
  /**
   * The domains that users' email addresses must have, or `"verified"` for the domains that the
   * tenant has verified. Users must verify an address of these domains before they get a session.
   */
  emailDomains: z
    .literal(VERIFIED)
    .or(listOf(domain))
    .transform((domains) => (domains === VERIFIED ? domains : unique(domains)))
    .optional(),
  /** The methods by which users may sign in. All, if not set. */
  methods,
  /** The minimum length of passwords. Can only raise the application's minimum. */
  password: z.strictObject({ minLength: z.int().positive().optional() }).optional(),
  /** Whether users need a second factor. Sign-ins by `exemptMethods` need none. */
  twoFactor: z.strictObject({ required: z.boolean(), exemptMethods: methods }).optional(),
  /** The lifetime of sessions, in seconds. Can only shorten the application's. */
  session: z.strictObject({ expiresIn: seconds({}).optional() }).optional(),
});

/** The rules that a tenant sets for itself. The application's options apply to the rest. */
export interface TenantPolicy extends z.infer<typeof policySchema> {}

const CLOSED: TenantPolicy = { signUp: "closed", methods: [], emailDomains: [] };

/**
 * Returns the policy in a row, or null. SQL or a newer version may have written a policy that this
 * version cannot parse. Such a policy admits no users until a manager sets another.
 */
export function parseStoredPolicy(stored: unknown): TenantPolicy | null {
  // Some adapters return null as the stored text "null".
  if (stored === null || stored === undefined || stored === "null") return null;
  return policySchema.safeParse(stored).data ?? CLOSED;
}
