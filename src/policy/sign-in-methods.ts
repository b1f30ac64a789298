import type { AuthContext } from "better-auth";
import { isolationOf } from "../isolation/isolation";
import { offeredProviders } from "../oauth/provider";
import type { ResolvedOptions } from "../options";
import type { Tenant } from "../tenants/cache";
import { allows } from "./methods";
import type { SignInMethod } from "./schema";

/** What a tenant's sign-in page needs to know. */
export interface SignInMethods {
  /** Nobody signs in at a tenant whose status is not `"active"`. */
  tenant: Pick<Tenant, "id" | "name" | "slug" | "status">;
  emailAndPassword: { enabled: boolean; signUp: boolean };
  providers: { id: string; name: string }[];
  /**
   * The tenant's own identity providers, where there is better-auth's `sso()`. `/sign-in/sso` takes
   * one of these ids, or finds the right one by an e-mail address.
   */
  sso?: { id: string }[];
}

/** What a tenant's sign-in page offers: what the application has, and the tenant's policy allows. */
export async function signInMethods(
  ctx: AuthContext,
  { trustedProviderHosts }: ResolvedOptions,
  { id, name, slug, status, policy }: Tenant,
): Promise<SignInMethods> {
  const { emailAndPassword } = ctx.options;
  const allowed = (way: SignInMethod) => allows(policy ?? {}, way);
  const enabled = emailAndPassword?.enabled === true && allowed("password");
  const isOpen = (policy?.signUp ?? "open") === "open" && !emailAndPassword?.disableSignUp;
  const offered = await offeredProviders(ctx, id, trustedProviderHosts);
  const { identityProviders } = isolationOf(ctx) ?? {};
  return {
    tenant: { id, name, slug, status },
    emailAndPassword: { enabled, signUp: enabled && isOpen },
    providers: offered.filter((provider) => allowed(`social:${provider.id}`)),
    ...(identityProviders && { sso: allowed("sso") ? await identityProviders.offered(id) : [] }),
  };
}
