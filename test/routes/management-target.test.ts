import { expect, it } from "vitest";
import { getTenantId, type TenantManagementRequest } from "../../src/index";
import { createWorld, outcome, shareWorld } from "../support/world";

const world = shareWorld();
const NOT_ALLOWED = [403, "TENANT_MANAGEMENT_NOT_ALLOWED"];

it("R7: the operator stays on the platform whatever the request names", async () => {
  const { acme, globex } = world.ids;
  const operator = await world.operator();
  const window = world.at("globex", operator);
  expect((await window.get<unknown[]>("/tenant/list")).data).toHaveLength(2);
  const updated = await window.post("/tenant/update", { tenantId: acme, name: "Changed" });
  expect([updated.status, updated.data.id]).toEqual([200, acme]);
  const registered = await window.post(
    "/tenant/oauth-config/register",
    { tenantId: acme, providerId: "google", clientId: "i", clientSecret: "s" },
    { query: { tenantId: globex } },
  );
  expect([registered.status, registered.data.tenantId]).toEqual([200, acme]);
  expect(await world.rows("tenant", "name = 'Changed'")).toBe(1);
  expect(await world.rowsIn("globex", "tenantOauthConfig")).toEqual([]);
  // Afterwards the operator is who they were.
  expect((await operator.get("/admin/list-users")).status).toBe(200);
});

it("R7: to name a tenant grants nothing, not even to its own admin", async () => {
  const tenantId = world.ids.acme;
  const admin = await world.as("admin", "acme");
  await world.unchanged(async () => {
    for (const window of [admin, world.at("platform", admin)]) {
      const update = await window.post("/tenant/update", { tenantId, name: "Mine" });
      expect(outcome(update)).toEqual(NOT_ALLOWED);
      const get = await window.get("/tenant/get", { query: { slug: "acme" } });
      expect(outcome(get)).toEqual(NOT_ALLOWED);
    }
    const nobody = await world.at("acme").post("/tenant/delete", { tenantId });
    expect(outcome(nobody)).toEqual([401, "UNAUTHORIZED"]);
  });
});

it("R7: canManageTenants is asked in the caller's scope, about the target", async () => {
  const asked: unknown[] = [];
  const canManageTenants = (_: unknown, { tenantId, session }: TenantManagementRequest) => {
    asked.push([getTenantId(), tenantId, session?.user.id ?? null]);
    return true;
  };
  const { as, at, ids } = await createWorld({ tenant: { canManageTenants } });
  const { acme, globex } = ids;
  const people = [await as("jane", "acme"), await as("jane", "platform")];
  for (const person of people) {
    const body = { tenantId: globex, name: "Changed" };
    const answer = await at("globex", person).post("/tenant/update", body);
    expect([answer.status, answer.data.id]).toEqual([200, globex]);
  }
  expect(asked).toEqual([
    [acme, globex, people[0]?.id],
    [null, globex, people[1]?.id],
  ]);
});
