import type { HookEndpointContext } from "better-auth";
import { BetterAuthError } from "better-auth";

/** The error for an answer of the application's resolver that says nothing about a tenant. */
export function notUnderstood({ context, path }: HookEndpointContext, answer: unknown) {
  const message = `tenantAuth(): resolveTenantId answered ${describe(answer)} for ${path}. It may answer the id of a tenant (a string${
    context.options.advanced?.database?.generateId === "serial" ? " or a whole number" : ""
  }), { slug }, false for no tenant, or nothing.`;
  context.logger.error(message);
  return new BetterAuthError(message);
}

/** A value in words, for messages about what was not understood. */
function describe(value: unknown): string {
  if (value === null || value === undefined || typeof value === "number") return String(value);
  if (typeof value === "string") return JSON.stringify(value.slice(0, 64));
  return Array.isArray(value) ? "an array" : `a value of type ${typeof value}`;
}
