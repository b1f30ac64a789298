import { tryGetCurrentAuthEndpointContext } from "@better-auth/core/context";
import { appendQueryParams } from "@better-auth/core/utils/url";
import type {
  AuthContext,
  BetterAuthPlugin,
  GenericEndpointContext,
  HookEndpointContext,
} from "better-auth";
import { APIError } from "better-auth/api";
import type { DBFieldAttribute } from "better-auth/db";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import type { EndpointOptions, StrictEndpoint } from "better-call";
import * as z from "zod";

/*
 * What this plugin makes by hand that better-auth would make. Each piece leans on how better-auth
 * calls it, and names the test in `test/framework-contract.servers.test.ts` that guards that.
 */

type PluginHooks = NonNullable<BetterAuthPlugin["hooks"]>;

export type BeforeHook = NonNullable<PluginHooks["before"]>[number];
export type AfterHook = NonNullable<PluginHooks["after"]>[number];

/** The plugin's own hooks, by when they run. */
export interface Hooks {
  /** Find out which tenant the request runs in. */
  resolve: BeforeHook[];
  /** The tenant is known. */
  entered: BeforeHook[];
  /** After the before-hooks of all other plugins. */
  beforeEndpoint: BeforeHook[];
  /** Before the after-hooks of all other plugins. */
  afterEndpoint: AfterHook[];
  afterPlugins: AfterHook[];
}

/**
 * A hook as better-auth calls it, without `createAuthMiddleware` around it: that one sets up three
 * contexts, which takes longer than a hook that returns nothing.
 *
 * Guarded by "a hook may be a plain function: one that answers nothing lets the request pass".
 */
export function silentHook(run: (ctx: HookEndpointContext) => unknown) {
  const hook = (ctx: HookEndpointContext) =>
    (run(ctx) as Promise<unknown> | undefined)?.then((response) => ({ response })) ?? NOTHING;
  return Object.assign(hook, { options: {} }) as unknown as BeforeHook["handler"];
}

const NOTHING = Promise.resolve({ response: undefined });

/** Several hooks as one, which waits only for those that have something to wait for. */
export function inOrder(hooks: BeforeHook[]): BeforeHook & { hooks: BeforeHook[] } {
  const runFrom = (start: number, ctx: HookEndpointContext): Promise<unknown> => {
    for (const [index, { matcher, handler }] of hooks.entries()) {
      if (index < start || !matcher(ctx)) continue;
      const running = handler(ctx as never) as Promise<{ response?: unknown } | undefined>;
      if (running === NOTHING) continue;
      return running.then((result) => {
        if (result?.response !== undefined) return result;
        // The hook may have changed the call, of which better-auth gives each hook a copy.
        const current = tryGetCurrentAuthEndpointContext() ?? ctx;
        return runFrom(index + 1, { ...current, returnHeaders: true } as HookEndpointContext);
      });
    }
    return NOTHING;
  };
  const handler = Object.assign((ctx: HookEndpointContext) => runFrom(0, ctx), { options: {} });
  return { matcher: () => true, handler: handler as unknown as BeforeHook["handler"], hooks };
}

/** Goes on with a value, at once if it is there already: most requests have nothing to wait for. */
export const after = <T, R>(value: T | Promise<T>, run: (value: T) => R | Promise<R>) =>
  value instanceof Promise ? value.then(run) : run(value);

/** What better-auth expects of an endpoint when it asks for everything. */
export type Answer<Response> = {
  response: Response;
  headers?: Headers | undefined;
  status?: number | undefined;
};

/**
 * An endpoint that stands for another one. It is called by better-auth as it is: the input is
 * checked, and the answer made, by the endpoint inside.
 *
 * Guarded by "an endpoint may be a plain function with a path and options".
 */
export function tenantRoute<Path extends string, const Options extends EndpointOptions, Response>(
  path: Path,
  options: Options,
  run: (ctx: GenericEndpointContext) => Promise<Answer<Response>>,
) {
  return Object.assign(run, { path, options }) as unknown as StrictEndpoint<
    Path,
    Options,
    Response
  >;
}

/** Keeps what is made of an object, from the first time it is needed. */
export function oncePerObject<Key extends object, Made>(make: (key: Key) => Made) {
  const known = new WeakMap<Key, Made>();
  return (key: Key): Made => {
    const made = known.get(key) ?? make(key);
    known.set(key, made);
    return made;
  };
}

export const redirect = (location: string) => new APIError("FOUND", undefined, { location });

/** A failed callback leads to where the flow wanted its errors, else to better-auth's error page. */
export function errorRedirect(
  context: AuthContext,
  error: string,
  errorURL?: string,
  description?: string,
) {
  const fallback = context.options.onAPIError?.errorURL ?? `${context.baseURL}/error`;
  const params = { error, ...(description && { error_description: description }) };
  return redirect(appendQueryParams(errorURL ?? fallback, new URLSearchParams(params)));
}

/** Unchecked input as text. Non-string input becomes "". */
export const textOf = (sent: unknown) =>
  typeof sent === "string" || typeof sent === "number" ? String(sent) : "";

/** Undefined for anything but a text of JSON. */
export function parseJSON(text: unknown): unknown {
  try {
    return typeof text === "string" ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

/** Text that cannot be decoded stays as it is. */
export function decodeComponent(text: string): string {
  try {
    return text.includes("%") ? decodeURIComponent(text) : text;
  } catch {
    return text;
  }
}

/** Undefined for text that is not base64url. */
export function decodeBase64url(text: string): string | undefined {
  try {
    return new TextDecoder().decode(z.util.base64urlToUint8Array(text));
  } catch {
    return undefined;
  }
}

/** The claims of a JWT. Does not verify the signature: callers have done that. */
export const claimsIn = (token: unknown): Record<string, unknown> =>
  Object(parseJSON(decodeBase64url(textOf(token).split(".")[1] ?? "")));

/** Drizzle wraps the driver's error into one whose message has all the values in it. */
export function rootCause(error: unknown): DatabaseError {
  const { cause } = error as { cause?: unknown };
  return cause instanceof Error ? rootCause(cause) : (error as DatabaseError);
}

type DatabaseError = Partial<Record<"name" | "message" | "constraint" | "code", string>> &
  Partial<Record<"errcode" | "errno" | "number", number>>;

/** The value of a field that is to be stored as it is. There may be several copies of this package. */
const TRANSFORMED = Symbol.for("better-auth-tenant:transformed");

export const asTransformed = (value: string): object => ({ [TRANSFORMED]: value });

/**
 * Has the adapter store a transformed value without the field's `transform`, which would change the
 * tenant prefix. The adapter looks at the object that the plugin, or the application, has given.
 *
 * Guarded by "the adapter transforms a value with the function that the schema has".
 */
export function withoutTransform({ transform }: DBFieldAttribute): void {
  const input = transform?.input;
  if (!input || passing.has(input)) return;
  transform.input = (value: unknown) =>
    (value as { [TRANSFORMED]?: string } | undefined)?.[TRANSFORMED] ?? input(value as string);
  passing.add(transform.input);
}

const passing = new WeakSet<object>();

/** Rejects if there is no result in time. */
export async function within<T>(ms: number, running: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${ms} ms`)), ms);
  });
  return Promise.race([running, late]).finally(() => clearTimeout(timer));
}

/** Writes into a map, and removes the oldest entry if there are too many. */
export const boundedMap =
  <T>(most: number) =>
  (entries: Map<string, T>, key: string, value: T): void => {
    const [oldest] = entries.keys();
    if (oldest !== undefined && entries.size >= most && !entries.has(key)) entries.delete(oldest);
    entries.set(key, value);
  };

/**
 * A bounded map whose entries expire. Their time begins before the read they come from, and a read
 * during which an entry is deleted is not kept: it may be outdated.
 */
export function expiringMap<T>(most: number, ms: number) {
  const entries = new Map<string, { value: T; until: number }>();
  const set = boundedMap<{ value: T; until: number }>(most);
  let deletions = 0;
  return {
    get(key: string): T | undefined {
      const entry = entries.get(key);
      const left = entry ? entry.until - Date.now() : 0;
      // More is left than there was: the clock was set back, and entries would last that much longer.
      return left > 0 && left <= ms ? entry?.value : undefined;
    },
    /** Call this before a read, and the function it returns with the result. */
    startRead(): (key: string, value: T) => void {
      const before = deletions;
      const until = Date.now() + ms;
      return (key, value) => {
        if (deletions === before) set(entries, key, { value, until });
      };
    },
    delete(key: string): void {
      deletions++;
      entries.delete(key);
    },
  };
}

/**
 * All rows of a table, a page at a time, by their ids: rows that come and go shift no others. By
 * `tenantId`, at least one row of each tenant.
 */
export async function* pagesOf<Stored extends { id?: string; tenantId?: string | null }>(
  adapter: Pick<DBTransactionAdapter, "findMany">,
  model: string,
  size: number,
  select?: string[],
  { by = "id", after }: { by?: "id" | "tenantId"; after?: string | undefined } = {},
): AsyncGenerator<Stored[]> {
  let last: string | null | undefined = after;
  for (;;) {
    const rows: Stored[] = await adapter.findMany<Stored>({
      model,
      where: last === undefined ? [] : [{ field: by, operator: "gt", value: last }],
      sortBy: { field: by, direction: "asc" },
      limit: size,
      ...(select && { select }),
    });
    if (rows.length) yield rows;
    if (rows.length < size) return;
    last = rows.at(-1)?.[by];
  }
}

/** A condition for each column; a list stands for any of its values. */
export const clauses = (columns: Record<string, string | boolean | string[]>): Where[] =>
  Object.entries(columns).map(([field, value]) => ({
    field,
    value,
    operator: Array.isArray(value) ? "in" : "eq",
  }));

export const toHex = (bytes: ArrayBuffer) => z.util.uint8ArrayToHex(new Uint8Array(bytes));

/** Replaces methods of an object in place. Returns false if that is not possible. */
export function replaceMethods(target: object, methods: object): boolean {
  try {
    Object.assign(target, methods);
  } catch {
    return false;
  }
  return Object.entries(methods).every(([name, method]) => Reflect.get(target, name) === method);
}
