import { getMigrations } from "better-auth/db/migration";
import { runInTenant } from "better-auth-tenant";
import demo from "../demo.json";
import { auth } from "./auth";
import { explainDatabaseError } from "./database";

/** Prepares the database, or says why that is not possible and ends the server. */
export async function prepareDatabase(): Promise<void> {
  try {
    await migrateAndFill();
  } catch (error) {
    console.error(explainDatabaseError(error));
    process.exit(1);
  }
}

/**
 * Brings the tables up to date and fills in what the demo needs. Leaves alone what is there.
 *
 * DO NOT COPY: an operator and administrators with passwords that everyone can read in `demo.json`.
 */
async function migrateAndFill(): Promise<void> {
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
async function addPerson(person: { name: string; email: string; password: string; role?: string }) {
  const { adapter } = await auth.$context;
  const where = [{ field: "email", value: person.email }];
  if (await adapter.findOne({ model: "user", where })) return;
  const { role = "user", ...body } = person;
  await auth.api.createUser({
    body: { ...body, role: role as "admin" | "user", data: { emailVerified: true } },
  });
}

/**
 * Each tenant is a client of its own at the identity provider. The address of that one changes with
 * IDP_PORT, and a config that points to the old one would sign nobody in.
 */
async function addProvider(tenantId: string, { id, secret }: { id: string; secret: string }) {
  const issuer = `http://${process.env.IDP_HOST ?? "localhost:4000"}`;
  const configs = await auth.api.listTenantOAuthConfigs({ query: { tenantId } });
  const known = configs.find(({ providerId }) => providerId === "gitlab");
  const isOurs = known?.clientId === id && known.options?.issuer !== issuer;
  if (known?.readable && !isOurs) return;
  await auth.api.registerTenantOAuthConfig({
    body: {
      tenantId,
      providerId: "gitlab",
      clientId: id,
      clientSecret: secret,
      options: { issuer },
      enabled: known?.enabled ?? true,
    },
  });
}
