import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { tenantDomains } from "../../../src/features/domains/index";
import { getTenantId } from "../../../src/index";
import { databases } from "../../support/database";
import { gate, outcome } from "../../support/world";
import { createDomains, type DomainWorld, settled, shareDomains } from "./world";

const DAY = 24 * 60 * 60;
const app = shareDomains({ domains: { timeout: 0.2 } });

let count = 0;
const newDomain = () => `verify-${++count}.com`;

afterEach(() => {
  if (app.dns) Object.assign(app.dns, { failure: undefined, delay: 0, before: async () => {} });
});

const LARGE = Array.from({ length: 5000 }, (_, index) => "x".repeat(255) + index);

describe("the record", () => {
  it.each<[what: string, verified: boolean, answer: (value: string) => (string | string[])[]]>([
    ["another value", false, () => ["tenant-verification=another"]],
    ["in upper case", false, (value) => [value.toUpperCase()]],
    ["in more text", false, (value) => [`v=${value}`, `${value}x`, ` ${value}`]],
    ["without its prefix", false, (value) => [value.slice("tenant-verification=".length)]],
    ["in two records", false, (value) => [value.slice(0, 30), value.slice(30)]],
    ["none at all", false, () => []],
    ["empty ones", false, () => ["", []]],
    ["in parts", true, (value) => [[value.slice(0, 30), value.slice(30)]]],
    ["among thousands of large ones", true, (value) => [...LARGE, value]],
  ])("as %s counts: %s", async (_, verified, answer) => {
    const domain = newDomain();
    const { record } = await app.add("acme", domain);
    app.dns.records.set(record.name, answer(record.value));
    const verifiedAt = verified ? expect.any(Date) : null;
    expect(await app.verify("acme", domain)).toEqual({ domain, verified, verifiedAt });
  });

  it("is asked for at one name, and not at the domain itself or in another tenant's name", async () => {
    const domain = newDomain();
    const { record } = await app.add("acme", domain);
    app.dns.records.set(domain, [record.value]);
    app.dns.asked.length = 0;
    expect(await app.verify("acme", domain)).toMatchObject({ verified: false });
    expect(app.dns.asked).toEqual([`_tenant-verification.${domain}`]);
    // Everybody can read the record of Acme. It proves nothing for Globex.
    app.dns.publish(record);
    await app.add("globex", domain);
    expect(await app.verify("globex", domain)).toMatchObject({ verified: false });
    expect(await app.verify("acme", domain)).toMatchObject({ verified: true });
  });

  it.each(["ESERVFAIL", "ETIMEOUT", "ECONNREFUSED", "EREFUSED"])(
    "that DNS cannot find out about (%s) is neither there nor gone",
    async (failure) => {
      const domain = newDomain();
      await app.own("acme", domain);
      await app.seen(30 * DAY);
      app.dns.failure = failure;
      const body = { tenantId: app.ids.acme, domain };
      const answer = await (await app.operator()).post("/tenant/domain/verify", body);
      expect(outcome(answer)).toEqual([503, "DOMAIN_LOOKUP_FAILED"]);
      await app.list("acme");
      await settled();
      expect(await app.list("acme")).toContainEqual(
        expect.objectContaining({ domain, verified: true }),
      );
    },
  );

  it("that comes too late is a failure, and what comes after that has no effect", async () => {
    const domain = newDomain();
    const { record } = await app.add("acme", domain);
    app.dns.publish(record);
    app.dns.delay = 400;
    const started = Date.now();
    await expect(app.verify("acme", domain)).rejects.toMatchObject({ statusCode: 503 });
    expect(Date.now() - started).toBeLessThan(390);
    await new Promise((resolve) => setTimeout(resolve, 400));
    const [row] = (await app.list("acme")).filter((one) => one.domain === domain);
    expect(row).toMatchObject({ verified: false });
  });

  it("is not asked for more than ten times in a minute, by one caller", async () => {
    const limited = await createDomains({ auth: { rateLimit: { enabled: true } } });
    const operator = await limited.operator();
    const body = { tenantId: limited.ids.acme, domain: "acme.com" };
    await limited.add("acme", "acme.com");
    const statuses: number[] = [];
    for (let tries = 0; tries < 11; tries++) {
      const headers = { "x-forwarded-for": "203.0.113.9" };
      statuses.push((await operator.post("/tenant/domain/verify", body, { headers })).status);
    }
    expect(statuses).toEqual([...Array(10).fill(200), 429]);
    expect(limited.dns.asked).toHaveLength(10);
  });
});

describe.each(databases)("two tenants that claim a domain, on %s", (database) => {
  const verifiedBy = async (world: DomainWorld) => {
    const holders: string[] = [];
    for (const place of ["acme", "globex"] as const) {
      if ((await world.list(place))[0]?.verified) holders.push(place);
    }
    return holders;
  };

  it("have it one after the other: the last one that proves its own record", async () => {
    const world = await createDomains({ database });
    const first = await world.own("acme", "shared.com");
    const { record } = await world.add("globex", "shared.com");
    // A claim alone changes nothing.
    expect(await world.verify("globex", "shared.com")).toMatchObject({ verified: false });
    expect(await verifiedBy(world)).toEqual(["acme"]);
    world.dns.publish(record);
    expect(await world.verify("globex", "shared.com")).toMatchObject({ verified: true });
    expect(await verifiedBy(world)).toEqual(["globex"]);
    expect(world.events.slice(-2)).toMatchObject([
      { type: "domain:lost", tenantId: world.ids.acme, reason: "claimed", actor: "server" },
      { type: "domain:verified", tenantId: world.ids.globex },
    ]);
    // Acme's record is still in DNS, and takes nothing back: there is a new one to publish.
    expect(await world.verify("acme", "shared.com")).toMatchObject({ verified: false });
    const [mine] = await world.list("acme");
    expect(mine?.record.value).not.toBe(first.record.value);
    if (mine) world.dns.publish(mine.record);
    expect(await world.verify("acme", "shared.com")).toMatchObject({ verified: true });
    expect(await verifiedBy(world)).toEqual(["acme"]);
  });

  it("keep the records that they have published, if the one that has it proves it again", async () => {
    const world = await createDomains({ database });
    await world.own("acme", "shared.com");
    const { record } = await world.add("globex", "shared.com");
    world.dns.publish(record);
    await world.verify("acme", "shared.com");
    expect(await world.verify("globex", "shared.com")).toMatchObject({ verified: true });
    expect(await verifiedBy(world)).toEqual(["globex"]);
  });

  it("a record that was left in DNS, and never asked for, takes nothing later", async () => {
    const world = await createDomains({ database });
    const { record } = await world.add("globex", "shared.com");
    world.dns.publish(record);
    await world.own("acme", "shared.com");
    expect(await world.verify("globex", "shared.com")).toMatchObject({ verified: false });
    expect(await verifiedBy(world)).toEqual(["acme"]);
    // The new one does.
    const [mine] = await world.list("globex");
    if (mine) world.dns.publish(mine.record);
    expect(await world.verify("globex", "shared.com")).toMatchObject({ verified: true });
    expect(await verifiedBy(world)).toEqual(["globex"]);
  });

  it("at the same moment: one of them has it, and the database allows no other", async () => {
    const world = await createDomains({ database });
    for (const place of ["acme", "globex"]) {
      world.dns.publish((await world.add(place, "shared.com")).record);
    }
    const operator = await world.operator();
    for (let round = 0; round < 10; round++) {
      const both = ["acme", "globex"].map((place) =>
        operator.post("/tenant/domain/verify", {
          tenantId: world.idOf(place),
          domain: "shared.com",
        }),
      );
      expect((await Promise.all(both)).map(({ status }) => status)).toEqual([200, 200]);
      expect(await verifiedBy(world)).toHaveLength(1);
      for (const place of ["acme", "globex"]) {
        for (const { record } of await world.list(place)) world.dns.publish(record);
      }
    }
    expect(await world.verify("acme", "shared.com")).toMatchObject({ verified: true });
    expect(await verifiedBy(world)).toEqual(["acme"]);
  });

  it("a proof counts for the record that was asked for, not for one that came since", async () => {
    const world = await createDomains({ database });
    const { record } = await world.add("acme", "slow.com");
    world.dns.publish(record);
    const { reached, open, pass } = gate();
    world.dns.before = pass;
    const slow = world.verify("acme", "slow.com");
    await reached;
    await world.remove("acme", "slow.com");
    await world.add("acme", "slow.com");
    open();
    expect(await slow).toMatchObject({ verified: false });
    expect(await verifiedBy(world)).toEqual([]);
  });
});

it("a domain that is removed while it is proven is taken from no other tenant", async () => {
  const world = await createDomains();
  await world.own("acme", "shared.com");
  world.dns.publish((await world.add("globex", "shared.com")).record);
  // As if another request removed it right after Acme's row was changed.
  await world.database.query(
    `create trigger removed after update on "tenantDomain" when new."tenantId" = '${world.ids.acme}'
     begin delete from "tenantDomain" where "tenantId" = '${world.ids.globex}'; end`,
  );
  await expect(world.verify("globex", "shared.com")).rejects.toMatchObject({ statusCode: 404 });
  expect(await world.list("acme")).toMatchObject([{ domain: "shared.com", verified: true }]);
  expect(world.events.map(({ type }) => type)).not.toContain("domain:lost");
});

it("events are handled in the tenant that they are about", async () => {
  const scopes: string[] = [];
  const world: DomainWorld = await createDomains({
    tenant: {
      onTenantEvent({ type, tenantId }) {
        const isItsOwn = getTenantId() === tenantId;
        if (type.startsWith("domain:")) scopes.push(`${type} ${isItsOwn ? "inside" : "outside"}`);
      },
    },
  });
  await world.own("acme", "shared.com");
  await world.own("globex", "shared.com");
  world.dns.records.clear();
  await world.seen(8 * DAY);
  await world.gone("shared.com", 8 * DAY);
  await world.api.updateTenantDomain({
    body: { tenantId: world.ids.globex, domain: "shared.com", discoverable: true },
  });
  await world.browser().get("/tenant/discover", { query: { domain: "shared.com" } });
  await settled();
  expect(scopes).toEqual([
    "domain:added inside",
    "domain:verified inside",
    "domain:added inside",
    "domain:lost inside",
    "domain:verified inside",
    "domain:updated inside",
    "domain:lost inside",
  ]);
});

describe("a verification whose record is gone", () => {
  const use = (domain: string) => app.api.discoverTenants({ query: { domain } });

  it("does not end with one empty answer, however long it was not looked up", async () => {
    const domain = newDomain();
    const { record } = await app.own("acme", domain);
    app.dns.records.delete(record.name);
    await app.seen(30 * DAY);
    await use(domain);
    await settled();
    expect(await app.verify("acme", domain)).toMatchObject({ verified: true });
    // Since the first miss, not the last one.
    await app.gone(domain, 6 * DAY);
    expect(await app.verify("acme", domain)).toMatchObject({ verified: true });
    // Found once, the time begins anew.
    app.dns.publish(record);
    await app.gone(domain, 8 * DAY);
    expect(await app.verify("acme", domain)).toMatchObject({ verified: true });
    app.dns.records.delete(record.name);
    expect(await app.verify("acme", domain)).toMatchObject({ verified: true });
    await app.gone(domain, 8 * DAY);
    expect(await app.verify("acme", domain)).toMatchObject({ verified: false });
  });

  it("is as before if a use finds the record again", async () => {
    const domain = newDomain();
    const { record } = await app.own("acme", domain);
    await app.seen(2 * DAY);
    await app.gone(domain, 8 * DAY);
    await use(domain);
    await settled();
    app.dns.records.delete(record.name);
    expect(await app.verify("acme", domain)).toMatchObject({ verified: true });
  });

  it("holds for seven days after the first miss, then ends on the next use", async () => {
    const old = newDomain();
    const gone = await app.own("acme", old);
    app.dns.records.delete(gone.record.name);
    await app.seen(8 * DAY);
    await app.gone(old, 8 * DAY);
    // This use is answered without waiting.
    expect(await use(old)).toHaveLength(1);
    await settled();
    expect(await use(old)).toEqual([]);
    expect(app.events.at(-1)).toMatchObject({
      type: "domain:lost",
      domain: old,
      reason: "record-gone",
      actor: "server",
    });
    // Whoever publishes the old value again has to look for the new one.
    app.dns.publish(gone.record);
    expect(await app.verify("acme", old)).toMatchObject({ verified: false });
  });

  it.each(["verify", "list"] as const)("ends on %s as well", async (action) => {
    const domain = newDomain();
    const { record } = await app.own("acme", domain);
    app.dns.records.delete(record.name);
    await app.seen(8 * DAY);
    await app.gone(domain, 8 * DAY);
    const answer = await app[action]("acme", domain);
    if (action === "verify") expect(answer).toMatchObject({ verified: false, verifiedAt: null });
    await settled();
    expect(await app.list("acme")).toContainEqual(
      expect.objectContaining({ domain, verified: false, verifiedAt: null }),
    );
  });

  it("is looked for once a day, and goes on if the record is there", async () => {
    const domain = newDomain();
    const { record } = await app.own("acme", domain);
    app.dns.asked.length = 0;
    const asked = () => app.dns.asked.filter((name) => name === record.name).length;
    for (let uses = 0; uses < 3; uses++) await use(domain);
    await settled();
    expect(asked()).toBe(0);
    await app.seen(2 * DAY);
    await app.api.updateTenantDomain({
      body: { tenantId: app.ids.acme, domain, discoverable: true },
    });
    for (let uses = 0; uses < 3; uses++) await use(domain);
    await settled();
    expect(asked()).toBe(1);
    app.dns.records.delete(record.name);
    expect(await app.verify("acme", domain)).toMatchObject({ verified: true });
  });
});

describe("without resolveTxt", () => {
  const NAME = "_tenant-verification.acme.com";
  const { options } = tenantDomains();

  it("Node's resolver is asked", async () => {
    const dns = process.getBuiltinModule("node:dns/promises");
    const resolveTxt = vi.spyOn(dns, "resolveTxt").mockResolvedValue([["a", "b"]]);
    onTestFinished(() => resolveTxt.mockRestore());
    expect(await options.resolveTxt(NAME)).toEqual([["a", "b"]]);
    expect(resolveTxt).toHaveBeenCalledWith(NAME);
  });

  it.each<[string, number, unknown, unknown]>([
    [
      "texts in quotes, in parts, and without",
      200,
      {
        Status: 0,
        Answer: [
          { type: 5, data: "other.acme.com." },
          { type: 16, data: '"one" "two"' },
          { type: 16, data: "three" },
        ],
      },
      ["onetwo", "three"],
    ],
    ["no such name", 200, { Status: 3 }, []],
    ["no such record", 200, { Status: 0 }, []],
    ["a failure", 200, { Status: 2 }, "status 2"],
    ["a failing server", 502, {}, "502"],
  ])("elsewhere, DNS over HTTPS: %s", async (_, status, body, expected) => {
    vi.stubGlobal("process", { ...process, getBuiltinModule: undefined });
    const fetched = vi.fn(async () => Response.json(body, { status }));
    vi.stubGlobal("fetch", fetched);
    onTestFinished(() => void vi.unstubAllGlobals());
    const answer = options.resolveTxt(NAME);
    if (typeof expected === "string") await expect(answer).rejects.toThrow(expected);
    else expect(await answer).toEqual(expected);
    expect(fetched.mock.calls.join()).toContain(`type=TXT&name=${NAME}`);
  });

  it("a request for DNS over HTTPS ends when the time is over", async () => {
    vi.stubGlobal("process", { ...process, getBuiltinModule: undefined });
    const pending = (_url: string, { signal }: RequestInit) =>
      new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    vi.stubGlobal("fetch", pending);
    onTestFinished(() => void vi.unstubAllGlobals());
    const { resolveTxt } = tenantDomains({ timeout: 0.02 }).options;
    await expect(resolveTxt(NAME)).rejects.toMatchObject({ name: "TimeoutError" });
  });
});
