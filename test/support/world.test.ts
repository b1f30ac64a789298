import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { createWorld, expectRefused } from "./world";

it("R3: a session of Acme cannot be revoked at Globex, and is none there", async () => {
  const { as, at, unchanged, whoIs } = await createWorld();
  const jane = await as("jane", "acme");
  const other = await as("jane", "globex");
  await unchanged(() => other.post("/revoke-session", { token: jane.token }));
  expect(await whoIs(jane)).toMatchObject({ id: jane.id });
  expectRefused(await at("globex", jane).post("/update-user", { name: "X" }), 401, "UNAUTHORIZED");
});

it("what stands above is the example of CONTRIBUTING.md", () => {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
  const [, example = "?"] = /```ts\n(.*?)```/s.exec(read("../../CONTRIBUTING.md")) ?? [];
  expect(read("world.test.ts")).toContain(example);
});
