import { createFullInstance, type Variant } from "./instance";
import { settleSide } from "./sides";
import { watchDatabase } from "./state";

/** Two tenants and the platform, with everything in them, and somebody who watches the database. */
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
  await instance.browser().get("/jwks");
  const sides = {
    a: await settleSide(instance, "a", tenants.a),
    b: await settleSide(instance, "b", tenants.b),
    platform: await settleSide(instance, "platform", null),
  };
  const keys = {
    "a at b": await sides.a.keysAtSide(sides.b),
    "a at platform": await sides.a.keysAtSide(sides.platform),
    "platform at a": await sides.platform.keysAtSide(sides.a),
  };
  const watch = await watchDatabase(instance.database, Object.values(sides));
  return { instance, sides, keys, watch };
}

export type MatrixWorld = Awaited<ReturnType<typeof createMatrixWorld>>;
