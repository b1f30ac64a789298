import type { BetterAuthPlugin } from "better-auth";

type Hooks = NonNullable<BetterAuthPlugin["hooks"]>;

export type BeforeHook = NonNullable<Hooks["before"]>[number];
export type AfterHook = NonNullable<Hooks["after"]>[number];
