import * as z from "zod";

/** A way to sign in, as a policy names it. */
export type SignInMethod =
  | "password"
  | "social"
  | `social:${string}`
  | "magic-link"
  | "email-otp"
  | "phone"
  | "passkey"
  | "sso"
  | "siwe"
  | "anonymous"
  | "device";

/** What a tenant decides for itself. What it leaves out is as the application has it. */
export interface TenantPolicy {
  /** Who may become a user. */
  signUp?: "open" | "invited" | "closed";
  /** With which addresses. They count once they are verified. */
  emailDomains?: string[];
  /** How people may sign in. */
  methods?: SignInMethod[];
  /** At least the application's. */
  password?: { minLength?: number };
  /** At most the application's, in seconds. */
  session?: { expiresIn?: number };
}

/*
 * The column may have been written with SQL, or by a newer version. A policy that this version does
 * not understand must not look as if it were enforced: it lets no one sign up or in until a manager
 * sets another.
 */

const texts = z.array(z.string()).optional();
const count = z.int().positive().optional();

const shape = z.strictObject({
  signUp: z.enum(["open", "invited", "closed"]).optional(),
  emailDomains: texts,
  methods: texts,
  password: z.strictObject({ minLength: count }).optional(),
  session: z.strictObject({ expiresIn: count }).optional(),
});

const CLOSED: TenantPolicy = { signUp: "closed", methods: [] };

/** The policy in a row of the table, or null. */
export function parseStoredPolicy(stored: unknown): TenantPolicy | null {
  // Some adapters return JSON as the text they store.
  if (stored === null || stored === undefined || stored === "null") return null;
  return shape.safeParse(stored).success ? (stored as TenantPolicy) : CLOSED;
}
