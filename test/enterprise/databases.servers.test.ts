import { describe, expect, it } from "vitest";
import { databases } from "../support/servers";
import { createSCIMWorld, group, patch, person, type SCIMResource, setActive } from "./scim-world";
import { CLIENT_SECRET, createSSOWorld, whoIs } from "./sso-world";

describe.each(databases)("on %s", (database) => {
  it("two tenants have a provider each, whose secrets are encrypted", async () => {
    const world = await createSSOWorld({ database });
    world.provider.addPerson("ada", { email: "ada@corp.example" });
    for (const { slug, admin } of [world.acme, world.globex]) {
      const body = world.oidc(`${slug}-okta`, { domain: "corp.example" });
      expect((await admin.browser.post("/sso/register", body)).status).toBe(200);
    }
    const body = world.oidc("acme-okta");
    const taken = await world.globex.admin.browser.post("/sso/register", body);
    expect([taken.status, taken.code]).toEqual([422, "VALUE_TAKEN"]);
    for (const { id } of [world.acme, world.globex]) {
      const { browser } = await world.signIn(id, { email: "ada@corp.example" }, "ada");
      expect(await whoIs(browser)).toMatchObject({ tenantId: id });
    }
    const table = world.database.quote("ssoProvider");
    const stored = await world.database.query(`select * from ${table}`);
    expect(JSON.stringify(stored)).not.toContain(CLIENT_SECRET);
    const touched = await world.api.rotateTenantOAuthSecrets();
    expect(touched).toEqual({ rotated: 0, upToDate: 2, unreadable: 0 });
    const config = world.database.quote("oidcConfig");
    await world.database.query(`update ${table} set ${config} = ?`, [
      JSON.stringify({ clientId: "x", clientSecret: CLIENT_SECRET }),
    ]);
    expect(await world.api.rotateTenantOAuthSecrets()).toMatchObject({ rotated: 2 });
    const update = { providerId: "acme-okta", domain: "new.example" };
    const changed = await world.acme.admin.browser.post("/sso/update-provider", update);
    expect(changed.data).toMatchObject({ domain: "new.example" });
    const deletion = { providerId: "acme-okta" };
    const deleted = await world.acme.admin.browser.post("/sso/delete-provider", deletion);
    expect(deleted.status).toBe(200);
    expect(await world.rows("ssoProvider")).toBe(1);
  });

  it("two tenants have a directory each, with the same people", async () => {
    const world = await createSCIMWorld({ database });
    const ids = [];
    for (const { directory } of [world.acme, world.globex]) {
      const made = await directory.post<SCIMResource>("/scim/v2/Users", person("ada"));
      expect(made.status, JSON.stringify(made.data)).toBe(201);
      const staff = await directory.post("/scim/v2/Groups", group("Staff", made.data.id));
      expect(staff.status, JSON.stringify(staff.data)).toBe(201);
      ids.push(made.data.id);
    }
    const [ours = "", theirs = ""] = ids;
    const { directory } = world.acme;
    const body = patch({ op: "replace", path: "displayName", value: "Ada" });
    const path = (id: string) => `/scim/v2/Users/${id}`;
    expect((await directory.send(path(ours), { method: "PATCH", body })).status).toBe(200);
    expect((await directory.send(path(theirs), { method: "PATCH", body })).status).toBe(404);
    const filter = 'userName eq "ada@corp.example"';
    const found = await directory.get<SCIMResource>("/scim/v2/Users", { query: { filter } });
    expect(found.data.Resources.map(({ id }) => id)).toEqual([ours]);
    expect((await setActive(directory, ours, false)).data.active).toBe(false);
    const other = await world.globex.directory.get<SCIMResource>(path(theirs));
    expect(other.data.active).toBe(true);
    expect((await directory.send(path(ours), { method: "DELETE" })).status).toBe(204);
    expect(await world.rows("user")).toBe(1);
    expect(await world.rows("scimUser")).toBe(1);
  });
});
