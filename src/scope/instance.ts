import {
  type AuthEndpointContext,
  tryGetCurrentAuthEndpointContext,
} from "@better-auth/core/context";

/*
 * Whose endpoint is running. A process may have several instances of better-auth, whose hooks call
 * each other: what the tenant around a call is called there says nothing here. The marks are on
 * better-auth's context, whose copies carry them along; one name for all our copies.
 */

const INSTANCE = Symbol.for("better-auth-tenant:instance");
const CALLER = Symbol.for("better-auth-tenant:caller");
const CALL = Symbol.for("better-auth-tenant:call");

interface Marked {
  [INSTANCE]?: object;
  /** The endpoint that has made the call. */
  [CALLER]?: AuthEndpointContext | undefined;
  /** What keeps the call apart from others; undefined where there are none. */
  [CALL]?: Call | undefined;
}

/** True for a question that the application's resolver asks. */
interface Call {
  isAsked: boolean;
}

/** Gives an instance scopes of its own. A transaction is a part of its instance. */
export function markInstance(holder: object, instance: object = {}): void {
  (holder as Marked)[INSTANCE] ??= instance;
}

/** By an adapter, or a context: there somebody may have put an adapter around ours. */
export const instanceOf = (holder: object | undefined): object | undefined =>
  (holder as { adapter?: Marked })?.adapter?.[INSTANCE] ?? (holder as Marked)?.[INSTANCE];

/** What is remembered for an instance is kept by this. */
export const keeperOf = (context: { adapter: object }) => instanceOf(context) ?? context.adapter;

/**
 * better-auth copies the context of its instance for each call, in the middle of what calls: there
 * this shows who that is.
 *
 * Guarded by "better-auth copies its context for a call while the caller is running".
 */
export function noteCallers(context: object): void {
  Object.defineProperty(context, CALLER, {
    configurable: true,
    enumerable: true,
    get: tryGetCurrentAuthEndpointContext,
    // A plugin may hand the context back, or a copy of it, for better-auth to assign.
    set: () => {},
  });
}

/**
 * A call that comes from this instance's own endpoint is a part of it. Any other is one of its own,
 * also where a hook of another instance, or server code in one tenant, makes several; and so is each
 * of the questions of a resolver, which is there to find out where the request belongs.
 */
export function noteCall(context: object, isFirst: boolean, isAsking = false): void {
  if (CALL in context) return;
  const marked = context as Marked;
  const caller = marked[CALLER]?.context as Marked | undefined;
  const isPart = caller && instanceOf(caller) === instanceOf(context);
  // Of a context that somebody has built by hand nobody knows it: it stays where it is.
  const isOwn = isAsking || (!isFirst && CALLER in context);
  const around = isPart ? caller[CALL] : undefined;
  // What a question calls in its turn is a part of the question.
  if (isPart && (!isAsking || around?.isAsked)) marked[CALL] = around;
  else marked[CALL] = isOwn ? { isAsked: isAsking } : undefined;
}

/** Whether a call comes out of an endpoint of the same instance with this path, be it by way of others. */
export function comesFrom(context: object, path: string | undefined): boolean {
  const seen = new Set<object>();
  let caller = (context as Marked)[CALLER];
  // A context that somebody has not copied says that it is called by whoever asks.
  for (; caller && !seen.has(caller); caller = (caller.context as Marked)[CALLER]) {
    if (caller.path === path && instanceOf(caller.context) === instanceOf(context)) return true;
    seen.add(caller);
  }
  return false;
}

/** What the scope of the running endpoint is kept by. */
export function running(): object | undefined {
  const context = tryGetCurrentAuthEndpointContext()?.context as Marked | undefined;
  return context?.[CALL] ?? instanceOf(context);
}
