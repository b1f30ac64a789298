import { betterAuth } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import { expect, it } from "vitest";
import { getTenantId, runInTenant, tenantAuth } from "../../src/index";

// A file of its own, because the first instance in a process starts what all others use.
it("R3: a script that enters a tenant before any instance has started is in that tenant", async () => {
  const models = ["user", "session", "account", "verification", "tenant", "tenantOauthConfig"];
  const tables = Object.fromEntries(models.map((model) => [model, []]));
  const auth = betterAuth({
    secret: "a secret that is long enough for tests",
    baseURL: "http://localhost:3000",
    database: memoryAdapter(tables),
    plugins: [tenantAuth()],
  });
  const data = { identifier: "a", value: "b", expiresAt: new Date() };
  const row = await runInTenant("acme", async () => {
    expect(getTenantId()).toBe("acme");
    const { adapter } = await auth.$context;
    return adapter.create({ model: "verification", data });
  });
  expect(row).toMatchObject({ tenantId: "acme" });
});
