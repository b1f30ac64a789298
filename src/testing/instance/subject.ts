import type { AuthContext, BetterAuthPlugin } from "better-auth";
import type { DBAdapter } from "better-auth/types";
import { isolationOf } from "../../core/isolation";
import type { ResolvedCoreOptions } from "../../core/options";
import { messageOf } from "../data/texts";

/** What `betterAuth()` returns, as far as the kit needs it. */
export interface AuthInstance {
  handler: (request: Request) => Promise<Response>;
  api: object;
  options: object;
  $context: Promise<unknown>;
}

/** The instance that is looked at. */
export interface Subject {
  handler(request: Request): Promise<Response>;
  api: Record<string, (call: object) => Promise<unknown>>;
  ctx: AuthContext;
  options: object;
  tenantOptions: ResolvedCoreOptions;
  plugins: BetterAuthPlugin[];
  /** The database adapter below the isolation. */
  raw: DBAdapter;
  /** Models whose rows belong to a tenant, and models whose rows every tenant may see. */
  confined: string[];
  shared: string[];
  basePath: string;
  origin: string;
}

export async function openSubject(auth: AuthInstance, caller: string): Promise<Subject> {
  const ctx = await (auth.$context as Promise<AuthContext>).catch((error) => {
    throw new Error(
      `${caller}: the instance could not be started: ${messageOf(error)}. Does the test have the environment variables of the application?`,
      { cause: error },
    );
  });
  const isolation = isolationOf(ctx);
  if (!isolation) {
    throw new Error(`${caller}: tenantAuth() is not among the plugins of this instance`);
  }
  const tenantOptions = isolation.options;
  return {
    handler: (request) => auth.handler(request),
    api: auth.api as Subject["api"],
    ctx,
    options: auth.options,
    tenantOptions,
    plugins: ctx.options.plugins ?? [],
    raw: isolation.unscoped,
    confined: isolation.models.filter((model) => ctx.tables[model]),
    // Signing keys of the application, and counters of requests, have no owner.
    shared: [...tenantOptions.sharedModels, "jwks", "rateLimit", "oauthClientAssertion"],
    ...addressOf(ctx),
  };
}

/** Where the instance answers; an address that goes by the request may be any that it allows. */
function addressOf({ baseURL, options }: AuthContext) {
  const isFixed = URL.canParse(baseURL);
  const { pathname, origin } = new URL(isFixed ? baseURL : fallbackOf(options));
  const isWhole = isFixed || pathname !== "/";
  const basePath = isWhole ? pathname : (options.basePath ?? "/api/auth");
  return { origin, basePath: basePath.replace(/\/$/, "") };
}

function fallbackOf({ baseURL }: AuthContext["options"]): string {
  if (typeof baseURL !== "object") return "http://localhost:3000";
  if (baseURL.fallback) return baseURL.fallback;
  const { allowedHosts, protocol } = baseURL;
  const [first = ""] = allowedHosts;
  const host = allowedHosts.find((pattern) => !pattern.includes("*"));
  const isPlain = protocol === "http" || /\blocalhost\b/.test(first);
  return `${isPlain ? "http" : "https"}://${host ?? withoutStars(first)}`;
}

/** Where every address is a tenant's, the platform has none: this one stands for it. */
export const NO_TENANT = "kit-no-tenant";

/** A host that a pattern allows: "acme.localhost:3000" for "*.localhost:*". */
export const withoutStars = (pattern: string) =>
  pattern.replace(/:\*$/, ":3000").replaceAll("*", NO_TENANT) || "localhost:3000";

/** The model behind the name of a model or of its table. */
export function modelFinder({ ctx }: Pick<Subject, "ctx">) {
  const models = new Map(
    Object.entries(ctx.tables).flatMap(([model, { modelName }]) =>
      [model, `${model}s`, modelName, `${modelName}s`].map((name) => [name, model] as const),
    ),
  );
  return (name: string) => models.get(name);
}
