import type { AuthContext } from "better-auth";
import { router } from "better-auth/api";
import { borderOf } from "../border/border";
import type { Endpoint } from "../scope/endpoint";
import { notes, runInScope } from "../scope/scope";

/**
 * A request that a hook of one instance sends to the handler of another is a request of its own:
 * the tenant around it is none of this instance's, even if it has the same number. better-auth
 * would have them share what a request knows. Undefined for a request from the same instance, which
 * stays in the tenant of the one around it.
 */
export async function answerApart(
  request: Request,
  ctx: AuthContext,
): Promise<Response | undefined> {
  const { context } = notes().endpoint as Endpoint;
  if (borderOf(context.adapter) === borderOf(ctx.adapter)) return undefined;
  // This context is the request's own, and the request has been counted.
  ctx.rateLimit = { ...ctx.rateLimit, enabled: false };
  return runInScope({ kind: "pending" }, () => router(ctx, ctx.options).handler(request));
}
