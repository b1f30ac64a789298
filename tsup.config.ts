import { defineConfig } from "tsup";

/** The types. The code is built by rolldown.config.js. */
export default defineConfig({
  entry: {
    index: "src/index.ts",
    client: "src/client.ts",
    invitations: "src/invitations/index.ts",
    "invitations-client": "src/invitations/client.ts",
    domains: "src/domains/index.ts",
    "domains-client": "src/domains/client.ts",
    testing: "src/testing/index.ts",
  },
  format: "esm",
  target: "es2022",
  outDir: process.env.BUILD_DIR ?? "dist",
  dts: { only: true },
});
