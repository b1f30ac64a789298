import { betterAuth } from "better-auth";
import { createAuthClient } from "better-auth/client";
import { describe, expect, it } from "vitest";
import { tenantAuthClient } from "../../../src/client";
import {
  TENANT_DOMAIN_ERROR_CODES,
  tenantDomainsClient,
} from "../../../src/features/domains/client";
import { tenantDomains } from "../../../src/features/domains/index";
import { byDomain, type TenantRoleAction, tenantAuth } from "../../../src/index";
import { databases, idKindsOn } from "../../support/database";
import { BASE_URL } from "../../support/instance";
import { outcome } from "../../support/world";
import { createDomains, type DomainAnswer, OWN_HOSTS, shareDomains } from "./world";

const ADD = "/tenant/domain/add";
const VERIFY = "/tenant/domain/verify";
const LIST = "/tenant/domain/list";

const tenantRoles = {
  admin: ["domain:*"],
  reader: ["domain:list"],
} satisfies Record<string, TenantRoleAction[]>;

const app = shareDomains({ tenant: { tenantRoles } });

describe("a domain", () => {
  it("is added, proven by its record, listed, changed and removed, with an event each", async () => {
    const { id: tenantId } = await app.createTenant();
    const admin = await app.join(tenantId, "admin");
    const added = await admin.post<DomainAnswer>(ADD, { domain: "Acme-1.com." });
    const record = {
      type: "TXT",
      name: "_tenant-verification.acme-1.com",
      value: expect.stringMatching(/^tenant-verification=[\w-]{32}$/),
    };
    expect(added.data).toEqual({ domain: "acme-1.com", record });
    // Added again it has the same record.
    expect((await admin.post(ADD, { domain: "acme-1.com" })).data).toEqual(added.data);
    const early = await admin.post(VERIFY, { domain: "acme-1.com" });
    expect(early.data).toEqual({ domain: "acme-1.com", verified: false, verifiedAt: null });
    app.dns.publish(added.data.record);
    const verified = await admin.post(VERIFY, { domain: "ACME-1.com" });
    const verifiedAt = expect.stringMatching(/^\d{4}-/);
    expect(verified.data).toEqual({ domain: "acme-1.com", verified: true, verifiedAt });
    const again = await admin.post(VERIFY, { domain: "acme-1.com" });
    expect(again.data).toEqual(verified.data);
    const domain = "acme-1.com";
    const update = "/tenant/domain/update";
    const changed = await admin.post(update, { domain, discoverable: false });
    const shown = { ...verified.data, tenantId, discoverable: false, host: true, record };
    expect(changed.data).toEqual({ ...shown, createdAt: expect.any(String) });
    // What a call does not mention stays, also when it is added again.
    const other = await admin.post(update, { domain, host: false });
    expect(other.data).toMatchObject({ discoverable: false, host: false });
    await admin.post(ADD, { domain, host: true });
    expect((await admin.get(LIST)).data).toEqual([other.data]);
    expect((await admin.post(update, { domain, host: true })).data).toEqual(changed.data);
    expect((await admin.get<unknown[]>(LIST)).data).toEqual([changed.data]);
    const removed = await admin.post("/tenant/domain/remove", { domain: "acme-1.com" });
    expect(removed.data).toEqual({ success: true });
    expect((await admin.get(LIST)).data).toEqual([]);
    const told = app.events.filter((event) => event.tenantId === tenantId);
    expect(told.map(({ type }) => type)).toEqual([
      "tenant:created",
      "domain:added",
      "domain:verified",
      "domain:verified",
      "domain:updated",
      "domain:updated",
      "domain:updated",
      "domain:removed",
    ]);
    expect(told.slice(1)).toMatchObject(
      [true, true, true, true, false, true, true].map((host) => ({ domain, host })),
    );
    expect(told[1]).toMatchObject({ domain: "acme-1.com", actor: { userId: admin.id, tenantId } });
    // Added anew, the record that is still in DNS proves nothing.
    const anew = await admin.post<DomainAnswer>(ADD, { domain: "acme-1.com" });
    expect(anew.data.record.value).not.toBe(added.data.record.value);
    expect((await admin.post(VERIFY, { domain: "acme-1.com" })).data).toMatchObject({
      verified: false,
    });
  });

  it.each([
    ["acme.com", "acme.com"],
    ["ACME.COM.", "acme.com"],
    ["Login.Acme.com", "login.acme.com"],
    ["bücher.example", "xn--bcher-kva.example"],
    ["BÜCHER.example", "xn--bcher-kva.example"],
    ["xn--bcher-kva.example", "xn--bcher-kva.example"],
    ["b\u0075\u0308cher.example", "xn--bcher-kva.example"],
    ["acme。com", "acme.com"],
    ["acme.co.uk", "acme.co.uk"],
    ["acme.github.io", "acme.github.io"],
    [`${"a".repeat(63)}.com`, `${"a".repeat(63)}.com`],
  ])("%s is stored as %s", async (given, domain) => {
    const { id } = await app.createTenant();
    expect(await app.add(id, given)).toMatchObject({ domain });
  });

  it.each([
    ...["", ".", "..", "com", "co.uk", "github.io", "localhost", "acme.localhost", "acme"],
    ...["127.0.0.1", "2130706433", "0x7f.1", "1.2.3", "[::1]", "::1", "１２７.0.0.1"],
    ...["https://acme.com", "acme.com/", "acme.com:443", "user@acme.com", "acme.com?a", "a.com#b"],
    ...["*.acme.com", "acme..com", "-acme.com", "acme-.com", "a_b.com", "acme.com ", "ac me.com"],
    ...["acme.com\0", "acme%2ecom", "acme\\.com", "acme.com..", "xn--a.com", "xn--.com"],
    ...[`${"a".repeat(64)}.com`, `${"a.".repeat(120)}com`, `${"a.".repeat(200)}com`],
    "a".repeat(100_000),
  ])("%s is none", async (domain) => {
    const operator = await app.operator();
    const { id: tenantId } = await app.createTenant();
    const answer = await app.unchanged(() => operator.post(ADD, { tenantId, domain }));
    expect(outcome(answer)).toEqual([400, "INVALID_DOMAIN"]);
  });

  it.each([undefined, null, 7, ["acme.com"], { a: 1 }])("%j is no text", async (domain) => {
    const answer = await (await app.operator()).post(ADD, { tenantId: app.ids.acme, domain });
    expect(outcome(answer)).toEqual([400, "VALIDATION_ERROR"]);
  });

  it("is limited in number for managers, and not for the server", async () => {
    const small = await createDomains({ domains: { maxDomains: 2 }, tenant: { tenantRoles } });
    const admin = await small.as("admin", "acme");
    for (const domain of ["a.com", "b.com", "a.com"]) {
      expect((await admin.post(ADD, { domain })).status).toBe(200);
    }
    expect(outcome(await admin.post(ADD, { domain: "c.com" }))).toEqual([
      429,
      "DOMAIN_LIMIT_REACHED",
    ]);
    await small.add("acme", "c.com");
    expect((await (await small.as("admin", "globex")).post(ADD, { domain: "c.com" })).status).toBe(
      200,
    );
  });
});

it("a domain that has become a public suffix can be changed and removed, not verified", async () => {
  const { id: tenantId } = await app.createTenant();
  const admin = await app.join(tenantId, "admin");
  await app.add(tenantId, "suffix.example.com");
  const body = { domain: "github.io" };
  await app.write("tenantDomain", body, { domain: "suffix.example.com" });
  expect(outcome(await admin.post(VERIFY, body))).toEqual([400, "INVALID_DOMAIN"]);
  const changed = await admin.post("/tenant/domain/update", { domain: "GitHub.io.", host: false });
  expect(changed.data).toMatchObject({ ...body, host: false });
  expect((await admin.post("/tenant/domain/remove", body)).status).toBe(200);
  expect((await admin.get(LIST)).data).toEqual([]);
});

it.each(databases)(
  "of 30 domains added at once, only as many as the limit allows succeed, on %s",
  async (database) => {
    const domains = { maxDomains: 5 };
    const small = await createDomains({ database, domains, tenant: { tenantRoles } });
    const admin = await small.as("admin", "acme");
    for (const domain of ["a.com", "b.com"]) await admin.post(ADD, { domain });
    const names = Array.from({ length: 30 }, (_, index) => `at-once-${index}.com`);
    const answers = await Promise.all(names.map((domain) => admin.post(ADD, { domain })));
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused.map(outcome)).toEqual(Array(27).fill([429, "DOMAIN_LIMIT_REACHED"]));
    // One that was refused is not kept.
    const added = answers.filter(({ status }) => status === 200).map(({ data }) => data.domain);
    const listed = (await small.list("acme")).map(({ domain }) => domain);
    expect(listed.sort()).toEqual(["a.com", "b.com", ...added].sort());
    // The same one, asked for many times, is one.
    const { data } = await small.as("admin", "globex").then(async (other) => {
      await Promise.all(names.map(() => other.post(ADD, { domain: "same.com" })));
      return other.get<unknown[]>(LIST);
    });
    expect(data).toHaveLength(1);
  },
);

describe("who may manage domains", () => {
  it("is a role of the tenant, about its own, and operators", async () => {
    await app.add("acme", "rights.com");
    const reader = await app.join("acme", "reader");
    const jane = await app.as("jane", "acme");
    const stranger = await app.as("admin", "globex");
    const tenantId = app.ids.acme;
    const body = { tenantId, domain: "rights.com", discoverable: false };
    const NOT_ALLOWED = [403, "TENANT_MANAGEMENT_NOT_ALLOWED"];
    expect((await reader.get(LIST)).status).toBe(200);
    expect(outcome(await jane.get(LIST))).toEqual(NOT_ALLOWED);
    expect(outcome(await stranger.get(LIST, { query: { tenantId } }))).toEqual(NOT_ALLOWED);
    for (const action of ["add", "verify", "update", "remove"]) {
      const path = `/tenant/domain/${action}`;
      await app.unchanged(async () => {
        for (const person of [reader, jane, stranger]) {
          expect(outcome(await person.post(path, body)), action).toEqual(NOT_ALLOWED);
        }
        expect(outcome(await app.browser().post(path, body))).toEqual([401, "UNAUTHORIZED"]);
      });
    }
    // At home, what is Acme's is not there.
    for (const action of ["verify", "update", "remove"]) {
      const { domain, discoverable } = body;
      const mine = await app.unchanged(() =>
        stranger.post(`/tenant/domain/${action}`, { domain, discoverable }),
      );
      expect(outcome(mine), action).toEqual([404, "DOMAIN_NOT_FOUND"]);
    }
    expect((await (await app.operator()).post("/tenant/domain/remove", body)).status).toBe(200);
  });
});

describe.each(databases)("%s", (database) => {
  it.each(idKindsOn(database))("domains with %s ids go with their tenant", async (ids) => {
    const generateId = ids === "text" ? undefined : ids;
    const world = await createDomains({
      database,
      auth: { advanced: { database: { ...(generateId && { generateId }) } } },
    });
    await world.own("acme", "acme.com");
    await world.own("globex", "globex.com");
    const body = { tenantId: world.ids.acme, dryRun: true };
    expect((await world.api.deleteTenant({ body })).rows).toMatchObject({ tenantDomain: 1 });
    await world.api.deleteTenant({ body: { tenantId: world.ids.acme } });
    expect(await world.rows("tenantDomain")).toBe(1);
    expect(await world.list("globex")).toMatchObject([{ domain: "globex.com", verified: true }]);
    // The name is free.
    expect((await world.own("globex", "acme.com")).verified).toBe(true);
  });

  it("has the table and its columns under other names", async () => {
    const fields = { domain: "name", verifiedDomain: "verified_name", tenantId: "tenant_id" };
    const world = await createDomains({
      database,
      domains: { schema: { tenantDomain: { modelName: "domains", fields } } },
    });
    expect((await world.own("acme", "acme.com")).verified).toBe(true);
    expect((await world.own("globex", "acme.com")).verified).toBe(true);
    expect(await world.list("acme")).toMatchObject([{ verified: false }]);
    expect(
      await world.rows("domains", `${world.database.quote("verified_name")} = ?`, ["acme.com"]),
    ).toBe(1);
  });
});

describe("start", () => {
  const start = (auth: object, ...plugins: Parameters<typeof tenantAuth>) =>
    betterAuth({ ...auth, plugins: [tenantAuth(...plugins), tenantDomains()] }).$context;

  it("without tenantAuth(), or byDomain() without the plugin, is refused", async () => {
    await expect(betterAuth({ plugins: [tenantDomains()] }).$context).rejects.toThrow(
      "put tenantAuth() before it",
    );
    const alone = betterAuth({ plugins: [tenantAuth({ resolveTenantId: byDomain() })] });
    await expect(alone.$context).rejects.toThrow("add tenantDomains() to the plugins");
    await expect(start({}, { sharedModels: ["tenantDomain"] })).rejects.toThrow(
      '"tenantDomain" needs no decision',
    );
  });

  it("with hosts that better-auth cannot answer at is refused", async () => {
    const resolveTenantId = byDomain();
    for (const [baseURL, message] of [
      ["http://example.com", "has to know the hosts of the application"],
      [{ allowedHosts: ["example.com"] }, "has to know the hosts of the application"],
      [{ ...OWN_HOSTS, allowedHosts: ["example.com", "*"] }, "a pattern for any host"],
    ] as const) {
      await expect(start({ baseURL }, { resolveTenantId })).rejects.toThrow(message);
    }
    const advanced = { crossSubDomainCookies: { enabled: true } };
    await expect(start({ baseURL: OWN_HOSTS, advanced }, { resolveTenantId })).rejects.toThrow(
      "crossSubDomainCookies",
    );
  });

  it.each<[string, object]>([
    ["resolveTxt", { resolveTxt: "8.8.8.8" }],
    ["timeout", { timeout: 0 }],
    ["recheckAfter", { recheckAfter: -1 }],
    ["maxDomains", { maxDomains: 1.5 }],
    ["signInURL", { signInURL: "/sign-in" }],
    ["recheck", { recheck: 9 }],
  ])("is refused with options that make no sense: %s", (message, options) => {
    expect(() => tenantDomains(options as never)).toThrow(message);
  });
});

it("authClient.tenant.domain adds, verifies, lists, changes and removes, and discovers", async () => {
  const { id: tenantId } = await app.createTenant();
  const clientOf = (browser = app.browser()) =>
    createAuthClient({
      baseURL: BASE_URL,
      plugins: [tenantAuthClient(), tenantDomainsClient()],
      fetchOptions: { customFetchImpl: browser.fetch },
    }).tenant;
  const { domain: manager } = clientOf(await app.operator());
  const { data: added } = await manager.add({ tenantId, domain: "client.com" });
  if (added) app.dns.publish(added.record);
  const { data: verified } = await manager.verify({ tenantId, domain: "client.com" });
  expect(verified?.verified).toBe(true);
  const query = { domain: "client.com" };
  const { data: found } = await clientOf().discover({ query });
  expect(found).toHaveLength(1);
  await manager.update({ tenantId, domain: "client.com", discoverable: false });
  const { data: listed } = await manager.list({ query: { tenantId } });
  expect(listed?.[0]?.discoverable).toBe(false);
  expect((await clientOf().discover({ query })).data).toEqual([]);
  await manager.remove({ tenantId, domain: "client.com" });
  const { error } = await manager.verify({ tenantId, domain: "client.com" });
  expect(error?.code).toBe(TENANT_DOMAIN_ERROR_CODES.DOMAIN_NOT_FOUND.code);
});
