export const PLUGIN_ID = "tenant-auth";

export const DEFAULT_TENANT_HEADER = "x-tenant-id";

export const DEFAULT_SLUG_HEADER = "x-tenant-slug";

/** better-auth's own callback, where providers send people back to. */
export const CALLBACK_PATH = "/callback/:id";

export const SIGN_UP_PATH = "/sign-up/email";

/** Where somebody says which address they have, or want to have. */
export const namesAddress = (path = "") =>
  path === SIGN_UP_PATH || /change-email|email-change/.test(path);

/** Where somebody signs in, or asks for a link or a code to sign in with, and does nothing else. */
export const isSignIn = (path = "") =>
  /^\/sign-(in|up)\//.test(path) || ALSO_SIGN_IN.includes(path);

const ALSO_SIGN_IN = [
  "/magic-link/verify",
  "/one-tap/callback",
  "/siwe/verify",
  "/passkey/verify-authentication",
  "/phone-number/verify",
  "/email-otp/send-verification-otp",
];

export const VERIFY_EMAIL = "/verify-email";

/** Endpoints of this plugin that manage tenants or stand for one of better-auth's. */
export const isOwnPath = (path = "") => path.startsWith("/tenant/");

/** better-auth's endpoints that one of ours stands for: the same endpoint, inside a tenant. */
export const STANDS_FOR: Readonly<Record<string, string>> = {
  "/tenant/sign-up/email": SIGN_UP_PATH,
  "/tenant/sign-in/email": "/sign-in/email",
  "/tenant/sign-in/social": "/sign-in/social",
  "/tenant/callback/:id": CALLBACK_PATH,
};

export const isStandIn = (path = "") => Object.hasOwn(STANDS_FOR, path);
