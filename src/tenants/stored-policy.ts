import * as z from "zod";
import type { TenantPolicy } from "../policy";

/*
 * What is in the column may have been written past us, or by a newer version. What is not understood
 * must not look as if it were enforced: then nobody becomes a user, and nobody signs in, until a
 * manager sets another policy. Loaded by the first tenant that has a policy.
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

const NOBODY: TenantPolicy = { signUp: "closed", methods: [] };

/** The policy in a row of the table; null where there is none. */
export function understood(stored: unknown): TenantPolicy | null {
  // Some adapters return JSON as they have stored it, as text.
  if (stored === null || stored === undefined || stored === "null") return null;
  return shape.safeParse(stored).success ? (stored as TenantPolicy) : NOBODY;
}
