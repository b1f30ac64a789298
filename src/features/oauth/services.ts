import type { AuthContext } from "better-auth";
import { applicationProviders, byOneTap } from "./application-providers";
import { listOAuthConfigs } from "./config-store";
import { offeredProviders } from "./provider";

/** What other features can ask about social providers. */
export interface SocialProviders {
  /** Returns the ids of providers that the application and its plugins set up. */
  ofApplication(): string[];
  /** Returns the ids of providers that a tenant has an enabled config for. */
  configuredBy(tenantId: string): Promise<string[]>;
  /** Returns the ids of providers that users can sign in with at a tenant. */
  usable(tenantId: string): Promise<Set<string>>;
}

declare module "../../core/extension" {
  interface Services {
    socialProviders: SocialProviders;
  }
}

export const socialProvidersOf = (ctx: AuthContext): SocialProviders => ({
  ofApplication() {
    const { byId, ofPlugins } = applicationProviders(ctx);
    return [...byId.keys(), ...ofPlugins, ...byOneTap(ctx)];
  },
  async configuredBy(tenantId) {
    const configs = await listOAuthConfigs(ctx, tenantId);
    return configs.filter(({ enabled }) => enabled).map(({ providerId }) => providerId);
  },
  async usable(tenantId) {
    const offered = await offeredProviders(ctx, tenantId);
    return new Set([...offered.map(({ id }) => id), ...byOneTap(ctx)]);
  },
});
