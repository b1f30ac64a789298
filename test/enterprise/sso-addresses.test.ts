import { beforeAll, describe, expect, it } from "vitest";
import type { ResolveTenant } from "../../src/index";
import {
  ADA,
  acsOf,
  createSamlProvider,
  createSSOWorld,
  post,
  requestIn,
  respond,
  type SSOWorld,
  samlRegistration,
  shareSSOWorld,
} from "./sso-world";

describe("a provider whose endpoints are at several hosts", () => {
  let resolve: ResolveTenant = () => undefined;
  const trustedOrigins = ["http://localhost:*"];
  const worlds = {
    without: shareSSOWorld({ trustedOrigins }),
    with: shareSSOWorld({ trustedOrigins, tenant: { resolveTenantId: (ctx) => resolve(ctx) } }),
  };

  const elsewhereOf = ({ provider }: SSOWorld) => provider.issuer.replace("127.0.0.1", "localhost");

  /** As Google has it: the issuer is at one host, and most of the rest at another. */
  const registration = (world: SSOWorld, providerId: string, issuer = world.provider.issuer) => {
    const { clientId, clientSecret } = world.oidc(providerId).oidcConfig;
    const oidcConfig = { clientId, clientSecret, pkce: true };
    return { providerId, issuer, domain: "acme.example", oidcConfig };
  };

  beforeAll(() => {
    for (const world of Object.values(worlds)) {
      const { issuer, rules } = world.provider;
      rules.discovery = {
        issuer,
        authorization_endpoint: `${issuer}/oauth/authorize`,
        token_endpoint: `${elsewhereOf(world)}/oauth/token`,
        token_endpoint_auth_methods_supported: ["client_secret_post"],
        userinfo_endpoint: `${elsewhereOf(world)}/api/v4/user`,
        jwks_uri: `${elsewhereOf(world)}/jwks`,
      };
    }
  });

  it.each(["with", "without"] as const)("signs people in, %s a resolver", async (kind) => {
    const world = worlds[kind];
    await world.register("acme", registration(world, "acme-google"));
    const { who } = await world.ssoSignIn("acme", "acme-google");
    expect(who).toMatchObject({ tenantId: world.ids.acme });
  });

  it("is refused if one of them belongs to another tenant", async () => {
    const world = worlds.with;
    const admin = await world.as("admin", "acme");
    const { host } = new URL(elsewhereOf(world));
    resolve = ({ headers }) => (headers?.get("host") === host ? world.ids.globex : undefined);
    const refused = await admin.post("/sso/register", registration(world, "acme-other"));
    expect(refused.data).toMatchObject({ code: "discovery_untrusted_origin" });
  });

  it("is not asked for its endpoints at an address that is not trusted", async () => {
    const world = await createSSOWorld({ tenant: { resolveTenantId: () => undefined } });
    const admin = await world.as("admin", "acme");
    const body = registration(world, "acme-google", elsewhereOf(world));
    const refused = await admin.post("/sso/register", body);
    expect(refused.data).toMatchObject({ code: "discovery_untrusted_origin" });
    expect(world.provider.requests).toEqual([]);
  });
});

it("SAML comes back where the resolver does not know the host of the provider, and throws", async () => {
  const idp = await createSamlProvider("acme");
  const asked: string[] = [];
  const world = await createSSOWorld({
    tenant: {
      resolveTenantId: ({ request }) => {
        if (!request?.url.includes("idp.example")) return undefined;
        asked.push(request.url);
        throw new Error("Who is that?");
      },
    },
  });
  await world.register("acme", samlRegistration("acme-saml", idp));
  const browser = world.at("platform");
  const started = await world.start("acme", "acme-saml", browser);
  const { id, relayState } = requestIn(started.data.url);
  const SAMLResponse = await respond(idp, { providerId: "acme-saml", inResponseTo: id });
  const form = { SAMLResponse, RelayState: relayState };
  expect((await post(browser, acsOf("acme-saml"), form)).location).toBe("/welcome");
  expect(await world.whoIs(browser)).toMatchObject({ email: ADA, tenantId: world.ids.acme });
  expect(asked).not.toEqual([]);
});
