"use server";

import type { OIDCConfig, SAMLConfig } from "@better-auth/sso";
import { isAPIError } from "better-auth/api";
import { runInTenant } from "better-auth-tenant";
import { headers } from "next/headers";
import { auth } from "./auth";
import { explain } from "./errors";
import { APP_URL, hostAddress } from "./hosts";
import { type SamlInput, SamlProblem, samlConfigFor } from "./saml";
import { checkOIDC, checkSAML, type Finding } from "./sso-check";
import { headersFor } from "./tenants";

/** A tenant, and whether the page is its own or the operators'. */
export interface Managed {
  tenantId: string;
  isOwn: boolean;
}

/** What is to be registered for a SAML provider, if what was entered can be read. */
export async function readSamlInput(managed: Managed, input: SamlInput) {
  return explained(async () => {
    const query = { tenantId: managed.tenantId };
    await auth.api.listSSOProviders({ ...{ query }, headers: await headersOf(managed) });
    return { samlConfig: samlConfigFor(input) };
  });
}

/** Tries an identity provider before people do. */
export async function checkProvider(managed: Managed, providerId: string) {
  return explained(async () => {
    const { tenantId } = managed;
    const query = { providerId, tenantId };
    // better-auth decides who may see it. What it shows is not enough to check it.
    await auth.api.getSSOProvider({ query, headers: await headersOf(managed) });
    const { slug } = await auth.api.getTenant({ query: { id: tenantId } });
    const findings = [
      ...(await look(tenantId, providerId, [APP_URL.origin, hostAddress(slug)])),
      ...(await lookAtPolicy(tenantId)),
    ];
    return { findings, ok: findings.every(({ ok }) => ok !== false) };
  });
}

async function look(tenantId: string, providerId: string, origins: string[]): Promise<Finding[]> {
  const { adapter } = await auth.$context;
  const provider = await runInTenant(tenantId, () =>
    adapter.findOne<{ oidcConfig: string | null; samlConfig: string | null }>({
      model: "ssoProvider",
      where: [{ field: "providerId", value: providerId }],
    }),
  );
  const { oidcConfig, samlConfig } = provider ?? {};
  if (oidcConfig) return checkOIDC(providerId, JSON.parse(oidcConfig) as OIDCConfig, origins);
  if (samlConfig) return checkSAML(JSON.parse(samlConfig) as SAMLConfig);
  return [{ subject: "config", ok: false, message: "There is nothing to check" }];
}

/** Whether the tenant's policy offers identity providers to people who sign in. */
async function lookAtPolicy(tenantId: string): Promise<Finding[]> {
  const { methods } = await auth.api.getTenantSignInMethods({ query: { tenantId } });
  if (methods.includes("sso")) return [];
  const message =
    "The policy of this tenant does not let people sign in with an identity provider: allow single sign-on there, also without a second factor";
  return [{ subject: "policy", ok: false, message }];
}

/** On a tenant's own page the header says so, and who is signed in there is the one who asks. */
const headersOf = async ({ tenantId, isOwn }: Managed) =>
  isOwn ? headersFor(tenantId) : new Headers(await headers());

/** What came of it, or why nothing did, in words. */
async function explained<T>(act: () => Promise<T>): Promise<T | { error: string }> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof SamlProblem) return { error: error.message };
    if (!isAPIError(error)) throw error;
    return { error: explain({ code: error.body?.code, message: error.message }) };
  }
}
