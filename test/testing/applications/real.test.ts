import { describe, expect, it } from "vitest";
import { applications } from "./index";

/** What the kit is judged by has to be what it says: otherwise it is judged wrongly. */
describe("the applications", () => {
  it("are enough, and have names of their own", () => {
    const holes = applications.filter(({ hole }) => hole);
    expect(holes.length).toBeGreaterThanOrEqual(24);
    expect(applications.length - holes.length).toBeGreaterThanOrEqual(20);
    expect(new Set(applications.map(({ name }) => name)).size).toBe(applications.length);
    expect(holes.filter(({ endpoint }) => !endpoint)).toEqual([]);
  });

  it.each(applications.filter(({ hole }) => hole))("have a hole: $name", async ({ build }) => {
    const { exploit } = await build();
    expect(await exploit()).toBe(true);
  });

  it.each(applications.filter(({ hole }) => !hole))("are sound: $name", async ({ build }) => {
    const { exploit } = await build();
    expect(await exploit()).toBe(false);
  });
});
