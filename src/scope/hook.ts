import type { BetterAuthPlugin, HookEndpointContext } from "better-auth";

type Hooks = NonNullable<BetterAuthPlugin["hooks"]>;

export type BeforeHook = NonNullable<Hooks["before"]>[number];
export type AfterHook = NonNullable<Hooks["after"]>[number];

/**
 * A before-hook as better-auth calls it, without its middleware around it: that one sets up three
 * contexts for whatever a hook may want to answer, and takes longer than a hook that answers
 * nothing.
 */
export function silentHook(run: (ctx: HookEndpointContext) => Promise<void>) {
  return Object.assign(run, { options: {} }) as unknown as BeforeHook["handler"];
}
