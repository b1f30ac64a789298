import { endpointsOf } from "./inputs";
import { createFullInstance, type Variant } from "./instance";
import { settleSide } from "./sides";
import { watchState } from "./watch";

/** Two tenants and the platform, with everything in them, and somebody who watches their state. */
export async function createMatrixWorld(variant: Variant) {
  const instance = await createFullInstance(variant);
  instance.idp.addPerson("alice");
  const tenants = {
    a: (await instance.createTenant("aa")).id,
    b: (await instance.createTenant("bb")).id,
  };
  for (const [name, tenantId] of Object.entries(tenants)) {
    for (const providerId of ["google", "gitlab"]) {
      const clientId = `${providerId}-${name}`;
      const clientSecret = `${providerId}-secret-${name}`;
      if (providerId === "gitlab") instance.idp.registerClient(clientId, clientSecret);
      await instance.api.registerTenantOAuthConfig({
        body: { tenantId, providerId, clientId, clientSecret },
      });
    }
  }
  // Makes the key that signs the tokens of all sides.
  await instance.browserAt(instance.addressOf(null)).get("/jwks");
  const sides = {
    a: await settleSide(instance, "a", tenants.a, instance.addressOf("aa")),
    b: await settleSide(instance, "b", tenants.b, instance.addressOf("bb")),
    platform: await settleSide(instance, "platform", null, instance.addressOf(null)),
  };
  const keys = {
    "a at b": await sides.a.keysAtSide(sides.b),
    "a at platform": await sides.a.keysAtSide(sides.platform),
    "platform at a": await sides.platform.keysAtSide(sides.a),
  };
  const watch = await watchState(instance, Object.values(sides));
  const endpoints = endpointsOf(instance.auth.api);
  /** What nobody was answered when it was last asked. */
  const outcomes = new Map<string, string>();
  return { instance, endpoints, sides, keys, watch, outcomes };
}

export type MatrixWorld = Awaited<ReturnType<typeof createMatrixWorld>>;
