export const PLUGIN_ID = "tenant-auth";

export const DEFAULT_TENANT_HEADER = "x-tenant-id";

export const DEFAULT_SLUG_HEADER = "x-tenant-slug";

/** The path of better-auth's OAuth callback. */
export const CALLBACK_PATH = "/callback/:id";

export const SIGN_UP_PATH = "/sign-up/email";

/** Returns whether an endpoint sets or changes an email. */
export const changesEmail = (path = "") =>
  path === SIGN_UP_PATH || /change-email|email-change/.test(path);

export const VERIFY_EMAIL = "/verify-email";

/** Tenant routes, and the endpoints of better-auth that they run inside a tenant. */
export const TENANT_ROUTES: Readonly<Record<string, string>> = {
  "/tenant/sign-up/email": SIGN_UP_PATH,
  "/tenant/sign-in/email": "/sign-in/email",
  "/tenant/sign-in/social": "/sign-in/social",
  "/tenant/callback/:id": CALLBACK_PATH,
};

export const isTenantRoute = (path = "") => Object.hasOwn(TENANT_ROUTES, path);

/**
 * Management endpoints: they act on a tenant, but run in no tenant (R7). All are listed, because an
 * application may add other endpoints under `/tenant/`, which run in the tenant that a request
 * names.
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

export const isOwnPath = (path?: string) => isManagement(path) || isTenantRoute(path);
