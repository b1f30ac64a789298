import type { NextConfig } from "next";

const config: NextConfig = {
  // The repository around this folder has a lock file too; this folder is the application.
  turbopack: { root: import.meta.dirname },
  // Nothing is gained by bundling what stays on the server, and the build is a lot faster.
  serverExternalPackages: [
    "better-auth",
    "better-auth-tenant",
    "@better-auth/passkey",
    "@better-auth/sso",
    "samlify",
  ],
  // `npm run typecheck` looks at the types, and at the tests as well.
  typescript: { ignoreBuildErrors: true },
  poweredByHeader: false,
  headers: async () => [
    {
      source: "/:path*",
      headers: [
        {
          key: "Content-Security-Policy",
          value: "base-uri 'self'; frame-ancestors 'none'; object-src 'none'",
        },
        { key: "X-Content-Type-Options", value: "nosniff" },
        // The page for a new password has a token in its address.
        { key: "Referrer-Policy", value: "same-origin" },
      ],
    },
  ],
};

export default config;
