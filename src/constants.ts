export const PLUGIN_ID = "tenant-auth";

export const DEFAULT_TENANT_HEADER = "x-tenant-id";

export const DEFAULT_SLUG_HEADER = "x-tenant-slug";

/** better-auth's own OAuth callback. */
export const CALLBACK_PATH = "/callback/:id";

export const SIGN_UP_PATH = "/sign-up/email";

/** Endpoints that set or change an email. */
export const namesAddress = (path = "") =>
  path === SIGN_UP_PATH || /change-email|email-change/.test(path);

/** Endpoints where better-auth checks the length of a password first. */
export const resetsPassword = (path = "") => path.endsWith("/reset-password");

/** Endpoints that do nothing but sign a user in, or send a link or code for that. */
export const isSignIn = (path = "") =>
  /^\/sign-(in|up)\//.test(path) || ALSO_SIGN_IN.includes(path);

const ALSO_SIGN_IN = [
  "/magic-link/verify",
  "/one-tap/callback",
  "/siwe/verify",
  "/passkey/verify-authentication",
  "/phone-number/verify",
  "/email-otp/send-verification-otp",
  "/device/code",
  "/device/approve",
  "/device/token",
];

export const VERIFY_EMAIL = "/verify-email";

/** Our tenant routes, and the endpoints of better-auth that they run inside a tenant. */
export const TENANT_ROUTES: Readonly<Record<string, string>> = {
  "/tenant/sign-up/email": SIGN_UP_PATH,
  "/tenant/sign-in/email": "/sign-in/email",
  "/tenant/sign-in/social": "/sign-in/social",
  "/tenant/callback/:id": CALLBACK_PATH,
};

export const isTenantRoute = (path = "") => Object.hasOwn(TENANT_ROUTES, path);

/**
 * Endpoints of this plugin that have a tenant as their target, and run in none (R7). Other endpoints
 * under `/tenant/` are the application's own, and run in the tenant of the request.
 *
 * Guarded by "every endpoint of ours is known as one".
 */
const MANAGEMENT = [
  ...["create", "get", "list", "update", "delete", "sign-in-methods"],
  ...["register", "list", "update", "check", "delete"].map((name) => `oauth-config/${name}`),
  ...["create", "list", "resend", "revoke", "get", "accept"].map((name) => `invitation/${name}`),
].map((path) => `/tenant/${path}`);

export const isManagement = (path = "") => MANAGEMENT.includes(path);

export const isOwnPath = (path?: string) => isManagement(path) || isTenantRoute(path);
