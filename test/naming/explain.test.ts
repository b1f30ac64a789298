import { describe, expect, it } from "vitest";
import { SUBDOMAINS, shareWorld, type World } from "../support/world";

/** What the log says where a sign-in in a tenant names none. */
async function warnings({ logs }: World, browser: ReturnType<World["at"]>) {
  logs.length = 0;
  expect((await browser.post("/tenant/sign-in/email", {})).code).toBe("TENANT_ID_REQUIRED");
  return logs.filter((line) => line.startsWith("warn"));
}

// The mistakes themselves: test/guides/troubleshooting.test.ts.
describe("where nothing names a tenant, the log says so of a header", () => {
  const world = shareWorld();
  const hosts = shareWorld({ hosts: SUBDOMAINS });

  it("that has a slug in it, whatever its name", async () => {
    const [line, ...more] = await warnings(world, world.browser({ "x-shop": "acme" }));
    expect(line).toContain('set resolveTenantId: bySlug({ header: "x-shop" }) in tenantAuth()');
    expect(more).toEqual([]);
  });

  it.each([
    ["that has no tenant in it", "x-shop", "nobody"],
    ["that is not the application's", "shop", "acme"],
    ["that is a proxy's", "x-forwarded-prefix", "acme"],
  ])("and nothing of one %s", async (_, name, value) => {
    expect(await warnings(world, world.browser({ [name]: value }))).toEqual([]);
  });

  it("and nothing of the one that is read, where the host says that there is none", async () => {
    const browser = hosts.at("platform").fork({ "X-Tenant-ID": hosts.ids.acme });
    expect(await warnings(hosts, browser)).toEqual([]);
  });
});
