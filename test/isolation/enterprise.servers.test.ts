import { scim } from "@better-auth/scim";
import { sso } from "@better-auth/sso";
import type { AuthContext } from "better-auth";
import { describe, expect, it } from "vitest";
import { bySubdomain } from "../../src/index";
import { checkIsolation, type IsolationOptions } from "../../src/testing/index";
import { SCIM_MODELS } from "../enterprise/scim-world";
import { createInstance, type InstanceOptions } from "../support/instance";
import { oneOf } from "./depth";
import { takeOutOfBorder, unconfine } from "./holes";

const scimPlugin = () =>
  scim({
    connections: [],
    managedConnections: {
      credentialHashSecret: "a secret that hashes the tokens of directories",
    },
  });

async function check(
  options: IsolationOptions = {},
  plant: (ctx: AuthContext) => void = () => {},
  { tenant, ...instance }: InstanceOptions = {},
) {
  const { auth, context } = await createInstance({
    ...instance,
    plugins: [
      sso({ domainVerification: { enabled: true }, saml: { enableSingleLogout: true } }),
      scimPlugin(),
    ],
    tenant: {
      scopedModels: ["ssoProvider", ...SCIM_MODELS],
      tenantRoles: { admin: ["sso:*"] },
      ...tenant,
    },
  });
  plant(context as unknown as AuthContext);
  return checkIsolation(auth, options);
}

it("nothing crosses the border with sso() and scim(), and all is tried", {
  timeout: 600_000,
}, async () => {
  const report = await check({ extent: oneOf(8, 1) });
  expect(report.leaks).toEqual([]);
  expect(report.failures).toEqual([]);
  expect(report.untried).toEqual([]);
});

const enterprise = {
  extent: { ...oneOf(12, 4), paths: ["/sso/", "/sign-in/sso", "/scim/v2/"] },
};

it.each<[name: string, instance: InstanceOptions]>([
  [
    "tenants at hosts of their own",
    {
      auth: { baseURL: { allowedHosts: ["example.com", "*.example.com"], protocol: "http" } },
      tenant: { resolveTenantId: bySubdomain({ baseDomain: "example.com" }) },
    },
  ],
  ["a cookie for each tenant", { tenant: { sessionCookies: "per-tenant" } }],
  ["one user for an address", { tenant: { keepEmailGloballyUnique: true } }],
])("nothing crosses the border with %s", { timeout: 600_000 }, async (_, instance) => {
  const report = await check(enterprise, undefined, instance);
  expect(report.leaks).toEqual([]);
  expect(report.failures).toEqual([]);
  expect(report.untried).toEqual([]);
});

/** What the kit says that it has found at one endpoint. */
const foundAt = ({ leaks }: Awaited<ReturnType<typeof check>>, endpoint: string) =>
  leaks
    .filter((leak) => leak.endpoint === endpoint)
    .map(({ attempt, found }) => `${attempt}: ${found}`)
    .join("\n");

const only = (...paths: string[]) => ({ extent: { paths } });

describe("a border with a part missing", { timeout: 600_000 }, () => {
  it("finds that the tokens of directories are good everywhere", async () => {
    const report = await check(only("/scim/v2/"), (ctx) => {
      for (const model of SCIM_MODELS) takeOutOfBorder(ctx, model);
      for (const hook of ctx.options.plugins?.flatMap(({ hooks }) => hooks?.before ?? []) ?? []) {
        const matches = (path: string) =>
          hook.matcher({ path, headers: new Headers(), context: {} } as never);
        if (matches("/scim/v2/Users") && !matches("/ok")) hook.matcher = () => false;
      }
    });
    expect(foundAt(report, "GET /scim/v2/Users")).toMatch(
      /token of a directory of a at b.*the credential counts: 200, but for nobody 401/,
    );
    expect(foundAt(report, "DELETE /scim/v2/Users/:userId")).toMatch(/scimUser of \w+: 1 gone/);
  });

  it("finds that providers are not confined", async () => {
    const report = await check(only("/sso/", "/sign-in/sso"), (ctx) =>
      unconfine(ctx, "ssoProvider", "verification"),
    );
    expect(foundAt(report, "POST /sso/saml2/sp/acs/:providerId")).toMatch(
      /SAML response of a at b.*: verification of a: .*gone/,
    );
    expect(foundAt(report, "GET /sso/callback/:providerId")).toMatch(
      /SSO state of platform at a.*gone/,
    );
  });
});
