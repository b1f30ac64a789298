import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const root = join(import.meta.dirname, "../..");

/** Runs a command and returns what it prints. If it fails, the error has all that it said. */
export async function run(
  { cwd, env = {} }: { cwd: string; env?: Record<string, string> },
  command: string,
  ...args: string[]
): Promise<string> {
  try {
    const options = { cwd, env: { ...process.env, ...env } };
    return (await promisify(execFile)(command, args, options)).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${command} ${args.join(" ")}\n${stdout}\n${stderr}`);
  }
}

/** The package as it would be published, and the place where it was built. */
export interface Packed {
  checkout: string;
  tarball: string;
  files: string[];
}

/** Builds and packs the package in a copy of what it is made of. */
export async function packPackage(): Promise<Packed> {
  const checkout = mkdtempSync(join(tmpdir(), "better-auth-tenant-checkout-"));
  const configs = ["tsconfig.json", "tsup.config.ts"];
  for (const name of [
    ...configs,
    "src",
    "package.json",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "docs",
  ]) {
    cpSync(join(root, name), join(checkout, name), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(checkout, "node_modules"));
  await run({ cwd: checkout }, "npm", "run", "build");
  type Report = { filename: string; files: { path: string }[] };
  const packed = await run({ cwd: checkout }, "npm", "pack", "--json");
  const [{ filename, files }] = JSON.parse(packed) as [Report];
  return { checkout, tarball: join(checkout, filename), files: files.map(({ path }) => path) };
}
