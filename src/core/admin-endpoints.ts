import type { AuthContext } from "better-auth";
import { isOutermost } from "./endpoint";
import type { Endpoint } from "./request";

/**
 * What an endpoint of better-auth's admin plugin acts on. `a place` is the tenant or platform of a
 * new user.
 */
export type AdminTarget = "everybody" | "a user" | "a session" | "a place" | "oneself";

/**
 * All endpoints of better-auth's admin plugin, by path. An endpoint that a new version adds has no
 * cross-tenant access until it is listed here.
 *
 * Guarded by "the admin plugin has the endpoints that are written down, and checks the caller at every one".
 */
export const ADMIN_ENDPOINTS: Readonly<Record<string, AdminTarget>> = Object.fromEntries(
  Object.entries({
    everybody: "list-users",
    "a user":
      "get-user set-role update-user list-user-sessions ban-user unban-user impersonate-user revoke-user-sessions remove-user set-user-password",
    "a session": "revoke-user-session",
    "a place": "create-user",
    oneself: "has-permission stop-impersonating",
  }).flatMap(([target, names]) =>
    names.split(" ").map((name) => [`/admin/${name}`, target as AdminTarget]),
  ),
);

/** Returns better-auth's admin plugin. Ignores a plugin `admin` that lacks one of these paths. */
export function adminPlugin({ options }: AuthContext) {
  const plugin = options.plugins?.find(({ id }) => id === "admin");
  const paths = new Set(Object.values(plugin?.endpoints ?? {}).map(({ path }) => path));
  return Object.keys(ADMIN_ENDPOINTS).every((path) => paths.has(path)) ? plugin : undefined;
}

/**
 * Returns what an admin endpoint acts on. Returns undefined for every other endpoint, and for an
 * admin endpoint that a request calls through `auth.api`.
 */
export function adminTarget(endpoint: Endpoint | undefined): AdminTarget | undefined {
  if (!endpoint?.path || !Object.hasOwn(ADMIN_ENDPOINTS, endpoint.path)) return undefined;
  return isOutermost(endpoint) && adminPlugin(endpoint.context)
    ? ADMIN_ENDPOINTS[endpoint.path]
    : undefined;
}
