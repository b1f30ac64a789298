import { rmSync } from "node:fs";
import type { TestProject } from "vitest/node";
import { dropDatabases } from "./database";
import { type Packed, packPackage } from "./processes";

declare module "vitest" {
  interface ProvidedContext {
    packed: Packed;
  }
}

/**
 * Says which part of the long lists a run takes, and what a run with nothing but Node does not
 * cover; with servers, leaves nothing behind.
 */
export default async function setup(project: TestProject) {
  const { name } = project;
  // The workers inherit it.
  process.env.TEST_SEED ??= String(Math.floor(Math.random() * 60));
  console.log(`TEST_SEED=${process.env.TEST_SEED}`);
  if (name === "servers" || name === "prisma") return () => dropDatabases(process.pid);
  if (name === "registry") {
    const packed = await packPackage();
    project.provide("packed", packed);
    return () => rmSync(packed.checkout, { recursive: true });
  }
  if (name !== "node") return undefined;
  const skipped = [
    "PostgreSQL, MariaDB, Redis, the soak test and most cases of each matrix (npm run test:servers runs them, on 127.0.0.1)",
    "Prisma (npm run test:prisma)",
    "clusters of servers (npm run test:clusters)",
    "the packed package in fresh projects (npm run test:package)",
  ];
  return console.log(`\nSkipped: ${skipped.join("; ")}.\n`);
}
