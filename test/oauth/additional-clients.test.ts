import { expect, it } from "vitest";
import { publishedKeys, signToken } from "../support/jwt";
import { fakeNetwork } from "../support/network";
import { shareInstance } from "../support/shared";

const shared = shareInstance();

const POOL = {
  domain: "acme.auth.eu-west-1.amazoncognito.com",
  region: "eu-west-1",
  userPoolId: "eu-west-1_Acme",
};

/** The providers that better-auth takes several client ids for, and who signs their id tokens. */
const providers: Record<string, { issuer: string; options?: object; claims?: object }> = {
  apple: { issuer: "https://appleid.apple.com" },
  google: { issuer: "https://accounts.google.com" },
  facebook: { issuer: "https://www.facebook.com" },
  microsoft: {
    issuer: "https://login.microsoftonline.com/acme/v2.0",
    options: { tenantId: "acme" },
    claims: { tid: "acme", oid: "alice" },
  },
  cognito: {
    issuer: `https://cognito-idp.eu-west-1.amazonaws.com/${POOL.userPoolId}`,
    options: POOL,
  },
};

it.each(Object.entries(providers))(
  "%s: id tokens of the tenant's other clients are good, and of nobody else",
  async (provider, { issuer, options, claims }) => {
    fakeNetwork(() => Response.json(publishedKeys));
    const { operator, instance } = shared;
    const configure = async (name: string, additionalClientIds?: string[]) => {
      const { id: tenantId } = await instance.createTenant();
      const answer = await operator.post<{ clientId: string }>("/tenant/oauth-config/register", {
        tenantId,
        providerId: provider,
        clientId: `${name}-web`,
        clientSecret: `${name}-client-secret`,
        options: { ...options, ...(additionalClientIds && { additionalClientIds }) },
      });
      expect([answer.status, answer.data.clientId]).toEqual([200, `${name}-web`]);
      return tenantId;
    };
    const acme = await configure("acme", ["acme-phone", "acme-watch"]);
    const other = await configure("other");
    const show = async (tenantId: string, aud: string) => {
      const user = { sub: "alice", email: "alice@example.com", name: "Alice" };
      const token = signToken({ iss: issuer, aud, ...user, ...claims });
      const body = { tenantId, provider, idToken: { token } };
      const { status } = await instance.browser().post("/tenant/sign-in/social", body);
      return [aud, status];
    };
    for (const aud of ["acme-web", "acme-phone", "acme-watch"]) {
      expect(await show(acme, aud)).toEqual([aud, 200]);
      expect(await show(other, aud)).toEqual([aud, 401]);
    }
    expect(await show(other, "other-web")).toEqual(["other-web", 200]);
    for (const aud of ["other-web", "acme", "acme-phone ", ""]) {
      expect(await show(acme, aud)).toEqual([aud, 401]);
    }
    // People are sent to the provider as the first of them.
    const start = await instance.browser().post<{ url: string }>("/tenant/sign-in/social", {
      tenantId: acme,
      provider,
    });
    expect(new URL(start.data.url).searchParams.get("client_id")).toBe("acme-web");
  },
);
