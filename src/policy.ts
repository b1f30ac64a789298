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
