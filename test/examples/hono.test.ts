import { afterAll, expect, test, vi } from "vitest";
import { browse, close, expectTwoTenants, portOf, stubEnvironment } from "./http";

// Hono's server puts its own classes into the global scope: they go again with this file.
vi.stubGlobal("Request", Request);
vi.stubGlobal("Response", Response);
afterAll(() => {
  vi.unstubAllGlobals();
});

test("Hono: each subdomain is a tenant", async () => {
  stubEnvironment();
  const { server } = await import("../../examples/hono/server");
  const port = await portOf(server);
  const at = (host: string) => {
    const origin = `http://${host}:${port}`;
    return { visit: () => browse(port, origin), me: `${origin}/me` };
  };
  await expectTwoTenants(at("acme.localhost"), at("globex.localhost"));
  const unknown = await at("nobody.localhost").visit().get("/get-session");
  expect([unknown.status, unknown.code]).toEqual([404, "TENANT_NOT_FOUND"]);
  await close(server);
});
