import type { AuthContext } from "better-auth";
import { isolationOf } from "../isolation/isolation";
import { offeredProviders } from "../oauth/provider";
import type { Tenant } from "../tenants/cache";
import { allows } from "./methods";
import type { SignInMethod } from "./schema";

/** What a tenant's sign-in page needs. */
export interface SignInMethods {
  /** Users can sign in only if its status is `"active"`. */
  tenant: Pick<Tenant, "id" | "name" | "slug" | "status">;
  emailAndPassword: { enabled: boolean; signUp: boolean };
  providers: { id: string; name: string }[];
  /**
   * The tenant's identity providers, with better-auth's `sso()`. `/sign-in/sso` accepts one of these
   * ids, or finds one by an email address.
   */
  sso?: { id: string }[];
}

/** The sign-in methods that the application has and the tenant's policy allows. */
export async function signInMethods(
  ctx: AuthContext,
  { id, name, slug, status, policy }: Tenant,
): Promise<SignInMethods> {
  const { emailAndPassword } = ctx.options;
  const allowed = (method: SignInMethod) => allows(policy ?? {}, method);
  const enabled = emailAndPassword?.enabled === true && allowed("password");
  const isOpen = (policy?.signUp ?? "open") === "open" && !emailAndPassword?.disableSignUp;
  const offered = await offeredProviders(ctx, id);
  const { identityProviders } = isolationOf(ctx) ?? {};
  return {
    tenant: { id, name, slug, status },
    emailAndPassword: { enabled, signUp: enabled && isOpen },
    providers: offered.filter((provider) => allowed(`social:${provider.id}`)),
    ...(identityProviders && { sso: allowed("sso") ? await identityProviders.offered(id) : [] }),
  };
}
