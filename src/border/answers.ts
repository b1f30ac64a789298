import type { HookEndpointContext } from "better-auth";
import { type AfterHook, type BeforeHook, lazy, silentHook } from "../framework";
import { hasTakenOut, settledScope, takeOutAgain } from "../scope/endpoint";

const body = lazy(() => import("../scope/body"));

/** Where it is not known yet where a request runs, its session may still put it into a tenant. */
const isStream = (answer: unknown): answer is Response | ReadableStream =>
  (answer instanceof Response || answer instanceof ReadableStream) &&
  settledScope()?.tenantId !== null;

/**
 * R3: what the body of an answer is made from is read inside the request, also where somebody else
 * reads the body after it.
 */
export const answerInside: AfterHook = {
  matcher: ({ context }) => isStream(context.returned),

  handler: silentHook(async ({ context }) =>
    (await body()).readHere(context.returned as Response | ReadableStream),
  ),
};

type Result = { response?: unknown } | undefined;

/** What better-auth lets a hook change of the call that it runs before. */
type HandedBack = { context?: { headers?: unknown } };

async function withoutTakenOut(ctx: never, result: Result): Promise<Result> {
  const { context } = (result?.response ?? {}) as HandedBack;
  const handedBack = context?.headers instanceof Headers ? context.headers : undefined;
  const headers = await takeOutAgain(ctx, handedBack);
  return headers ? { ...result, response: { context: { ...context, headers } } } : result;
}

/** The same for a hook that answers in the place of an endpoint, or hands headers back. */
export const answeringInside = (hook: BeforeHook) => ({
  matcher: (ctx: HookEndpointContext) => hook.matcher(ctx),
  handler: (async (ctx: never) => {
    const given = (await hook.handler(ctx)) as Result;
    const result = hasTakenOut(ctx) ? await withoutTakenOut(ctx, given) : given;
    if (!isStream(result?.response)) return result;
    return { ...result, response: (await body()).readHere(result.response) };
  }) as BeforeHook["handler"],
});
