import type { AuthContext } from "better-auth";
import type { OAuthProvider } from "better-auth/oauth2";
import { expect, it, vi } from "vitest";
import { explainingRefusals } from "../../src/oauth/log-lines";

const REDIRECT = "Mostly the redirect URI is not the one that is registered at the provider";
const OWN = "The client id or the client secret in the tenant's OAuth config is wrong";
const GLOBAL =
  "The tenant has no enabled config of its own, and the credentials in socialProviders.x";
const AWAY = "The provider cannot be reached from this server.";

it.each<[unknown, reason: string, own: string, global: string]>([
  [{ status: 401, error: "invalid_client" }, "invalid_client", OWN, GLOBAL],
  [{ status: 400, error: "unauthorized_client" }, "unauthorized_client", OWN, GLOBAL],
  [{ status: 401 }, "status 401", OWN, GLOBAL],
  [{ status: 400, error: "invalid_grant" }, "invalid_grant", REDIRECT, REDIRECT],
  [{ status: 500 }, "status 500", REDIRECT, REDIRECT],
  // What is no word may be anything.
  [{ status: 400, error: "Secret: acme-client-secret" }, "status 400", REDIRECT, REDIRECT],
  [{ status: 400, error: { client: 1 } }, "status 400", REDIRECT, REDIRECT],
  [{ status: 400, error: "a".repeat(41) }, "status 400", REDIRECT, REDIRECT],
  [new TypeError("fetch failed"), "no answer", AWAY, AWAY],
  [undefined, "no answer", AWAY, AWAY],
])("a provider that fails with %j is explained, and fails", async (thrown, reason, ...advice) => {
  const error = vi.fn();
  const ctx = { logger: { error } } as unknown as AuthContext;
  const provider = { validateAuthorizationCode: () => Promise.reject(thrown) };
  for (const isOwn of [true, false]) {
    const key = { tenantId: "acme", providerId: "x" };
    const failing = explainingRefusals(ctx, provider as unknown as OAuthProvider, key, isOwn);
    const code = failing.validateAuthorizationCode({ code: "c", redirectURI: "r" });
    expect(await code.catch((failed) => [failed])).toEqual([thrown]);
    const line = error.mock.lastCall?.[0];
    expect(line).toContain("The sign-in at tenant acme with x failed");
    expect(line).toContain(`(${reason}). ${advice[isOwn ? 0 : 1]}`);
    expect(line).not.toContain("acme-client-secret");
  }
});
