import { signInSocial } from "better-auth/api";
import type { SocialProviderList } from "better-auth/social-providers";
import type * as z from "zod";
import type { ResolvedOptions, TenantSession } from "../options";
import { standIn } from "../scope/run";
import { tenantId } from "../tenants/input";
import { runForTenant } from "./run";

const signIn = signInSocial();

type ProviderName = SocialProviderList[number] | (string & {});

const signInBody = signIn.options.body.extend({
  tenantId: tenantId.optional(),
  // better-auth's own leaves the type of the input open, and closes it for its own path only.
  provider: signIn.options.body.shape.provider as z.ZodType<ProviderName, ProviderName>,
});

/** Where to go to sign in; or, with an id token, somebody who is signed in already. */
type SocialAnswer =
  | { redirect: boolean; url: string; token?: undefined; user?: undefined }
  | { redirect: boolean; url?: undefined; token: string; user: TenantSession["user"] };

export const signInSocialTenant = (options: ResolvedOptions) =>
  standIn(
    "/tenant/sign-in/social",
    {
      method: "POST",
      body: signInBody,
      metadata: { openapi: { description: "Start social sign-in for a tenant" } },
    },
    (ctx) => runForTenant<SocialAnswer>(ctx, options, signIn),
  );
