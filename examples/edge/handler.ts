// A plain fetch handler for runtimes without Node's modules, with a domain for each tenant. The
// runtime has to have AsyncLocalStorage: on Cloudflare that is the flag nodejs_als or nodejs_compat.
import { memoryAdapter } from "better-auth/adapters/memory";
import { isAPIError } from "better-auth/api";
import { betterAuth } from "better-auth/minimal";
import { byDomain, tenantAuth } from "better-auth-tenant";

export const auth = betterAuth({
  baseURL: {
    allowedHosts: ["login.acme.test", "login.globex.test", "example.test"],
    fallback: "https://example.test",
  },
  secret: "an example secret, to be replaced by one of your own",
  // Gone with the isolate. Your own database goes here.
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
      resolveTenantId: byDomain({
        "login.acme.test": { slug: "acme" },
        "login.globex.test": { slug: "globex" },
      }),
    }),
  ],
});

export default {
  async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith("/api/auth/")) return auth.handler(request);
    try {
      const session = await auth.api.getSession({ headers: request.headers });
      return Response.json({ email: session?.user.email, tenantId: session?.session.tenantId });
    } catch (error) {
      // A tenant that does not exist is a 404, here as at better-auth's own endpoints.
      if (!isAPIError(error)) throw error;
      return Response.json(error.body, { status: error.statusCode });
    }
  },
};
