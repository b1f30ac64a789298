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
  const [name, path] =
    protocol === "oidc" ? ["Redirect URI", "callback"] : ["ACS URL", "saml2/sp/acs"];
  const waysBack = origins.map((origin, index) => ({
    label: index === 0 ? name : `${name} for ${new URL(origin).host}`,
    value: `${origin}/api/auth/sso/${path}/${providerId}`,
  }));
  if (protocol === "oidc") return waysBack;
  const value = entityId(providerId, origins);
  return [...waysBack, { label: "Entity ID (audience), and where our metadata is", value }];
}

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
