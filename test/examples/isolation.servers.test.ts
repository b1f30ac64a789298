import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getMigrations } from "better-auth/db/migration";
import { checkIsolation } from "better-auth-tenant/testing";
import { expect, it, onTestFinished, vi } from "vitest";
import { oneOf } from "../isolation/depth";

it("the Next.js example keeps its tenants apart", { timeout: 120_000 }, async () => {
  const dir = mkdtempSync(join(tmpdir(), "isolation-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  vi.stubEnv("DATA_DIR", dir);
  vi.stubEnv("BETTER_AUTH_SECRET", "a test secret that is long enough for everybody");
  onTestFinished(() => void vi.unstubAllEnvs());
  const { auth } = await import("../../examples/nextjs/lib/auth");
  await (await getMigrations(auth.options)).runMigrations();

  const report = await checkIsolation(auth, { extent: oneOf(9, 1) });
  expect(report.leaks).toEqual([]);
  expect(report.failures).toEqual([]);
  expect(report.untried).toEqual([]);
});
