import { expect, it } from "vitest";
import { checkIsolation } from "../../src/testing/index";
import { createConfigured, PLAIN } from "./configuration";

it("all 23 official plugins", async () => {
  const { auth, options } = await createConfigured(PLAIN);
  const report = await checkIsolation(auth, options);
  console.log(String(report));
  expect(report.leaks).toEqual([]);
  expect(report.failures).toEqual([]);
}, 600_000);
