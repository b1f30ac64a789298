import { defineConfig } from "tsup";

/**
 * The types, of declarations that tsc has written: from the source, tsup would check all of it again
 * for each entry. The code is built by rolldown.config.js.
 */
export default defineConfig({
  entry: {
    index: ".types/index.d.ts",
    client: ".types/client.d.ts",
    invitations: ".types/invitations/index.d.ts",
    "invitations-client": ".types/invitations/client.d.ts",
    domains: ".types/domains/index.d.ts",
    "domains-client": ".types/domains/client.d.ts",
    testing: ".types/testing/index.d.ts",
  },
  format: "esm",
  target: "es2022",
  outDir: process.env.BUILD_DIR ?? "dist",
  dts: { only: true },
});
