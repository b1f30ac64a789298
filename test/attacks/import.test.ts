import { expect, it, onTestFinished, vi } from "vitest";

it("can be imported where nothing random may be made yet, as at the top of a Cloudflare Worker", async () => {
  vi.resetModules();
  const refuse = () => {
    throw new Error("Disallowed operation called within global scope");
  };
  const spies = [
    vi.spyOn(crypto, "randomUUID").mockImplementation(refuse),
    vi.spyOn(crypto, "getRandomValues").mockImplementation(refuse),
  ];
  onTestFinished(() => {
    for (const spy of spies) spy.mockRestore();
    // Files after this one share its modules, and have no use for half of them.
    vi.resetModules();
  });
  expect(await import("../../src/index")).toHaveProperty("tenantAuth");
});
