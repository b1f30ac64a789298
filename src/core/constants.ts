export const PLUGIN_ID = "tenant-auth";

export const DEFAULT_TENANT_HEADER = "x-tenant-id";

export const DEFAULT_SLUG_HEADER = "x-tenant-slug";

/** The path of better-auth's OAuth callback. */
export const CALLBACK_PATH = "/callback/:id";

export const SIGN_UP_PATH = "/sign-up/email";

/** Matches the sign-up with an email, and the endpoints with which users change theirs. */
export const setsEmail = (path = "") =>
  path === SIGN_UP_PATH || /change-email|email-change/.test(path);

export const VERIFY_EMAIL_PATH = "/verify-email";

/** Tenant routes, and the endpoints of better-auth that they run inside a tenant. */
export const TENANT_ROUTES: Readonly<Record<string, string>> = {
  "/tenant/sign-up/email": SIGN_UP_PATH,
  "/tenant/sign-in/email": "/sign-in/email",
  "/tenant/sign-in/social": "/sign-in/social",
  "/tenant/callback/:id": CALLBACK_PATH,
};

export const isTenantRoute = (path = "") => Object.hasOwn(TENANT_ROUTES, path);
