import { expect, it } from "vitest";
import { tenantDomains } from "../../../src/features/domains/index";
import { databases } from "../../support/database";
import { outcome } from "../../support/world";
import { ADA, createSSOWorld, oidc } from "../enterprise/world";
import { createDns } from "./world";

it.each(databases)(
  "a domain that the tenant has verified is verified for its identity providers, while it has it: %s",
  async (database) => {
    const dns = createDns();
    const plugin = tenantDomains({ resolveTxt: dns.resolveTxt });
    const world = await createSSOWorld({
      database,
      sso: { domainVerification: { enabled: true } },
      plugins: [plugin],
    });
    const api = world.api as typeof world.api & (typeof plugin)["endpoints"];
    const own = async (place: "acme" | "globex", domain: string) => {
      const body = { tenantId: world.ids[place], domain };
      dns.publish((await api.addTenantDomain({ body })).record);
      return api.verifyTenantDomain({ body });
    };
    const offered = async () => {
      const query = { tenantId: world.ids.acme };
      type Methods = { sso: { id: string }[] };
      const { data } = await world
        .at("platform")
        .get<Methods>("/tenant/sign-in-methods", { query });
      return data.sso.map(({ id }) => id);
    };
    const admin = await world.as("admin", "acme");
    const several = { domain: "acme.example, acme-2.example" };
    await world.register("acme", "acme-okta");
    await world.register("acme", oidc(world.provider, "acme-two", several));
    await world.change("acme", { policy: { emailDomains: "verified" } });
    expect(await offered()).toEqual([]);
    expect((await world.start("acme", "acme-okta")).status).toBe(401);
    // Not by a record of sso() itself, which nothing would check again.
    for (const path of ["/sso/request-domain-verification", "/sso/verify-domain"]) {
      const answer = await admin.post(path, { providerId: "acme-okta" });
      expect(outcome(answer), path).toEqual([403, "PLATFORM_ONLY"]);
    }
    // Globex has verified it: that says nothing about Acme's provider.
    await own("globex", "acme.example");
    expect(await offered()).toEqual([]);
    await own("acme", "acme.example");
    expect(await offered()).toEqual(["acme-okta"]);
    // The provider proves the address of its domain.
    const { who } = await world.ssoSignIn("acme", "acme-okta");
    expect(who).toMatchObject({ email: ADA, tenantId: world.ids.acme });
    await own("acme", "acme-2.example");
    expect(await offered()).toEqual(["acme-okta", "acme-two"]);
    // Nothing of it is stored with the provider, so it ends with the verification.
    await own("globex", "acme.example");
    expect(await offered()).toEqual([]);
    expect((await world.start("acme", "acme-okta")).status).toBe(401);
  },
);
