import { createAuthEndpoint } from "better-auth/api";
import { getOfTenant } from "../../core/input";
import { requestedTenantId } from "../../core/resolve/resolve";
import { requireTenant } from "../management/tenant";
import { signInMethods } from "./sign-in-methods";

export const signInMethodsEndpoint = createAuthEndpoint(
  "/tenant/sign-in-methods",
  getOfTenant("How people can sign in at a tenant"),
  async (ctx) => {
    const tenant = await requireTenant(ctx, await requestedTenantId(ctx));
    return ctx.json(await signInMethods(ctx.context, tenant));
  },
);
