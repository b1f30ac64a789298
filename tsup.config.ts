import { defineConfig } from "tsup";

export default defineConfig({
  entry: {
    index: "src/index.ts",
    client: "src/client.ts",
    invitations: "src/features/invitations/index.ts",
    "invitations-client": "src/features/invitations/client.ts",
    domains: "src/features/domains/index.ts",
    "domains-client": "src/features/domains/client.ts",
    testing: "src/testing/index.ts",
  },
  format: "esm",
  target: "es2022",
  platform: "neutral",
  outDir: process.env.BUILD_DIR ?? "dist",
  clean: true,
  sourcemap: true,
  dts: true,
});
