// Providers that are set up after the policy that refuses them.
import { twoFactor } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { OAuthConfigCheck, TenantOAuthConfig, TenantPolicy } from "../../../src/index";
import { fakeNetwork, unreachable } from "../../support/providers";
import type { World } from "../../support/world";
import { createSSOWorld } from "../enterprise/world";

const GOOGLE = { providerId: "google", clientId: "client", clientSecret: "secret" };

const REFUSING: [TenantPolicy, code: string][] = [
  [{ methods: ["password"] }, "SIGN_IN_METHOD_NOT_ALLOWED"],
  [{ twoFactor: { required: true } }, "TWO_FACTOR_REQUIRED"],
];

const LATER: TenantPolicy = { twoFactor: { required: true, exemptMethods: ["sso", "social"] } };

/** Acme, with a policy that its operator has saved before there is any provider. */
async function createTenantWith(policy: TenantPolicy) {
  const world = await createSSOWorld({ plugins: [twoFactor()] });
  const operator = await world.operator();
  const answer = await operator.post("/tenant/update", { tenantId: world.ids.acme, policy });
  expect(answer.status, JSON.stringify(answer.data)).toBe(200);
  return { world, operator, about: { ...GOOGLE, tenantId: world.ids.acme } };
}

async function offeredAt(world: World) {
  const { data } = await world
    .at("acme")
    .get<{ providers: unknown[]; sso: unknown[] }>("/tenant/sign-in-methods");
  return data.providers.length + data.sso.length;
}

describe.each(REFUSING)("with the policy %j", (policy, code) => {
  const refusal = [{ subject: "policy", ok: false, code, message: expect.any(String) }];

  it("the caller who sets up a social provider is told that no user can sign in with it", async () => {
    const { world, operator, about } = await createTenantWith(policy);
    fakeNetwork(() => unreachable());
    const { data } = await operator.post<TenantOAuthConfig>("/tenant/oauth-config/register", about);
    expect(data.findings).toEqual(refusal);
    const change = { tenantId: about.tenantId, providerId: "google", enabled: true };
    const changed = await operator.post<TenantOAuthConfig>("/tenant/oauth-config/update", change);
    expect(changed.data.findings).toEqual(refusal);
    const checked = await operator.post<OAuthConfigCheck>("/tenant/oauth-config/check", about);
    expect(checked.data.ok).toBe(false);
    expect(checked.data.findings.filter(({ subject }) => subject === "policy")).toEqual(refusal);
    expect(await offeredAt(world)).toBe(0);
  });

  it("so is who registers an identity provider", async () => {
    const { world, operator } = await createTenantWith(policy);
    const window = world.at("acme", operator);
    const { data } = await window.post("/sso/register", world.oidc("okta"));
    expect(data).toMatchObject({ providerId: "okta", findings: refusal });
    expect(await offeredAt(world)).toBe(0);
  });
});

it("all reasons are told at once", async () => {
  const policy: TenantPolicy = { methods: ["password"], twoFactor: { required: true } };
  const { operator, about } = await createTenantWith(policy);
  const { data } = await operator.post<TenantOAuthConfig>("/tenant/oauth-config/register", about);
  expect(data.findings?.map(({ code }) => code)).toEqual(REFUSING.map(([, code]) => code));
});

it("a policy that exempts sso and social covers the providers that are set up later", async () => {
  const { world, operator, about } = await createTenantWith(LATER);
  const { data } = await operator.post("/tenant/oauth-config/register", about);
  expect(data).toMatchObject({ enabled: true });
  expect(data).not.toHaveProperty("findings");
  const registered = await world.at("acme", operator).post("/sso/register", world.oidc("okta"));
  expect(registered.data).not.toHaveProperty("findings");
  expect(await offeredAt(world)).toBe(2);
});
