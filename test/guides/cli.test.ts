import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test, vi } from "vitest";
import { PASSWORD } from "../support/instance";
import { root } from "../support/markdown";

// What `npx auth migrate` runs, in the version that goes with our better-auth. It takes a while to
// start, so it runs with the package: npm run test:package.
test.runIf(process.env.TEST_PACKAGE)(
  "the CLI creates the tables, and once is enough",
  async () => {
    const directory = mkdtempSync(join(tmpdir(), "better-auth-tenant-cli-"));
    onTestFinished(() => {
      rmSync(directory, { recursive: true });
      vi.unstubAllEnvs();
    });
    vi.stubEnv("DATABASE_FILE", join(directory, "auth.db"));
    const migrate = async () => {
      const cli = join(root, "node_modules/auth/dist/index.mjs");
      const args = [cli, "migrate", "--yes", "--config", "test/guides/cli-auth.ts"];
      const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root });
      return stdout;
    };
    expect(await migrate()).toContain("migration was completed successfully");
    expect(await migrate()).toContain("No migrations needed");

    const { auth } = await import("./cli-auth");
    const { id } = await auth.api.createTenant({ body: { name: "Acme", slug: "acme" } });
    const person = { name: "Al", email: "al@example.com", password: PASSWORD };
    const { user } = await auth.api.signUpEmailTenant({ body: { ...person, tenantId: id } });
    expect(user.tenantId).toBe(id);
  },
  120_000,
);
