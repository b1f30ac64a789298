import { bearer, organization } from "better-auth/plugins";
import { expect, it } from "vitest";
import { checkIsolation } from "../../src/testing/index";
import { createInstance } from "../support/instance";

it("an ordinary application: nothing crosses the border, and everything was tried", async () => {
  const { auth } = await createInstance({
    plugins: [organization(), bearer()],
    tenant: { scopedModels: ["organization", "member", "invitation"] },
  });
  const report = await checkIsolation(auth);
  console.log(String(report));
  expect(report.leaks).toEqual([]);
  expect(report.failures).toEqual([]);
}, 60_000);
