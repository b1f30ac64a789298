import type { HookEndpointContext } from "better-auth";
import { cameTo } from "../scope/endpoint";

/*
 * R12 for the middlewares of plugins. Loaded by the first request to one of our sign-in endpoints
 * where a plugin has middlewares.
 */

/** Middlewares of plugins on the path that a request came to guard it as well. */
export async function runMiddlewares(ctx: HookEndpointContext): Promise<Response | undefined> {
  const path = cameTo(ctx);
  if (path === undefined) return undefined;
  for (const { middlewares = [] } of ctx.context.options.plugins ?? []) {
    for (const { path: pattern, middleware } of middlewares) {
      if (!matches(pattern, path) || matches(pattern, ctx.path ?? "")) continue;
      // In a hook, better-auth asks for headers along with every answer: here it is the answer alone.
      const input = { ...ctx, path, returnHeaders: false } as Parameters<typeof middleware>[0];
      const answer = await middleware(input);
      if (answer instanceof Response) return answer;
    }
  }
  return undefined;
}

/** As better-auth's router compares them: a part by "*" or ":name", everything below by "**". */
function matches(pattern: string, path: string): boolean {
  const [first = "", ...rest] = pattern.split("/");
  const [part, ...below] = path.split("/");
  if (first.startsWith("**")) return true;
  if (first !== part && !/^[*:]/.test(first)) return false;
  return below.length === 0
    ? rest.length === 0 || rest[0]?.startsWith("**") === true
    : matches(rest.join("/"), below.join("/"));
}
