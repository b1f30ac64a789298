import type { AuthContext } from "better-auth";
import { SIGN_UP_PATH } from "../constants";
import { isolationOf } from "../isolation/isolation";
import { offeredProviders } from "../oauth/provider";
import type { Tenant } from "../tenants/cache";
import { byOneTap } from "./input";
import { allows, availableMethods } from "./methods";
import type { SignInMethod } from "./schema";
import { canHaveSecondFactor } from "./second-factor";

/** What a tenant's sign-in page needs. */
export interface SignInMethods {
  /** Users can sign in only if its status is `"active"`. */
  tenant: Pick<Tenant, "id" | "name" | "slug" | "status">;
  /**
   * Every method that the application has and the tenant allows, with the names of `policy.methods`.
   * A username is a `password`. There is `sso` if an identity provider is set up.
   */
  methods: SignInMethod[];
  /** Whether a second factor follows, or has to be set up first. Methods without one are left out. */
  twoFactor: { required: boolean };
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
  const { emailAndPassword, disabledPaths = [] } = ctx.options;
  const allowed = (method: SignInMethod) =>
    allows(policy ?? {}, method) && canHaveSecondFactor(policy ?? {}, method);
  const has = (path: string) =>
    emailAndPassword?.enabled === true && !disabledPaths.includes(path) && allowed("password");
  const enabled = has("/sign-in/email");
  const isOpen = (policy?.signUp ?? "open") === "open" && !emailAndPassword?.disableSignUp;
  const offered = await offeredProviders(ctx, id);
  const { identityProviders } = isolationOf(ctx) ?? {};
  const sso = identityProviders && allowed("sso") ? await identityProviders.offered(id) : [];
  const hasSSO = sso.length > 0 || identityProviders?.areShared();
  const providerIds = [...offered.map((provider) => provider.id), ...byOneTap(ctx)];
  return {
    tenant: { id, name, slug, status },
    methods: availableMethods(ctx, id, providerIds).filter(
      (method) => allowed(method) && (method !== "sso" || hasSSO),
    ),
    twoFactor: { required: policy?.twoFactor?.required === true },
    emailAndPassword: { enabled, signUp: enabled && isOpen && has(SIGN_UP_PATH) },
    providers: offered.filter((provider) => allowed(`social:${provider.id}`)),
    ...(identityProviders && { sso }),
  };
}
