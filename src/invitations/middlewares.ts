import type { BetterAuthPlugin, HookEndpointContext } from "better-auth";
import { createEndpoint, createRouter } from "better-call";

type Middleware = NonNullable<BetterAuthPlugin["middlewares"]>[number];

/** R12: middlewares of plugins that guard a path of better-auth guard what runs its endpoint. */
export async function runMiddlewares(
  ctx: HookEndpointContext,
  path: string,
): Promise<Response | undefined> {
  const { plugins = [] } = ctx.context.options;
  const all = plugins.flatMap(({ middlewares = [] }) => middlewares);
  if (!all.length) return undefined;
  const haveRun = await matching(all, ctx.path ?? "");
  for (const [one, params] of await matching(all, path)) {
    if (haveRun.has(one)) continue;
    // In a hook, better-auth asks for headers along with every response: here it is the response alone.
    const input = { ...ctx, path, params, returnHeaders: false };
    const response = await one.middleware(input as Parameters<typeof one.middleware>[0]);
    if (response instanceof Response) return response;
  }
  return undefined;
}

/** As a router of better-auth's own kind finds them: reading the patterns here could miss a guard. */
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
