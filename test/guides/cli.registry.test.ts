import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { PASSWORD } from "../support/instance";
import { blocksIn, root } from "../support/pages";

// What creates the tables, as the README says. It takes a while to start, and the second way asks
// the registry for tsx, so it runs with the package: npm run test:package.
describe("migrating", () => {
  let directory: string;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "better-auth-tenant-cli-"));
    vi.resetModules();
    vi.stubEnv("DATABASE_FILE", join(directory, "auth.db"));
    onTestFinished(() => {
      rmSync(directory, { recursive: true });
      vi.unstubAllEnvs();
    });
  });

  async function run(cwd: string, command: string, ...args: string[]) {
    const { stdout } = await promisify(execFile)(command, args, { cwd });
    return stdout;
  }

  async function expectTables() {
    const { auth } = await import("./cli-auth");
    const { id } = await auth.api.createTenant({ body: { name: "Acme", slug: "acme" } });
    const person = { name: "Al", email: "al@example.com", password: PASSWORD };
    const { user } = await auth.api.signUpEmailTenant({ body: { ...person, tenantId: id } });
    expect(user.tenantId).toBe(id);
  }

  test("the CLI creates the tables, and once is enough", async () => {
    // In the version that goes with our better-auth.
    const cli = join(root, "node_modules/auth/dist/index.mjs");
    const args = [cli, "migrate", "--yes", "--config", "test/guides/cli-auth.ts"];
    const migrate = () => run(root, process.execPath, ...args);
    expect(await migrate()).toContain("migration was completed successfully");
    expect(await migrate()).toContain("No migrations needed");
    await expectTables();
  }, 120_000);

  // A fresh Next.js project has no type, which makes its files CommonJS.
  test.each([{}, { type: "module" }])(
    "the script for Node 20 does so too, in a project with %j",
    async (manifest) => {
      const script = blocksIn("README.md").find(({ code }) => code.includes("runMigrations"));
      const [, path = ""] = /^\/\/ (\S+)\n/.exec(script?.code ?? "") ?? [];
      const write = (name: string, text: string) => {
        mkdirSync(join(directory, name, ".."), { recursive: true });
        writeFileSync(join(directory, name), text);
      };
      write("package.json", JSON.stringify({ private: true, ...manifest }));
      const application = JSON.stringify(join(root, "test/guides/cli-auth"));
      write("lib/auth.ts", `export { auth } from ${application};`);
      write(path, script?.code ?? "");
      symlinkSync(join(root, "node_modules"), join(directory, "node_modules"));
      const migrate = () => run(directory, "npx", "--yes", "tsx@4.23.15", path);
      await migrate();
      await migrate();
      await expectTables();
    },
    120_000,
  );
});
