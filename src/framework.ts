import { appendQueryParams } from "@better-auth/core/utils/url";
import type {
  AuthContext,
  BetterAuthPlugin,
  GenericEndpointContext,
  HookEndpointContext,
} from "better-auth";
import { APIError } from "better-auth/api";
import type { OAuthProvider } from "better-auth/oauth2";
import type { EndpointOptions, StrictEndpoint } from "better-call";

/*
 * What this plugin makes by hand that better-auth would make. Each piece leans on how better-auth
 * calls it, and names the test in `test/framework-contract.servers.test.ts` that guards that.
 */

type Hooks = NonNullable<BetterAuthPlugin["hooks"]>;

export type BeforeHook = NonNullable<Hooks["before"]>[number];
export type AfterHook = NonNullable<Hooks["after"]>[number];

/** The plugin's own hooks, by when they run. */
export interface OwnHooks {
  before: BeforeHook[];
  /** When everything that could name the tenant has done so. */
  afterNaming: BeforeHook[];
  /** Behind the hooks of all others. */
  beforeEndpoint: BeforeHook[];
  afterEndpoint: AfterHook[];
  afterPlugins: AfterHook[];
}

/**
 * A hook as better-auth calls it, without its middleware around it: that one sets up three
 * contexts for whatever a hook may answer, and takes longer than a hook that answers nothing.
 *
 * Guarded by "a hook may be a plain function: one that answers nothing lets the request pass".
 */
export function silentHook(run: (ctx: HookEndpointContext) => Promise<unknown> | undefined) {
  const hook = (ctx: HookEndpointContext) =>
    run(ctx)?.then((response) => ({ response })) ?? NOTHING;
  return Object.assign(hook, { options: {} }) as unknown as BeforeHook["handler"];
}

/** Where a hook had nothing to do, nobody waits for it. */
export const NOTHING = Promise.resolve({ response: undefined });

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
export function standIn<Path extends string, const Options extends EndpointOptions, Response>(
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

/**
 * A social provider that better-auth gets by calling a function, and what it reads without calling
 * it.
 *
 * Guarded by "a social provider may be a function, which is called when it is wanted".
 */
export function lateProvider(
  provide: () => Promise<Partial<OAuthProvider>>,
  given: Partial<OAuthProvider>,
): OAuthProvider {
  // A function has a name and a length of its own, which would stand in for the provider's.
  for (const key of Reflect.ownKeys(provide)) Reflect.deleteProperty(provide, key);
  return withChanges(given as OAuthProvider, provide as Partial<OAuthProvider>);
}

/** A provider as better-auth gets it: functions are called. */
export const resolved = async <Given extends OAuthProvider | undefined>(
  given: Given | (() => Promise<Given>),
): Promise<Given> => (typeof given === "function" ? given() : given);

/**
 * Somebody's object with something changed. Everything else is asked of the object itself, whenever
 * it is wanted: it may be frozen, have getters, or be an instance of a class. What it has from its
 * class is shown as its own, so that a copy has that as well.
 */
export const withChanges = <T extends object>(given: T, changes: Partial<T>): T =>
  new Proxy(changes as T, {
    get: (own, key) =>
      Object.hasOwn(own, key) || !(key in given) ? Reflect.get(own, key) : read(given, key),
    set: (own, key, value) => Reflect.set(own, key, value),
    has: (own, key) => Object.hasOwn(own, key) || Reflect.has(given, key),
    ownKeys: (own) => [...new Set([...Reflect.ownKeys(own), ...keysOf(given)])],
    getOwnPropertyDescriptor: (own, key) => {
      if (Object.hasOwn(own, key) || !keysOf(given).includes(String(key))) {
        return Reflect.getOwnPropertyDescriptor(own, key);
      }
      const value = read(given, key);
      return { value, writable: true, enumerable: true, configurable: true };
    },
  });

/** What a copy of an object should have: also what it has from its classes. */
const keysOf = (given: object): string[] => [...Object.keys(given), ...inheritedKeys(given)];

function inheritedKeys(instance: object): string[] {
  const parent = Object.getPrototypeOf(instance);
  if ([null, Object.prototype, Function.prototype].includes(parent)) return [];
  const keys = Object.getOwnPropertyNames(parent).filter((key) => key !== "constructor");
  return [...keys, ...inheritedKeys(parent)];
}

/** Bound to whom it is of: instances of a class may have private members. */
export function read(given: object, key: PropertyKey): unknown {
  const value: unknown = Reflect.get(given, key);
  return typeof value === "function" ? value.bind(given) : value;
}

/**
 * Somebody's options, some of them shown as something else. Each is read when it is wanted, and what
 * is written goes to them: they may have getters, own or from a class, and change at run time.
 */
export function readThrough<T extends object>(
  given: T,
  shown: { [Name in keyof T & string]?: () => unknown } = {},
): T {
  const view: T = viewOf(given, Object.create(given));
  const getters: Record<string, (() => unknown) | undefined> = shown;
  for (const name of new Set([...keysOf(given), ...Object.keys(shown)])) {
    const get = getters[name] ?? (() => Reflect.get(given, name));
    defineLate(view, name, get, (value) => {
      (given as Record<string, unknown>)[name] = value;
    });
  }
  return view;
}

const GIVEN = new WeakMap<object, object | undefined>();

/** Remembers what a view is of: something that was given, or nothing. */
export function viewOf<V extends object>(given: object | undefined, view: V): V {
  GIVEN.set(view, given);
  return view;
}

/** What was given, where somebody may write back what they have read. */
export const givenOf = <T extends object>(read: T | undefined): T | undefined =>
  read && GIVEN.has(read) ? givenOf(GIVEN.get(read) as T | undefined) : read;

/**
 * Makes what somebody has written what was given, as far as it is a copy of what they have read: that
 * is the value of the moment, in whichever scope.
 */
function asGiven(written: unknown, read: unknown): void {
  const given = givenOf(read as Record<string, unknown> | undefined);
  if (!given || !written || Object.getPrototypeOf(written) !== Object.prototype) return;
  for (const [name, value] of Object.entries(written)) {
    if (!Object.is(value, Reflect.get(read as object, name))) continue;
    if (name in given) Reflect.set(written, name, given[name]);
    else Reflect.deleteProperty(written, name);
  }
}

/**
 * Shows a property of somebody's object as something else, in place, and so what is written there
 * later: to the object, or to a copy of it. False where the object is frozen.
 */
export function showAs(object: object, name: string, show: (given: unknown) => unknown): boolean {
  const { get, value } = descriptorOf(object, name) ?? {};
  const shown = () => show(get ? get.call(object) : value);
  return defineLate(object, name, Object.assign(shown, { [SHOWN]: true }), function (next) {
    asGiven(next, shown());
    Object.defineProperty(this, name, { value: next, writable: true, ...VISIBLE });
    showAs(this, name, show);
  });
}

/** Whether that was done already: instances may share what they are made of. */
export const isShown = (object: object, name: string) =>
  SHOWN in (descriptorOf(object, name)?.get ?? {});

const SHOWN = Symbol.for("better-auth-tenant:shown");

/** Of the object itself, or of the first class that has one. */
export function descriptorOf(given: object | null, key: string): PropertyDescriptor | undefined {
  if (given === null) return undefined;
  const own = Object.getOwnPropertyDescriptor(given, key);
  return own ?? descriptorOf(Object.getPrototypeOf(given), key);
}

/** In place. False where the object is frozen. */
export const defineLate = (
  late: object,
  name: string,
  get: () => unknown,
  set: (this: object, value: unknown) => void,
): boolean => Reflect.defineProperty(late, name, { get, set, ...VISIBLE });

const VISIBLE = { enumerable: true, configurable: true };

/** What is made of an object, made when it is first needed. */
export function oncePerObject<Key extends object, Made>(
  make: (key: Key) => Made,
): (key: Key) => Made {
  const known = new WeakMap<Key, Made>();
  return (key) => {
    const made = known.get(key) ?? make(key);
    known.set(key, made);
    return made;
  };
}

/** Loads a part of the plugin when it is first needed. Kept, because Node takes its time to find it again. */
export function lazy<Module>(load: () => Promise<Module>): () => Promise<Module> {
  let loaded: Promise<Module> | undefined;
  return () => {
    loaded ??= load();
    return loaded;
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
  const told = { error, ...(description && { error_description: description }) };
  return redirect(appendQueryParams(errorURL ?? fallback, new URLSearchParams(told)));
}

/** What a caller has sent, where nobody has checked it yet: what is no text is none. */
export const textOf = (sent: unknown) =>
  typeof sent === "string" || typeof sent === "number" ? String(sent) : "";

/** What a text is in JSON; undefined where it is none. */
export function parseJSON(text: unknown): unknown {
  try {
    return typeof text === "string" ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

/** Drizzle wraps the driver's error into one whose message has all the values in it. */
export function rootCause(error: unknown): DatabaseError {
  const { cause } = error as { cause?: unknown };
  return cause instanceof Error ? rootCause(cause) : (error as DatabaseError);
}

type DatabaseError = {
  name?: string;
  message?: string;
  constraint?: string;
  code?: string;
  errcode?: number;
  errno?: number;
  number?: number;
};

/** Writes into a map, and lets go of the oldest entry where there are too many. */
export const boundedMap =
  <T>(most: number) =>
  (entries: Map<string, T>, key: string, value: T): void => {
    const [oldest] = entries.keys();
    if (oldest !== undefined && entries.size >= most && !entries.has(key)) entries.delete(oldest);
    entries.set(key, value);
  };
