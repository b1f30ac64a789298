import { expect, it } from "vitest";
import { applications } from "./index";
import { check, share } from "./support";

// What the kit says about applications that were written without looking at it.

const holes = applications.filter(({ hole }) => hole);

it.each(share(holes))(
  "finds the hole of $name, or asks for what it needs",
  { timeout: 120_000 },
  async (application) => {
    const report = await check(application);
    const endpoint = application.endpoint ?? "";
    const found = report.leaks.some((leak) => leak.endpoint.includes(endpoint));
    const asked = report.untried.some(({ what }) => what.includes(endpoint));
    expect(found || asked, `${application.hole}\n${report}`).toBe(true);
    // What follows from it shows in endpoints beside it at most.
    const group = endpoint.split("/").slice(0, 2).join("/");
    expect(report.leaks.filter((leak) => !leak.endpoint.includes(group))).toEqual([]);
    expect(() => report.assert()).toThrow(endpoint);
  },
);
