import type { AuthContext } from "better-auth";
import { SIGN_UP_PATH } from "../../core/constants";
import { serviceOf } from "../../core/extensions";
import { isolationOf } from "../../core/isolation";
import type { SignInMethod } from "../../core/sign-in-endpoints";
import type { Tenant } from "../management/tenant";
import { byOneTap } from "../oauth/application-providers";
import { offeredProviders } from "../oauth/provider";
import { allows, availableMethods } from "../policy/methods";
import { canHaveSecondFactor } from "../policy/second-factor";

/** The data for a tenant's sign-in page. */
export interface SignInMethods {
  /** Users can sign in only if its status is `"active"`. */
  tenant: Pick<Tenant, "id" | "name" | "slug" | "status">;
  /**
   * The methods that the application has and the tenant allows, with the names of `policy.methods`.
   * Sign-in by username is `password`. Contains `sso` only if an identity provider is set up.
   */
  methods: SignInMethod[];
  /** Whether users need a second factor. `methods` contains no method that cannot have one. */
  twoFactor: { required: boolean };
  emailAndPassword: { enabled: boolean; signUp: boolean };
  providers: { id: string; name: string }[];
  /**
   * The tenant's identity providers, if the application has `sso()`. `/sign-in/sso` accepts one of
   * these ids, or finds a provider by the user's email.
   */
  sso?: { id: string }[];
}

/** Returns the sign-in methods that the application has and the tenant's policy allows. */
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
  const identityProviders = serviceOf(isolationOf(ctx), "identityProviders");
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
