import { afterEach, expect } from "vitest";
import { findLeaks, forgetSecrets, listenTo } from "./secret-spy";

// Runs before every file: whatever a test is about, no secret may show in what it makes visible.
forgetSecrets();
listenTo(console);

afterEach(async () => {
  expect(await findLeaks()).toEqual([]);
});
