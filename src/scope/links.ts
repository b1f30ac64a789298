import type { AuthContext, HookEndpointContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import type { AfterHook, BeforeHook } from "./hook";
import { createScope, currentScope, getTenantId } from "./scope";
import { looksSealed, seal, unseal } from "./seal";
import type { EnterScope } from "./settle";

/**
 * Seals the token of every link that better-auth hands to a mail sender inside a tenant: in its
 * own options, and in the options of its plugins, which keep the object that they were given.
 */
export function sealLinks(ctx: AuthContext): void {
  const { emailVerification, emailAndPassword, user, plugins = [] } = ctx.options;
  if (emailVerification) ctx.options.emailVerification = withSealedLinks(ctx, emailVerification);
  if (emailAndPassword) ctx.options.emailAndPassword = withSealedLinks(ctx, emailAndPassword);
  if (user) {
    ctx.options.user = {
      ...user,
      changeEmail: user.changeEmail && withSealedLinks(ctx, user.changeEmail),
      deleteUser: user.deleteUser && withSealedLinks(ctx, user.deleteUser),
    };
  }
  for (const { options } of plugins) {
    if (options) Object.assign(options, withSealedLinks(ctx, options));
  }
}

type Sender = (data: unknown, ...rest: unknown[]) => unknown;
const sealing = new WeakSet<Sender>();

function withSealedLinks<Options extends object>(ctx: AuthContext, options: Options): Options {
  const senders = Object.entries(options)
    .filter(([name, value]) => name.startsWith("send") && typeof value === "function")
    .map(([name, send]) => [name, sealingSender(ctx, send)]);
  return { ...options, ...Object.fromEntries(senders) };
}

function sealingSender(ctx: AuthContext, send: Sender): Sender {
  if (sealing.has(send)) return send;
  const sender: Sender = async (data, ...rest) => send(await withSealedToken(ctx, data), ...rest);
  sealing.add(sender);
  return sender;
}

async function withSealedToken(ctx: AuthContext, data: unknown): Promise<unknown> {
  const tenantId = getTenantId();
  const { url, token } = (data ?? {}) as { url?: unknown; token?: unknown };
  if (tenantId === null || typeof url !== "string" || typeof token !== "string") return data;
  const sealed = await seal(ctx, token, tenantId);
  return { ...(data as object), url: url.replaceAll(token, sealed), token: sealed };
}

const VERIFY_EMAIL = "/verify-email";

/**
 * Opens a sealed token wherever a request carries one, and puts the request into its tenant. In
 * a request that names another tenant the token stays sealed, which is no token at all.
 */
export function openSealedToken(enter: EnterScope): BeforeHook {
  return {
    matcher: (ctx) =>
      !ctx.path?.startsWith("/tenant/") &&
      (ctx.path === VERIFY_EMAIL || PLACES.some((place) => looksSealed(tokenIn(ctx, place)))),

    handler: createAuthMiddleware(async (ctx) => {
      const places = PLACES.filter((place) => looksSealed(tokenIn(ctx, place)));
      const [sealed, ...others] = new Set(places.map((place) => String(tokenIn(ctx, place))));
      const opened = sealed && !others.length ? await unseal(ctx.context, sealed) : undefined;
      const scope = currentScope();
      // Whether the tenant still exists is not asked: if it does not, neither does what the token
      // stands for.
      const undecided = !scope || scope.byHost;
      if (sealed && opened && (undecided || scope.tenantId === opened.tenantId)) {
        const entered = undecided ? enter(createScope(opened.tenantId), ctx) : scope;
        const { token } = opened;
        entered.openedToken = { sealed, token };
        return { context: Object.fromEntries(places.map((place) => [place, { token }])) };
      }
      if (ctx.path !== VERIFY_EMAIL) return;
      // The token of this endpoint is better-auth's only credential that no row stands behind: a
      // signed e-mail address, good for whoever has that address, in whichever tenant. Only the
      // seal binds it to its tenant, and without a seal it is the platform's.
      if (!scope) enter(createScope(null), ctx);
      else if (scope.tenantId !== null) return { context: { query: { token: "" } } };
    }),
  };
}

/** Where better-auth's endpoints expect a token. */
const PLACES = ["query", "body", "params"] as const;

function tokenIn(ctx: HookEndpointContext, place: (typeof PLACES)[number]): unknown {
  return ctx[place]?.token;
}

/** A token that came in sealed goes on sealed: the reset link redirects to a page with its token. */
export const sealRedirectedToken: AfterHook = {
  matcher: () => Boolean(currentScope()?.openedToken),

  handler: createAuthMiddleware(async (ctx) => {
    const opened = currentScope()?.openedToken;
    const location = ctx.context.responseHeaders?.get("location");
    if (opened && location?.includes(opened.token)) {
      ctx.setHeader("location", location.replace(opened.token, opened.sealed));
    }
  }),
};
