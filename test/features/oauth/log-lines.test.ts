import type { AuthContext } from "better-auth";
import type { OAuthProvider } from "better-auth/oauth2";
import { expect, it, vi } from "vitest";
import { explainingRefusals } from "../../../src/features/oauth/provider";

const OWN = "in the tenant's OAuth config, with tenant.oauthConfig.check.";
const GLOBAL = "in socialProviders.x: the tenant has no enabled config.";

it.each<[unknown, reason: string]>([
  [{ status: 401, error: "invalid_client" }, "invalid_client"],
  [{ status: 401 }, "status 401"],
  [{ status: 400, error: "invalid_grant" }, "invalid_grant"],
  // Anything else than an OAuth error code may be a secret.
  [{ status: 400, error: "Secret: acme-client-secret" }, "status 400"],
  [{ status: 400, error: { client: 1 } }, "status 400"],
  [{ status: 400, error: "a".repeat(41) }, "status 400"],
  [new TypeError("fetch failed"), "no answer"],
  [undefined, "no answer"],
])("a provider that fails with %j is explained, and fails", async (thrown, reason) => {
  const error = vi.fn();
  const ctx = { logger: { error } } as unknown as AuthContext;
  const provider = { validateAuthorizationCode: () => Promise.reject(thrown) };
  for (const [isOwn, place] of [
    [true, OWN],
    [false, GLOBAL],
  ] as const) {
    const key = { tenantId: "acme", providerId: "x" };
    const failing = explainingRefusals(ctx, provider as unknown as OAuthProvider, key, isOwn);
    const code = failing.validateAuthorizationCode({ code: "c", redirectURI: "r" });
    expect(await code.catch((failed) => [failed])).toEqual([thrown]);
    const line = error.mock.lastCall?.[0];
    expect(line).toContain("The sign-in at tenant acme with x failed");
    expect(line).toContain(`(${reason}). Check the client id`);
    expect(line).toContain(place);
    expect(line).not.toContain("acme-client-secret");
  }
});
