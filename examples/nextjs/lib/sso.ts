import type { auth } from "./auth";

type Provider = Awaited<ReturnType<typeof auth.api.listSSOProviders>>["providers"][number];

export type Protocol = "oidc" | "saml";

export const PROTOCOLS: Record<Protocol, string> = { oidc: "OpenID Connect", saml: "SAML" };

/** Of an identity provider, what the browser needs to know. There is no secret in it. */
export function shownProvider({ providerId, type, domain, issuer, ...configs }: Provider) {
  return {
    ...{ providerId, domain },
    type: type as Protocol,
    /** Where people are sent to. */
    address: type === "saml" ? (configs.samlConfig?.entryPoint ?? "") : issuer,
    clientId: configs.oidcConfig?.clientIdLastFour ?? null,
  };
}

export type IdentityProvider = ReturnType<typeof shownProvider>;

interface Address {
  label: string;
  value: string;
}

/** What an identity provider has to be told. People sign in at two addresses, and come back there. */
export function addressesFor(protocol: Protocol, providerId: string, origins: string[]): Address[] {
  const api = origins.map((origin) => `${origin}/api/auth/sso`);
  if (protocol === "oidc") {
    return api.map((base) => ({ label: "Redirect URI", value: redirectURI(base, providerId) }));
  }
  return [
    ...api.map((base) => ({ label: "ACS URL", value: `${base}/saml2/sp/acs/${providerId}` })),
    { label: "Entity ID, and where our metadata is", value: entityId(providerId, origins) },
  ];
}

const redirectURI = (base: string, providerId: string) => `${base}/callback/${providerId}`;

/** What this application is called at the identity provider. It has to be an address. */
export const entityId = (providerId: string, [origin]: string[]) =>
  `${origin}/api/auth/sso/saml2/sp/metadata?providerId=${providerId}`;

/** "@Example.com; example.org" as better-auth wants it. */
export const domainsFrom = (text: string) =>
  text
    .toLowerCase()
    .split(/[\s,;]+/)
    .map((domain) => domain.replace(/^@/, ""))
    .filter(Boolean)
    .join(",");
