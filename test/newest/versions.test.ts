import { readFileSync } from "node:fs";
import { betterAuth } from "better-auth";
import { expect, it } from "vitest";

it("runs on the better-auth that its lock file names", async () => {
  const folder = process.env.BETTER_AUTH === "newest" ? "test/newest/" : "";
  const lock = JSON.parse(readFileSync(`${folder}package-lock.json`, "utf8"));
  const secret = "a secret of at least thirty-two characters";
  const { version } = await betterAuth({ secret, baseURL: "http://localhost:3000" }).$context;
  expect(version).toBe(lock.packages["node_modules/better-auth"].version);
});
