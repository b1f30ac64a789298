import { expect, it } from "vitest";
import { checkIsolation } from "../../../src/testing/index";
import { applications } from "./index";

// What the kit says about applications that its authors have not written.

const holes = applications.filter(({ hole }) => hole);
const sound = applications.filter(({ hole }) => !hole);

it.each(holes)("finds the hole of $name, or asks for what it needs", async (application) => {
  const { auth, options } = await application.build();
  const report = await checkIsolation(auth, { ...options, progress: false });
  const endpoint = application.endpoint ?? "";
  const found = report.leaks.some((leak) => leak.endpoint.includes(endpoint));
  const asked = report.untried.some(({ what }) => what.includes(endpoint));
  expect(found || asked, `${application.hole}\n${report}`).toBe(true);
  // What follows from it shows in endpoints beside it at most.
  const group = endpoint.split("/").slice(0, 2).join("/");
  expect(report.leaks.filter((leak) => !leak.endpoint.includes(group))).toEqual([]);
  expect(() => report.assert()).toThrow(endpoint);
});

it.each(sound)("$name is sound", async (application) => {
  const { auth, options } = await application.build();
  const report = await checkIsolation(auth, { ...options, progress: false });
  report.assert();
});
