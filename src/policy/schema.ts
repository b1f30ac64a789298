import * as z from "zod";

const METHODS = [
  "password",
  "social",
  "magic-link",
  "email-otp",
  "phone",
  "passkey",
  "sso",
  "siwe",
  "anonymous",
  "device",
] as const;

/** A sign-in method, as a policy lists it. */
export type SignInMethod = (typeof METHODS)[number] | `social:${string}`;

const SOCIAL = /^social:.+$/;

/** A plain domain name: no address, no wildcard, and ASCII only. */
export const DOMAIN =
  /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$/i;

const domain = z
  .string()
  .max(253, { abort: true })
  .toLowerCase()
  .regex(DOMAIN, "expected a domain: example.com");

/** The value that is wrong, cut off: callers send it as well. */
const shown = (input: unknown) =>
  typeof input === "string"
    ? JSON.stringify(input.slice(0, 64))
    : `a value of type ${typeof input}`;
/** Instead of a list: the domains that the tenant has verified with `tenantDomains()`. */
export const VERIFIED = "verified";

const method = z.custom<SignInMethod>(
  (name) => METHODS.includes(name as never) || (typeof name === "string" && SOCIAL.test(name)),
  {
    error: ({ input }) =>
      `unknown method ${shown(input)}: expected ${METHODS.join(", ")} or social:<provider>`,
  },
);

const listOf = <Item extends z.ZodType>(item: Item) => z.array(item).min(1).max(100);
const unique = <Item>(items: Item[]) => [...new Set(items)];

const methods = listOf(method).transform(unique).optional();

/** A duration. Its message says the unit. */
export const seconds = ({ min = 1, max = Number.MAX_SAFE_INTEGER }) => {
  const most = max < Number.MAX_SAFE_INTEGER ? ` to ${max}` : " on";
  const error = `expected a duration in seconds: a whole number from ${min}${most}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
};

/** Strict: a rule that is not understood must not look as if it were enforced. */
export const policySchema = z.strictObject({
  /** Who may become a user. */
  signUp: z
    .enum(["open", "invited", "closed"], {
      error: ({ input }) => `expected "open", "invited" or "closed", not ${shown(input)}`,
    })
    .optional(),
  /**
   * The domains of users' email addresses, or those that the tenant has verified. An address counts
   * once it is verified.
   */
  emailDomains: z
    .literal(VERIFIED)
    .or(listOf(domain))
    .transform((domains) => (domains === VERIFIED ? domains : unique(domains)))
    .optional(),
  /** How users may sign in. */
  methods,
  /** At least the application's. */
  password: z.strictObject({ minLength: z.int().positive().optional() }).optional(),
  /** Whether sign-in takes two factors. Methods in `exemptMethods` are left to their provider. */
  twoFactor: z.strictObject({ required: z.boolean(), exemptMethods: methods }).optional(),
  /** At most the application's, in seconds. */
  session: z.strictObject({ expiresIn: seconds({}).optional() }).optional(),
});

/** What a tenant decides for itself. The application decides the rest. */
export interface TenantPolicy extends z.infer<typeof policySchema> {}

const CLOSED: TenantPolicy = { signUp: "closed", methods: [], emailDomains: [] };

/**
 * The policy in a row, or null. The column may have been written with SQL, or by a newer version: a
 * policy that this version does not understand admits no one until a manager sets another.
 */
export function parseStoredPolicy(stored: unknown): TenantPolicy | null {
  // Some adapters return JSON as the text they store.
  if (stored === null || stored === undefined || stored === "null") return null;
  return policySchema.safeParse(stored).data ?? CLOSED;
}
