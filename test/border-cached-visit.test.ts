import { expect, test } from "vitest";
import { createInstance } from "./support/instance";

test("R5: a cached session that an admin endpoint of a tenant has renewed is no session there (threat: cached cookie accepted too early)", async () => {
  const instance = await createInstance({ auth: { session: { cookieCache: { enabled: true } } } });
  const a = (await instance.createTenant()).id;
  const b = (await instance.createTenant()).id;
  const { browser } = await instance.signUp(null);
  const headers = { "x-tenant-id": a };
  // An ordinary user of the platform is turned away, after its session was looked up.
  expect((await browser.get("/admin/list-users", { headers })).status).toBe(401);
  for (const tenantId of [a, b]) {
    const there = browser.fork({ "x-tenant-id": tenantId });
    expect((await there.get("/get-session")).data).toBeNull();
    expect((await there.post("/update-user", { name: "Changed" })).status).toBe(401);
  }
});
