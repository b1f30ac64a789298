import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { PLUGIN_ID } from "../../core/constants";
import { signIn } from "./routes";

/**
 * Replaces better-auth's sign-in endpoint by the same endpoint, created once. better-auth creates
 * its own for each request and compiles its schema each time, which is slower than this plugin's
 * work. Does not replace the sign-in of another plugin.
 *
 * Guarded by "better-auth makes its sign-in without knowing anything of the instance".
 */
export function keepSignIn({ plugins = [] }: BetterAuthOptions): void {
  const ours = plugins.find(({ id }) => id === PLUGIN_ID)?.endpoints as Endpoints | undefined;
  if (!ours || !Object.isExtensible(ours)) return;
  const isBrought = plugins.some(({ endpoints }) => endpoints !== ours && endpoints?.signInEmail);
  if (isBrought) withOwnSignIn.add(ours);
  if (withOwnSignIn.has(ours)) delete ours.signInEmail;
  else ours.signInEmail = signIn;
}

type Endpoints = NonNullable<BetterAuthPlugin["endpoints"]>;

/**
 * Endpoints of `tenantAuth()` that must not contain better-auth's sign-in, because another plugin
 * of the instance has its own.
 */
const withOwnSignIn = new WeakSet<Endpoints>();
