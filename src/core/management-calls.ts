import type { AuthContext, BetterAuthPlugin } from "better-auth";
import { isolationOf } from "./isolation";

/*
 * Management endpoints act on the tenant that a call names, but do not run in it (R7): operators
 * call them from the platform, a tenant's administrators from their tenant. Features mark theirs in
 * the metadata, so other endpoints under `/tenant/`, which an application may add, run in the
 * tenant that a request names.
 */

/** The mark. All copies of this package share this symbol. */
const IS_MANAGEMENT = Symbol.for("better-auth-tenant:management");

/** The metadata of a management endpoint. `post` and `get` add it. */
export const MANAGEMENT: object = { [IS_MANAGEMENT]: true };

/** Returns the paths of all management endpoints. */
export const findManagementPaths = (plugins: BetterAuthPlugin[] = []): ReadonlySet<string> =>
  new Set(
    plugins
      .flatMap(({ endpoints }) => Object.values(endpoints ?? {}))
      .filter(({ options }) => IS_MANAGEMENT in (options?.metadata ?? {}))
      .map(({ path }) => path),
  );

/** Returns whether a call goes to a management endpoint. */
export const isManagement = ({ path = "", context }: { path?: string; context: AuthContext }) =>
  isolationOf(context)?.managementPaths.has(path) === true;
