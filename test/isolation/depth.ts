import type { Extent } from "../../src/testing/index";

/** All of it takes minutes; without it, each configuration tries a part that the others leave out. */
export const FULL = process.env.MATRIX === "full";

export const oneOf = (fast: number, full: number, offset = 0): Extent => ({
  oneOf: FULL ? full : fast,
  offset,
});
