import type { Maker } from "./makers";

const PROVIDER = "https://identity.example.com";

/** An identity provider of the place, as an administrator of it leaves it. */
export const ssoProvider: Maker = {
  name: "SSO provider",
  paths: ["/sso/register"],
  async make(side) {
    const { main, things, workshop, name } = side;
    const { adapter, tables } = workshop.subject.ctx;
    const providerId = `sso-${workshop.mark}-${name}`;
    const data = {
      providerId,
      issuer: PROVIDER,
      domain: `${providerId}.example.com`,
      userId: main.userId,
      // The column is there where the application asks for it.
      ...(tables.ssoProvider?.fields.domainVerified && { domainVerified: true }),
      oidcConfig: JSON.stringify({
        issuer: PROVIDER,
        clientId: `client-of-${providerId}`,
        clientSecret: `secret-of-${providerId}`,
        discoveryEndpoint: `${PROVIDER}/.well-known/openid-configuration`,
        authorizationEndpoint: `${PROVIDER}/authorize`,
        tokenEndpoint: `${PROVIDER}/token`,
        jwksEndpoint: `${PROVIDER}/keys`,
        pkce: true,
      }),
    };
    await side.inside(() => adapter.create({ model: "ssoProvider", data }));
    side.secrets.push(`secret-of-${providerId}`);
    Object.assign(things, { ssoProviderId: providerId, ssoDomain: data.domain });
  },
};
