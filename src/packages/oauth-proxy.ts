import type { BetterAuthPlugin, HookEndpointContext } from "better-auth";
import { borderOf } from "../border/border";
import { settle } from "../scope/settle";

type Handler = ((ctx: HookEndpointContext) => Promise<unknown>) & { [LEAVES_TENANTS]?: true };

const LEAVES_TENANTS = Symbol.for("better-auth-tenant:leaves-tenants-alone");

/**
 * oAuthProxy() sends people back through another deployment, which has other tenants, or none. A
 * tenant's flow goes without it, and comes back to where it was started. The hooks are changed in
 * place, once for all instances that share the plugin.
 */
export function leaveTenantsAlone({ hooks }: BetterAuthPlugin): void {
  for (const hook of [...(hooks?.before ?? []), ...(hooks?.after ?? [])]) {
    const run = hook.handler as Handler;
    if (run[LEAVES_TENANTS]) continue;
    const onPlatform = async (ctx: HookEndpointContext) => {
      const border = borderOf(ctx.context);
      const scope = border && (await settle(border.readSession));
      // What a hook returns that has nothing to say.
      return scope?.tenantId ? {} : run(ctx);
    };
    Object.assign(hook, { handler: Object.assign(onPlatform, { [LEAVES_TENANTS]: true }) });
  }
}
