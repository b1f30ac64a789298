import type { BetterAuthPlugin } from "better-auth";
import type { Extension, Services } from "./extension";
import type { Isolation } from "./isolation";

/** Creates the extension of a plugin for one instance. */
type MakeExtension = (isolation: Isolation) => Extension;

/**
 * The property of our other plugins with a function that creates their extension. All copies of
 * this package share this symbol.
 */
export const EXTENSION = Symbol.for("better-auth-tenant:extension");

/** Returns the extensions of our other plugins, wherever they are in the list. */
export const extensionsOn = (isolation: Isolation, plugins: BetterAuthPlugin[] = []): Extension[] =>
  [...new Set(plugins)].flatMap((plugin) => {
    const make = (plugin as { [EXTENSION]?: MakeExtension })[EXTENSION];
    return make ? [make(isolation)] : [];
  });

/** Returns the models of our other plugins. All of them are isolated. */
export const modelsOnPlugins = (plugins: BetterAuthPlugin[] = []): string[] =>
  plugins.flatMap((plugin) => (EXTENSION in plugin ? Object.keys(plugin.schema ?? {}) : []));

type Having<Name extends keyof Extension> = Extension & Required<Pick<Extension, Name>>;

/** Caches `extensionsWith`, which a request calls about twenty times. */
const collected = new WeakMap<
  readonly Extension[],
  Partial<Record<keyof Extension, Extension[]>>
>();

/** Returns the extensions that have a member, in their order. */
export function extensionsWith<Name extends keyof Extension>(
  isolation: Isolation | undefined,
  name: Name,
): Having<Name>[] {
  if (!isolation) return [];
  const { extensions } = isolation;
  const byMember = collected.get(extensions) ?? {};
  collected.set(extensions, byMember);
  const found = byMember[name] ?? extensions.filter((extension) => extension[name] !== undefined);
  byMember[name] = found;
  return found as Having<Name>[];
}

/** Returns a service that a feature provides, if that feature is there. */
export function serviceOf<Name extends keyof Services>(
  isolation: Isolation | undefined,
  name: Name,
): Services[Name] | undefined {
  for (const { provides } of isolation?.extensions ?? []) {
    if (provides?.[name] !== undefined) return provides[name];
  }
  return undefined;
}
