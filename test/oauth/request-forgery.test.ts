import { expect, it } from "vitest";
import { createInstance } from "../support/instance";
import { interceptFetch } from "../support/providers";

// Nothing that a manager stores is an address that the server calls: the redirect URI is only
// ever handed to the browser and to the provider.
it("threat: server-side request forgery: a stored redirect URI is never called", async () => {
  const seen = interceptFetch({});
  const instance = await createInstance();
  const { id: tenantId } = await instance.createTenant();
  const redirectURI = "https://internal.example/metadata";
  const operator = await instance.operator();
  const config = { tenantId, providerId: "github", clientId: "id", clientSecret: "secret" };
  const registered = await operator.browser.post("/tenant/oauth-config/register", {
    ...config,
    redirectURI,
  });
  expect(registered.status).toBe(200);
  await operator.browser.get("/tenant/oauth-config/list", { query: { tenantId } });
  const browser = instance.browser();
  const { data } = await browser.post<{ url: string }>("/tenant/sign-in/social", {
    tenantId,
    provider: "github",
  });
  const sentTo = new URL(data.url);
  expect(sentTo.searchParams.get("redirect_uri")).toBe(redirectURI);
  expect(seen).toEqual([]);
  const state = sentTo.searchParams.get("state") ?? "";
  await browser.get("/tenant/callback/github", { query: { code: "any", state } });
  expect(seen.map(({ url }) => new URL(url).host)).toEqual(["github.com"]);
});
