import { createAuthEndpoint } from "better-auth/api";
import * as z from "zod";
import type { ResolvedOptions } from "../options";
import type { Tenant } from "../tenants/find";
import { tenantId } from "../tenants/input";
import { namedTenantId, requireTenant } from "../tenants/naming";

/** What a tenant's sign-in page needs to know. */
export interface SignInMethods {
  tenant: Pick<Tenant, "id" | "name" | "slug">;
  emailAndPassword: { enabled: boolean; signUp: boolean };
  providers: { id: string; name: string }[];
}

export const signInMethodsEndpoint = (options: ResolvedOptions) =>
  createAuthEndpoint(
    "/tenant/sign-in-methods",
    {
      method: "GET",
      query: z.object({ tenantId: tenantId.optional() }).optional(),
      metadata: {
        openapi: {
          description: "How people can sign in at a tenant",
          parameters: [{ name: "tenantId", in: "query", schema: { type: "string" } }],
        },
      },
    },
    async (ctx) => {
      const { workingProviders } = await import("../oauth/working");
      const { id, name, slug } = await requireTenant(ctx, await namedTenantId(ctx, options));
      const { enabled = false, disableSignUp = false } = ctx.context.options.emailAndPassword ?? {};
      return ctx.json<SignInMethods>({
        tenant: { id, name, slug },
        emailAndPassword: { enabled, signUp: enabled && !disableSignUp },
        providers: await workingProviders(ctx.context, id, options.trustedProviderHosts),
      });
    },
  );
