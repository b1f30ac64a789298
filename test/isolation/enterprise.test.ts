import { scim } from "@better-auth/scim";
import { sso } from "@better-auth/sso";
import { expect, it } from "vitest";
import { checkIsolation } from "../../src/testing/index";
import { SCIM_MODELS } from "../enterprise/scim-world";
import { createInstance } from "../support/instance";

/**
 * What the kit sends to these does nothing at home either: it makes an OpenID Connect provider with
 * a verified domain, and speaks for nobody outside. The tests that have the real thing:
 */
const TRIED_ELSEWHERE: Record<string, string> = {
  "POST /sso/register": "sso-rights.test.ts, sso-takeover.test.ts",
  "POST /sso/request-domain-verification": "sso-rights.test.ts",
  "POST /sso/verify-domain": "sso-rights.test.ts",
  "GET /sso/callback": "sso-oidc.test.ts",
  "GET /sso/callback/:providerId": "sso-oidc.test.ts",
  "GET /sso/saml2/sp/metadata": "sso-saml.test.ts",
  "POST /sso/saml2/sp/acs/:providerId": "sso-saml.test.ts",
  "POST /sso/saml2/logout/:providerId": "sso-saml.test.ts",
  // Nobody sends a logout of the provider's own yet.
  "GET /sso/saml2/sp/slo/:providerId": "",
  "POST /sso/saml2/sp/slo/:providerId": "",
};

/** These take the token of a directory, which the kit does not have: scim.test.ts. */
const isSCIM = (what: string) => what.includes(" /scim/v2/");

it("nothing crosses the border with sso() and scim()", { timeout: 600_000 }, async () => {
  const { auth } = await createInstance({
    plugins: [
      sso({ domainVerification: { enabled: true }, saml: { enableSingleLogout: true } }),
      scim({
        connections: [],
        managedConnections: {
          credentialHashSecret: "a secret that hashes the tokens of directories",
        },
      }),
    ],
    tenant: { scopedModels: ["ssoProvider", ...SCIM_MODELS], tenantRoles: { admin: ["sso:*"] } },
  });
  const report = await checkIsolation(auth);
  expect(report.leaks).toEqual([]);
  expect(report.failures).toEqual([]);
  const untried = report.untried.map(({ what }) => what).filter((what) => !isSCIM(what));
  expect(untried.sort()).toEqual(Object.keys(TRIED_ELSEWHERE).sort());
});
