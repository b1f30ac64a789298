import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { generateDrizzleSchema } from "auth/api";
import type { BetterAuthOptions } from "better-auth";
import { admin } from "better-auth/plugins";
import type { DBAdapter } from "better-auth/types";
import { tenantAuth } from "../../src/index";
import { generateId, type IdKind, plugins } from "./store";

export type DrizzleProvider = "pg" | "sqlite" | "mysql";

/** The options that the suite starts better-auth with, as far as the tables are concerned. */
export const tableOptions = (ids: IdKind): BetterAuthOptions => ({
  plugins: [tenantAuth(), admin(), ...plugins()],
  advanced: { database: { generateId: generateId(ids) } },
});

/** The schema for Drizzle, by the generator behind `npx auth generate`. */
export async function generateDrizzle(provider: DrizzleProvider, ids: IdKind): Promise<string> {
  const { code } = await generateDrizzleSchema({
    options: tableOptions(ids),
    adapter: { options: { provider } } as unknown as DBAdapter,
    file: "there-is-no-such-file.ts",
  });
  if (!code) throw new Error("nothing was generated");
  return code;
}

/** A place where packages are found, and where nobody looks for sources. */
export function writeGenerated(name: string, code: string): string {
  const folder = join(import.meta.dirname, "../../node_modules/.cache/better-auth-tenant");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${process.pid}-${name}`);
  writeFileSync(file, code);
  return file;
}

const modules = new Map<string, Promise<Record<string, unknown>>>();

/** The tables and relations that the generated schema exports. It has no types in it, so Node reads it. */
export function loadDrizzle(provider: DrizzleProvider, ids: IdKind) {
  const name = `${provider}-${ids}.mjs`;
  const known = modules.get(name) ?? load();
  modules.set(name, known);
  return known;

  async function load() {
    const file = writeGenerated(name, await generateDrizzle(provider, ids));
    const schema = await import(/* @vite-ignore */ file);
    rmSync(file);
    return { ...schema } as Record<string, unknown>;
  }
}
