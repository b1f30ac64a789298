import type { BetterAuthPlugin } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import type { Border } from "../border/border";
import { PLATFORM_ONLY } from "../decided";
import { tenantError } from "../errors";
import type { BeforeHook } from "../framework";
import { isOutermost } from "../scope/endpoint";
import { currentScope, enter, settled } from "../scope/scope";
import { settle } from "../scope/settle";

/*
 * Plugins that work on the platform and in no tenant. Some say to other applications who somebody
 * is. Their codes and tokens name no tenant, and what such an application is told says nothing about
 * one. An address that is verified inside a tenant is what the tenant's administrator says, so nobody
 * outside may believe it. The other way round, oAuthProxy() completes what another deployment has
 * proven with the platform's client, which is no word of a tenant's provider.
 */

/** The plugins of this kind that are installed. */
export const platformOnlyPlugins = ({ ctx: { options } }: Border): BetterAuthPlugin[] =>
  (options.plugins ?? []).filter(({ id }) => PLATFORM_ONLY.includes(id));

const platformOnly = (id: string) =>
  tenantError(
    "PLATFORM_ONLY",
    `${id} works on the platform only. Leave the tenant out of this request.`,
  );

/**
 * The endpoints run on the platform, where a session of a tenant is no session (R5). So does a
 * sign-in that goes on with an authorization, which it has in its body: people may come to the
 * platform's login page with a session of a tenant. What names a tenant is refused.
 */
export function stayOnPlatform(border: Border, { id, endpoints }: BetterAuthPlugin): BeforeHook {
  const paths = new Set(Object.values(endpoints ?? {}).map(({ path }) => path));
  return {
    matcher: ({ path, body }) =>
      paths.has(path ?? "") || (id === "oauth-provider" && body?.oauth_query !== undefined),

    handler: createAuthMiddleware(async (ctx) => {
      if (isOutermost(ctx) && currentScope().kind === "pending") return void enter(settled(null));
      const { tenantId } = await settle(border.readSession);
      if (tenantId !== null) throw platformOnly(id);
    }),
  };
}

/** What an adapter returns of a table that is empty. */
const EMPTY: Readonly<Record<string, unknown>> = {
  findOne: null,
  findMany: [],
  count: 0,
  update: null,
  updateMany: 0,
  delete: undefined,
  deleteMany: 0,
  consumeOne: null,
  incrementOne: null,
};

/** In a tenant the tables of such a plugin are empty, and stay so, whoever asks for them. */
export function emptyInTenants(border: Border, { id, schema }: BetterAuthPlugin): void {
  const models = Object.entries(schema ?? {}).flatMap(([model, { modelName }]) => [
    ...[model, `${model}s`],
    ...(modelName ? [modelName, `${modelName}s`] : []),
  ]);
  const { guard } = border.policy;
  border.policy.guard = async (name, call: { model: string }, run, raw, transaction) => {
    if (models.includes(call.model)) {
      const { tenantId } = await settle(border.readSession, raw);
      if (tenantId !== null && name === "create") throw platformOnly(id);
      if (tenantId !== null) return structuredClone(EMPTY[name]);
    }
    return guard(name, call as never, run, raw, transaction) ?? run(call as never);
  };
}
