import { type AuthEndpointContext, runWithEndpointContext } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { router } from "better-auth/api";
import { commonScope, runInScope } from "./scope";

/*
 * Several instances in one process: what an endpoint of one asks another is none of the request
 * around it. The tenant there may be anybody's here, where ids are numbers. Loaded with the first
 * such question.
 */

/** Runs something as a call to this instance that carries nothing, as from a job. */
export async function runApart<T>(context: AuthContext, run: () => Promise<T>): Promise<T> {
  const endpoint = { context } as AuthEndpointContext;
  return await runWithEndpointContext(endpoint, () => runInScope(commonScope(), run));
}

/** Answers a request to this instance's handler. The context is that request's own. */
export function answerApart(request: Request, ctx: AuthContext): Promise<Response> {
  // It has been counted.
  ctx.rateLimit = { ...ctx.rateLimit, enabled: false };
  return runApart(ctx, () => router(ctx, ctx.options).handler(request));
}
