import type { BetterAuthPlugin, HookEndpointContext } from "better-auth";
import { createEndpoint, createRouter } from "better-call";
import { cameTo } from "../scope/endpoint";

/*
 * R12 for the middlewares of plugins. Loaded by the first request to one of our sign-in endpoints
 * where a plugin has middlewares.
 */

type Middleware = NonNullable<BetterAuthPlugin["middlewares"]>[number];

/** Middlewares of plugins on the path that a request came to guard it as well. */
export async function runMiddlewares(ctx: HookEndpointContext): Promise<Response | undefined> {
  const outer = cameTo(ctx);
  if (outer === undefined) return undefined;
  const path = asSent(outer, ctx);
  const { plugins = [] } = ctx.context.options;
  const all = plugins.flatMap(({ middlewares = [] }) => middlewares);
  const haveRun = await matching(all, asSent(ctx.path ?? "", ctx));
  for (const [one, params] of await matching(all, path)) {
    if (haveRun.has(one)) continue;
    // In a hook, better-auth asks for headers along with every answer: here it is the answer alone.
    const input = { ...ctx, path, params, returnHeaders: false };
    const answer = await one.middleware(input as Parameters<typeof one.middleware>[0]);
    if (answer instanceof Response) return answer;
  }
  return undefined;
}

/** A callback names its provider in the path. */
const asSent = (path: string, { params }: HookEndpointContext) =>
  path.replace(":id", (id) => params?.id ?? id);

/**
 * The middlewares for a path, with what their patterns find in it: those that a router of
 * better-auth's own kind runs. A reading of the patterns by us would let a request past a guard
 * wherever it differs.
 */
async function matching(middlewares: Middleware[], path: string) {
  const found = new Map<Middleware, unknown>();
  const routerMiddleware = middlewares.map((one) => ({
    path: one.path,
    middleware: async ({ params }: { params: unknown }) => void found.set(one, params),
  })) as never;
  const any = createEndpoint("/**", { method: "GET" }, async () => null);
  const router = createRouter({ any }, { openapi: { disabled: true }, routerMiddleware });
  await router.handler(new Request(`http://localhost${path}`));
  return found;
}
