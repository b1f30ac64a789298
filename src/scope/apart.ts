import {
  type AuthEndpointContext,
  runWithAdapter,
  runWithEndpointContext,
} from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { router } from "better-auth/api";
import { currentEndpoint, isOfAnother } from "./endpoint";
import { commonScope, currentTransaction, runInScope } from "./scope";

/*
 * Several instances in one process: what an endpoint of one asks another is none of the request
 * around it. The tenant there may be anybody's here, where ids are numbers, and its transaction is
 * one of another database. Loaded with the first such question.
 */

/**
 * Runs something as a call to this instance that carries nothing, as from a job. Where it is an
 * endpoint of this instance that is running, it stays a part of that endpoint.
 */
export async function runApart<T>(context: AuthContext, run: () => T): Promise<Awaited<T>> {
  const around = currentEndpoint()?.context;
  if (around && !isOfAnother(around, context)) {
    hideTransaction();
    return await run();
  }
  const isForeign = isOfAnother(currentTransaction(), context);
  const runHere = async () =>
    await (isForeign ? runWithAdapter(context.adapter, async () => await run()) : run());
  const endpoint = { context } as AuthEndpointContext;
  return await runWithEndpointContext(endpoint, () => runInScope(commonScope(), runHere));
}

/** Answers a request to this instance's handler. The context is that request's own. */
export function answerApart(request: Request, ctx: AuthContext): Promise<Response> {
  // It has been counted.
  ctx.rateLimit = { ...ctx.rateLimit, enabled: false };
  return runApart(ctx, () => router(ctx, ctx.options).handler(request));
}

/**
 * better-auth gives the adapter of the request around, and its transaction, to every endpoint that
 * is called in it, of whichever instance. From here on only endpoints of its own instance see them:
 * everybody else gets the adapter that they would have outside, and starts transactions of their own.
 *
 * Guarded by "a current adapter that is hidden is none, and its transaction is over".
 */
function hideTransaction(): void {
  const current = currentTransaction();
  if (!current || Object.getOwnPropertyDescriptor(current, "adapter")?.get) return;
  const { adapter, isTransactionActive } = current;
  const isSeen = () => !isOfAnother(currentEndpoint()?.context, { adapter });
  Object.defineProperties(current, {
    adapter: { get: () => (isSeen() ? adapter : undefined) },
    isTransactionActive: { get: () => isSeen() && isTransactionActive },
  });
}
