import { apiKey } from "@better-auth/api-key";
import { deviceAuthorization } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { createWorld, SUBDOMAINS } from "../../support/world";

const GRANT = "urn:ietf:params:oauth:grant-type:device_code";

describe("R4: an API key alone leads into its tenant", () => {
  it.each([
    ["hashed", {}],
    ["in plain text", { disableKeyHashing: true }],
  ])("%s", async (_, options) => {
    const world = await createWorld({
      tenant: { scopedModels: ["apikey"] },
      plugins: [apiKey({ enableSessionForAPIKeys: true, ...options })],
    });
    const { acme, globex } = await world.janes();
    const keyOf = async (person: typeof acme) =>
      (await person.post<{ key: string }>("/api-key/create", { name: "a key" })).data.key;
    const key = await keyOf(acme);
    const whoHas = async (given: string, headers = {}) =>
      (await world.browser({ ...headers, "x-api-key": given }).get<Me>("/get-session")).data;
    expect(await whoHas(key)).toMatchObject({ user: { id: acme.id, tenantId: world.ids.acme } });
    expect(await whoHas(await keyOf(globex))).toMatchObject({ user: { id: globex.id } });
    expect(await whoHas(key, world.naming("globex"))).toMatchObject({ code: "INVALID_API_KEY" });
    expect(await whoHas(`${key}x`)).toMatchObject({ code: "INVALID_API_KEY" });
    await world.api.updateTenant({ body: { tenantId: world.ids.acme, status: "suspended" } });
    expect(await whoHas(key)).toMatchObject({ code: "TENANT_SUSPENDED" });
  });
});

type Me = { user: { id: string } } | { code: string };
type Codes = { device_code: string; user_code: string };

describe("R4: a device code leads into its tenant", () => {
  const start = async () => {
    const world = await createWorld({
      tenant: { scopedModels: ["deviceCode"] },
      plugins: [deviceAuthorization({ interval: "1s" })],
    });
    const ask = async (where: "acme" | null) =>
      (await world.at(where).post<Codes>("/device/code", { client_id: "tv" })).data;
    const poll = (device_code: string, headers = {}) =>
      world.browser(headers).post<Record<string, string>>("/device/token", {
        grant_type: GRANT,
        client_id: "tv",
        device_code,
      });
    return { world, ask, poll };
  };

  it("of the user who approved it, and nowhere else", async () => {
    const { world, ask, poll } = await start();
    const { device_code, user_code } = await ask("acme");
    const { acme: jane } = await world.janes();
    await jane.get(`/device?user_code=${user_code}`);
    expect((await jane.post("/device/approve", { userCode: user_code })).status).toBe(200);
    expect((await poll(device_code, world.naming("globex"))).status).toBe(400);
    const [, bare = ""] = device_code.split("~");
    expect((await poll(bare)).status).toBe(400);
    expect((await poll(`${world.ids.globex}~${bare}`)).status).toBe(400);
    const { status, data } = await poll(device_code);
    expect(status).toBe(200);
    expect(data.access_token).toMatch(new RegExp(`^${world.ids.acme}~`));
  });

  it("and one of the platform has none", async () => {
    const { ask, poll } = await start();
    const { device_code } = await ask(null);
    expect(device_code).not.toContain("~");
    expect((await poll(device_code)).data).toMatchObject({ error: "authorization_pending" });
    expect((await poll(`nobody~${device_code}`)).status).toBe(404);
  });
});

describe.each([
  ["subdomains", { hosts: SUBDOMAINS }],
  ["a header", {}],
])("threat: two credentials in one request, tenants by %s", (_, options) => {
  it("an API key of Acme does not take a link of the platform into Acme", async () => {
    const world = await createWorld({
      ...options,
      tenant: { scopedModels: ["apikey"] },
      plugins: [apiKey()],
    });
    const victim = await world.signUp("acme", "victim@example.com");
    const attacker = await world.signUp("acme", "attacker@example.com");
    const { key } = (await attacker.post<{ key: string }>("/api-key/create", {})).data;
    const onPlatform = await world.signUp("platform", "victim@example.com");
    await onPlatform.post("/change-email", { newEmail: "taken@example.com" });
    const query = { token: world.mails.at(-1)?.token ?? "" };
    const answer = await world
      .at("platform")
      .get("/verify-email", { query, headers: { "x-api-key": key } });
    const users = (await world.rowsIn("acme", "user")).map(({ email }) => email).sort();
    expect(users).toEqual(["attacker@example.com", "victim@example.com"]);
    const thief = world.at("acme");
    thief.keepCookies(answer.headers);
    expect(await world.whoIs(thief)).toBe(null);
    expect(await world.whoIs(victim)).toMatchObject({ id: victim.id });
  });
});

it("R9: an API key does not make a tenant's page trusted at a host of the platform", async () => {
  const world = await createWorld({
    hosts: SUBDOMAINS,
    tenant: { scopedModels: ["apikey"] },
    plugins: [apiKey()],
  });
  const attacker = await world.signUp("acme");
  const { key } = (await attacker.post<{ key: string }>("/api-key/create", {})).data;
  const operator = await world.operator();
  const body = { userId: attacker.id, role: "admin" };
  const origin = "http://acme.example.com";
  const attempts: Record<string, string>[] = [{ origin }, { origin, "x-api-key": key }];
  for (const headers of attempts) {
    const answer = await operator.post<{ code: string }>("/admin/set-role", body, { headers });
    expect([answer.status, answer.data.code]).toEqual([403, "INVALID_ORIGIN"]);
  }
});

it("what is no id of a tenant is not found, also where the tenant is not looked up", async () => {
  const world = await createWorld();
  for (const tenantId of ["a%00b", "a:b", "%24%26"]) {
    const answer = await world.browser().get(`/get-session?tenantId=${tenantId}`);
    expect([tenantId, answer.status]).toEqual([tenantId, 404]);
  }
});
