import { getMigrations } from "better-auth/db/migration";
import { runInTenant } from "better-auth-tenant";
import demo from "../demo.json";
import { auth } from "./auth";

/** Brings the tables up to date and fills in what the demo needs. Leaves alone what is there. */
export async function prepareDatabase(): Promise<void> {
  await (await getMigrations(auth.options)).runMigrations();
  await addPerson({ ...demo.operator, role: "admin" });
  const tenants = await auth.api.listTenants();
  for (const { name, slug, hue, people, client } of demo.tenants) {
    const tenant =
      tenants.find((known) => known.slug === slug) ??
      (await auth.api.createTenant({ body: { name, slug, metadata: { hue } } }));
    await runInTenant(tenant.id, async () => {
      for (const person of people) await addPerson(person);
    });
    await addProvider(tenant.id, client);
  }
}

/** Adds somebody to the platform, or to the tenant around the call. */
async function addPerson(person: {
  name: string;
  email: string;
  password: string;
  role?: "admin";
}) {
  const { adapter } = await auth.$context;
  const where = [{ field: "email", value: person.email }];
  if (await adapter.findOne({ model: "user", where })) return;
  await auth.api.createUser({ body: { ...person, data: { emailVerified: true } } });
}

/** Each tenant is a client of its own at the identity provider. */
async function addProvider(tenantId: string, { id, secret }: { id: string; secret: string }) {
  const configs = await auth.api.listTenantOAuthConfigs({ query: { tenantId } });
  if (configs.some(({ providerId, readable }) => providerId === "gitlab" && readable)) return;
  await auth.api.registerTenantOAuthConfig({
    body: {
      tenantId,
      providerId: "gitlab",
      clientId: id,
      clientSecret: secret,
      options: { issuer: `http://${process.env.IDP_HOST ?? "localhost:4000"}` },
    },
  });
}
