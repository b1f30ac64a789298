import { socialProviderList } from "better-auth/social-providers";
import { describe, expect, it } from "vitest";
import { certainIssuerOf } from "../../src/oauth/provider-options";
import { startIdentityProvider } from "../support/identity-provider";
import { createInstance } from "../support/instance";
import { shareInstance } from "../support/shared";

const CLIENT = { clientId: "acme-client", clientSecret: "acme-client-secret" };

describe("threat: mix-up: the issuer that comes back with a code (RFC 9207)", () => {
  /** Alice has agreed at the tenant's own GitLab, which adds its issuer to the way back. */
  async function comeBack(issuerOf: (issuer: string) => string | undefined) {
    const idp = await startIdentityProvider();
    idp.registerClient(CLIENT.clientId, CLIENT.clientSecret);
    idp.addPerson("alice");
    const trustedProviderHosts = [new URL(idp.issuer).host];
    const instance = await createInstance({ tenant: { trustedProviderHosts } });
    const { id: tenantId } = await instance.createTenant();
    const config = { tenantId, providerId: "gitlab", ...CLIENT, options: { issuer: idp.issuer } };
    await instance.api.registerTenantOAuthConfig({ body: config });
    const browser = instance.browser();
    const { data } = await browser.post<{ url: string }>("/tenant/sign-in/social", {
      tenantId,
      provider: "gitlab",
      callbackURL: "/welcome",
      errorCallbackURL: "/failed",
    });
    const iss = issuerOf(idp.issuer);
    const way = await idp.authorize(data.url, "alice");
    const { location } = await browser.get(way, { query: iss === undefined ? {} : { iss } });
    return [location, idp.exchanges().length];
  }

  it.each<[string, (issuer: string) => string]>([
    ["another one's", () => "https://gitlab.com"],
    ["one that begins like the right one", (issuer) => `${issuer}/evil`],
    ["one with another port", (issuer) => issuer.replace(/\d+$/, "1")],
  ])("%s is refused, before a code leaves", async (_, issuerOf) => {
    expect(await comeBack(issuerOf)).toEqual(["/failed?error=issuer_mismatch", 0]);
  });

  it("control: the right one is good, and so is none", async () => {
    expect(await comeBack((issuer) => issuer)).toEqual(["/welcome", 1]);
    expect(await comeBack(() => undefined)).toEqual(["/welcome", 1]);
  });
});

describe("the issuer that is expected", () => {
  it("is known only where it is certain", () => {
    const known = socialProviderList.flatMap((id) => {
      const issuer = certainIssuerOf(id, {});
      return issuer ? [[id, issuer]] : [];
    });
    expect(Object.fromEntries(known)).toEqual({
      apple: "https://appleid.apple.com",
      gitlab: "https://gitlab.com",
      google: "https://accounts.google.com",
      huggingface: "https://huggingface.co",
      kakao: "https://kauth.kakao.com",
      line: "https://access.line.me",
      paybin: "https://idp.paybin.io",
      slack: "https://slack.com",
      twitch: "https://id.twitch.tv/oauth2",
      vercel: "https://vercel.com",
    });
  });

  it.each([
    ["https://gitlab.acme.example", "https://gitlab.acme.example"],
    ["https://GitLab.Acme.example", "https://gitlab.acme.example"],
    ["https://acme.example/Git", "https://acme.example/Git"],
    ["https://acme.example/git/", "https://acme.example/git"],
    ["http://127.0.0.1:4000", "http://127.0.0.1:4000"],
  ])("of a GitLab at %s is %s", (issuer, expected) => {
    expect(certainIssuerOf("gitlab", { issuer })).toBe(expected);
  });

  it("is not guessed where it depends", () => {
    for (const tenantId of ["common", "organizations", "acme.onmicrosoft.com"]) {
      expect(certainIssuerOf("microsoft", { tenantId })).toBeUndefined();
    }
    const pool = { region: "eu-west-1", userPoolId: "eu-west-1_Acme" };
    expect(certainIssuerOf("cognito", pool)).toBeUndefined();
    expect(certainIssuerOf("salesforce", { loginUrl: "a.my.salesforce.com" })).toBeUndefined();
  });
});

describe("threat: somebody else's page: an issuer on the provider's public host", () => {
  const shared = shareInstance({ tenant: { trustedProviderHosts: ["gitlab.acme.example"] } });

  const register = async (providerId: string, options: object) => {
    const { id: tenantId } = await shared.instance.createTenant();
    const body = { tenantId, providerId, ...CLIENT, options };
    const path = "/tenant/oauth-config/register";
    const { status, code, data } = await shared.operator.post<{ message?: string }>(path, body);
    return [status, code, data.message];
  };

  it.each<[string, object, string]>([
    ["gitlab", { issuer: "https://gitlab.com/evil" }, "issuer"],
    ["gitlab", { issuer: "https://gitlab.com/evil/project/" }, "issuer"],
    ["gitlab", { issuer: "https://GITLAB.com/evil" }, "issuer"],
    ["paybin", { issuer: "https://idp.paybin.io/evil" }, "issuer"],
    ["microsoft", { authority: "https://login.microsoftonline.com/evil" }, "authority"],
    ["microsoft", { authority: "https://login.microsoftonline.us/evil" }, "authority"],
    ["microsoft", { authority: "https://acme.ciamlogin.com/evil" }, "authority"],
  ])("%s with %j is refused", async (providerId, options, option) => {
    expect(await register(providerId, options)).toEqual([
      400,
      "UNTRUSTED_PROVIDER_HOST",
      `options.${option}: Leave out the path`,
    ]);
  });

  it.each<[string, object]>([
    ["gitlab", { issuer: "https://gitlab.com" }],
    ["gitlab", { issuer: "https://gitlab.com/" }],
    ["gitlab", { issuer: "https://gitlab.acme.example/git" }],
    ["paybin", { issuer: "https://idp.paybin.io" }],
    // Azure AD B2C: the directory is part of the address, and the policy stands for the tenant.
    ["microsoft", { authority: "https://acme.b2clogin.com/acme.example", tenantId: "policy" }],
    ["microsoft", { authority: "https://login.microsoftonline.com", tenantId: "acme" }],
  ])("control: %s with %j is good", async (providerId, options) => {
    expect(await register(providerId, options)).toEqual([200, undefined, undefined]);
  });
});
