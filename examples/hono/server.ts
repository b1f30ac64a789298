// Hono, with a subdomain for each tenant: acme.localhost:3000 is the tenant with the slug "acme".
// From the root of the repository: npm run build && npx tsx examples/hono/server.ts
import { serve } from "@hono/node-server";
import { betterAuth } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import { isAPIError } from "better-auth/api";
import { bySubdomain, tenantAuth } from "better-auth-tenant";
import { Hono } from "hono";

export const auth = betterAuth({
  baseURL: {
    allowedHosts: ["localhost:*", "*.localhost:*"],
    protocol: "http",
    fallback: "http://localhost:3000",
  },
  secret: process.env.BETTER_AUTH_SECRET,
  // Gone when the server stops. Your own database goes here.
  database: memoryAdapter({
    user: [],
    session: [],
    account: [],
    verification: [],
    tenant: [],
    tenantOauthConfig: [],
  }),
  emailAndPassword: { enabled: true },
  plugins: [tenantAuth({ resolveTenantId: bySubdomain({ baseDomain: "localhost" }) })],
});

for (const [name, slug] of Object.entries({ Acme: "acme", Globex: "globex" })) {
  await auth.api.createTenant({ body: { name, slug } });
}

const app = new Hono();
app.on(["GET", "POST"], "/api/auth/*", (c) => auth.handler(c.req.raw));
app.get("/me", async (c) => {
  const session = await auth.api.getSession({ headers: c.req.raw.headers });
  return c.json({ email: session?.user.email, tenantId: session?.session.tenantId });
});
// A tenant that does not exist is a 404, here as at better-auth's own endpoints.
app.onError((error, c) => {
  if (!isAPIError(error)) throw error;
  return c.json(error.body, error.statusCode as 404);
});

export const server = serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) });
