import type { BetterAuthPlugin } from "better-auth";
import { describe, expect, it } from "vitest";
import { createInstance } from "../support/instance";

async function statusesOf(times: number, ask: () => Promise<{ status: number }>) {
  const statuses: number[] = [];
  for (let count = 0; count < times; count++) statuses.push((await ask()).status);
  return statuses;
}

describe("R12: a limit counts for the endpoint that stands for another", () => {
  it.each([
    ["/callback/google", "10.0.0.1"],
    ["/tenant/callback/google", "10.0.0.2"],
  ])("a plugin's on callbacks, at %s", async (path, address) => {
    const limits: BetterAuthPlugin = {
      id: "limits",
      rateLimit: [{ pathMatcher: (asked) => asked.startsWith("/callback/"), window: 60, max: 2 }],
    };
    const rateLimit = { enabled: true, window: 60, max: 1000 };
    const app = await createInstance({ plugins: [limits], auth: { rateLimit } });
    const options = { query: { code: "x", state: "y" }, headers: { "x-forwarded-for": address } };
    const statuses = await statusesOf(4, () => app.browser().get(path, options));
    expect(statuses).toEqual([302, 302, 429, 429]);
  });

  it("the application's on sign-in: three passwords in a minute at one account", async () => {
    const customRules = { "/sign-in/email": { window: 60, max: 3 } };
    const app = await createInstance({ auth: { rateLimit: { enabled: true, customRules } } });
    const { id } = await app.createTenant();
    const headers = { "x-forwarded-for": "10.0.1.1", "x-tenant-id": id };
    const body = { email: "al@example.com", password: "wrong password" };
    const statuses = await statusesOf(6, () =>
      app.browser().post("/tenant/sign-in/email", body, { headers }),
    );
    expect(statuses).toEqual([401, 401, 401, 429, 429, 429]);
  });
});
