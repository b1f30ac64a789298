export const PLUGIN_ID = "tenant-auth";

export const DEFAULT_TENANT_HEADER = "x-tenant-id";

export const DEFAULT_SLUG_HEADER = "x-tenant-slug";

/** better-auth's own callback, where providers send people back to. */
export const CALLBACK_PATH = "/callback/:id";

export const SIGN_UP_PATH = "/sign-up/email";

/** Endpoints that set or change an email. */
export const namesAddress = (path = "") =>
  path === SIGN_UP_PATH || /change-email|email-change/.test(path);

export const VERIFY_EMAIL = "/verify-email";

/** better-auth's endpoints that one of ours stands for: the same endpoint, inside a tenant. */
export const TENANT_ROUTES: Readonly<Record<string, string>> = {
  "/tenant/sign-up/email": SIGN_UP_PATH,
  "/tenant/sign-in/email": "/sign-in/email",
  "/tenant/sign-in/social": "/sign-in/social",
  "/tenant/callback/:id": CALLBACK_PATH,
};

export const isTenantRoute = (path = "") => Object.hasOwn(TENANT_ROUTES, path);

/**
 * Endpoints of this plugin that are about a tenant, and run in none (R7). One by one: whatever else
 * there is under `/tenant/` is the application's own, and runs in the tenant that a request names.
 *
 * Guarded by "every endpoint of ours is known as one".
 */
const MANAGEMENT = [
  ...["create", "get", "list", "update", "delete", "sign-in-methods", "discover"],
  "user/reset-two-factor",
  ...["register", "list", "update", "check", "delete"].map((name) => `oauth-config/${name}`),
  ...["create", "list", "resend", "revoke", "get", "accept"].map((name) => `invitation/${name}`),
  ...["add", "verify", "list", "update", "remove"].map((name) => `domain/${name}`),
].map((path) => `/tenant/${path}`);

export const isManagement = (path = "") => MANAGEMENT.includes(path);

/** Endpoints of this plugin that manage tenants or stand for one of better-auth's. */
export const isOwnPath = (path?: string) => isManagement(path) || isTenantRoute(path);
