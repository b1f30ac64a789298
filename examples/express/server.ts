// Express, with a path for each tenant: the pages of the tenant with the slug "acme" are at /t/acme,
// and their requests say so in a header. In the browser that is
//   tenantAuthClient({ tenantSlug: () => location.pathname.split("/")[2] })
// From the root of the repository: npm run build && npx tsx examples/express/server.ts
import { betterAuth } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import { isAPIError } from "better-auth/api";
import { fromNodeHeaders, toNodeHandler } from "better-auth/node";
import { bySlug, tenantAuth } from "better-auth-tenant";
import express, { type ErrorRequestHandler } from "express";

const auth = betterAuth({
  baseURL: {
    allowedHosts: ["localhost:*"],
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
  plugins: [
    tenantAuth({
      resolveTenantId: bySlug(),
      // All tenants share one host, so that somebody may be signed in at several of them.
      sessionCookies: "per-tenant",
    }),
  ],
});

for (const [name, slug] of Object.entries({ Acme: "acme", Globex: "globex" })) {
  await auth.api.createTenant({ body: { name, slug } });
}

const app = express();
app.all("/api/auth/{*path}", toNodeHandler(auth));
app.get("/t/:slug/me", async (req, res) => {
  const headers = fromNodeHeaders(req.headers);
  headers.set("x-tenant-slug", req.params.slug);
  const session = await auth.api.getSession({ headers });
  res.json({ email: session?.user.email, tenantId: session?.session.tenantId });
});
// A tenant that does not exist is a 404, here as at better-auth's own endpoints.
const answerError: ErrorRequestHandler = (error, _req, res, next) =>
  isAPIError(error) ? void res.status(error.statusCode).json(error.body) : next(error);
app.use(answerError);

export const server = app.listen(Number(process.env.PORT ?? 3000));
