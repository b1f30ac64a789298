import { tryGetCurrentAuthEndpointContext } from "@better-auth/core/context";
import type { BetterAuthPlugin, GenericEndpointContext, HookEndpointContext } from "better-auth";
import { isAPIError } from "better-auth/api";
import type { EndpointOptions, StrictEndpoint } from "better-call";

/*
 * Hooks and endpoints without better-auth's helpers around them. A function that relies on how
 * better-auth calls it names the test that checks this, if there is one.
 */

type PluginHooks = NonNullable<BetterAuthPlugin["hooks"]>;

export type BeforeHook = NonNullable<PluginHooks["before"]>[number];

export type AfterHook = NonNullable<PluginHooks["after"]>[number];

/** The plugin's own hooks, by when they run. */
export interface Hooks {
  /** Run first: find the tenant of the request. */
  resolve: BeforeHook[];
  /** Run when the tenant is known. */
  entered: BeforeHook[];
  /** After the before-hooks of all other plugins. */
  beforeEndpoint: BeforeHook[];
  /** Before the after-hooks of all other plugins. */
  afterEndpoint: AfterHook[];
  afterPlugins: AfterHook[];
}

/**
 * Creates a hook without `createAuthMiddleware`, which sets up three contexts. That takes longer
 * than a hook that returns nothing.
 *
 * Guarded by "a hook may be a plain function: one that answers nothing lets the request pass".
 */
export function plainHook(run: (ctx: HookEndpointContext) => unknown) {
  const hook = async (ctx: HookEndpointContext) => ({ response: await run(ctx) });
  return Object.assign(hook, { options: {} }) as unknown as BeforeHook["handler"];
}

/** Matches calls of the endpoints with these paths. */
export const onPaths =
  (...paths: string[]) =>
  ({ path = "" }: { path?: string }) =>
    paths.includes(path);

/**
 * Combines hooks into one. Only the last one may change the call by returning `{ context }`; what
 * others return there is dropped.
 */
export function combineBeforeHooks(hooks: BeforeHook[]): BeforeHook & { hooks: BeforeHook[] } {
  const run = async (given: HookEndpointContext) => {
    let ctx = given;
    for (const [index, { matcher, handler }] of hooks.entries()) {
      if (!matcher(ctx)) continue;
      const result = (await handler(ctx as never)) as { response?: unknown } | undefined;
      const isAnswer = result?.response !== undefined && !("context" in Object(result.response));
      if (isAnswer || index === hooks.length - 1) return result;
      // better-auth gives each hook a copy of the call. This hook may have changed the original.
      const current = tryGetCurrentAuthEndpointContext() ?? ctx;
      ctx = { ...current, returnHeaders: true } as HookEndpointContext;
    }
    return { response: undefined };
  };
  const handler = Object.assign(run, { options: {} }) as unknown as BeforeHook["handler"];
  return { matcher: () => true, handler, hooks };
}

/**
 * Combines after-hooks into one: runs those of `first` as better-auth would, then `last`.
 *
 * Guarded by "hooks of the application are its own to better-auth and to plugins, and run in the tenant".
 */
export function combineAfterHooks(
  first: AfterHook[],
  last: AfterHook["handler"],
): AfterHook["handler"] {
  const handler = async (ctx: HookEndpointContext) => {
    for (const hook of first) {
      if (hook.matcher(ctx)) keepAnswer(ctx, await answerOf(hook, ctx));
    }
    return last(ctx as never);
  };
  return Object.assign(handler, { options: {} }) as unknown as AfterHook["handler"];
}

type HookAnswer = { response?: unknown; headers?: Headers | null } | undefined;

async function answerOf({ handler }: AfterHook, ctx: HookEndpointContext): Promise<HookAnswer> {
  try {
    return (await handler(ctx as never)) as HookAnswer;
  } catch (error) {
    if (!isAPIError(error)) throw error;
    return { response: error, headers: new Headers(error.headers) };
  }
}

function keepAnswer({ context }: HookEndpointContext, answer: HookAnswer): void {
  if (answer?.response !== undefined) context.returned = answer.response;
  if (!answer?.headers) return;
  context.responseHeaders ??= new Headers();
  for (const [name, value] of answer.headers) {
    if (name === "set-cookie") context.responseHeaders.append(name, value);
    else context.responseHeaders.set(name, value);
  }
}

/** What an endpoint returns if better-auth asks for the response, headers and status. */
export type Answer<Response> = {
  response: Response;
  headers?: Headers | undefined;
  status?: number | undefined;
};

/**
 * Defines an endpoint that runs another endpoint. better-auth calls `run` directly: the inner
 * endpoint checks the input and creates the response.
 *
 * Guarded by "an endpoint may be a plain function with a path and options".
 */
export function defineTenantEndpoint<
  Path extends string,
  const Options extends EndpointOptions,
  Response,
>(path: Path, options: Options, run: (ctx: GenericEndpointContext) => Promise<Answer<Response>>) {
  return Object.assign(run, { path, options }) as unknown as StrictEndpoint<
    Path,
    Options,
    Response
  >;
}
