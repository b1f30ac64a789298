import type { AuthContext } from "better-auth";
import { PLUGIN_ID } from "./constants";
import { notStarted } from "./errors";
import type { ResolvedOptions } from "./options";

/** Loads what this application needs. The changes themselves cannot wait for it. */
export async function loadParts(
  { options: { secondaryStorage, plugins }, logger }: AuthContext,
  { resolveTenantId, sessionCookies }: ResolvedOptions,
) {
  if (!plugins?.some(({ id }) => id === PLUGIN_ID)) throw notStarted();
  // Another plugin may bring what is not there yet.
  const isOpen = plugins?.some(({ id, init }) => id !== PLUGIN_ID && init);
  const has = (ids: string) => plugins?.some(({ id }) => ids.split(" ").includes(id));
  const [storage, addresses, cookieNames, enterprise, packages, trace] = await Promise.all([
    secondaryStorage || isOpen ? import("./border/storage") : undefined,
    resolveTenantId ? import("./naming/addresses") : undefined,
    sessionCookies === "per-tenant" ? import("./border/cookie-names") : undefined,
    has("sso scim") ? import("./enterprise") : undefined,
    has("expo electron stripe oauth-provider oauth-proxy oauth-popup")
      ? import("./packages")
      : undefined,
    logger.level === "debug" ? import("./naming/trace") : undefined,
  ]);
  return {
    ...storage,
    ...addresses,
    ...cookieNames,
    ...enterprise,
    ...packages,
    ...trace,
  };
}
