import { describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { createInstance, type Instance } from "../support/instance";
import { databases } from "../support/servers";

type Metadata = Record<string, unknown>;
type Answer = { id: string; metadata: Metadata | null };

const LIMIT = 64 * 1024;

/** An object whose JSON has exactly this many bytes. */
const ofBytes = (bytes: number): Metadata => ({ text: "x".repeat(bytes - '{"text":""}'.length) });

/** An object with this many levels, itself included. */
const nested = (levels: number): string =>
  `${'{"a":'.repeat(levels - 1)}{}${"}".repeat(levels - 1)}`;

const ROUND_TRIPS: [description: string, metadata: Metadata][] = [
  ["an empty object", {}],
  ["a flat object", { plan: "pro", seats: 5, trial: false, coupon: null }],
  ["nested objects and arrays", { a: { b: { c: [1, [2, [3, { d: [] }]], {}] } }, e: [[], [{}]] }],
  ["nulls", { a: null, b: [null, null], c: { d: null } }],
  [
    "numbers",
    {
      zero: 0,
      negative: -1,
      fraction: 0.1,
      small: 5e-324,
      large: 1.7976931348623157e308,
      exact: Number.MAX_SAFE_INTEGER,
      list: [1e21, 1e-7, -1.5, 123456789.12345679],
    },
  ],
  [
    "strings that look like dates",
    {
      day: "2024-01-01",
      second: "2024-01-01T00:00:00Z",
      milli: "2024-01-01T00:00:00.000Z",
      offset: "2024-01-01T00:00:00+02:00",
      list: ["2024-02-30T25:00:00Z", { deep: "1999-12-31T23:59:59.999Z" }],
    },
  ],
  ["strings that look like JSON", { a: "{}", b: '{"c":1}', c: "null", d: "true", e: "1", f: '"' }],
  ["strings that need escaping", { a: "\\ \" ' ` $x \n\r\t\b\f \u001f \u2028 %s ?", b: "" }],
  [
    "unicode",
    { "ключ 🔑": "gr\u00f6\u00dfe 株式会社 👩\u200d👧 \u00e9 e\u0301 \u{10ffff} \ufffd \ufeff" },
  ],
  [
    "keys with a meaning elsewhere",
    {
      "": "empty",
      constructor: { prototype: 1 },
      hasOwnProperty: "x",
      toString: "x",
      id: "x",
      tenantId: "x",
      length: 3,
      "a.b": 1,
      $gt: 1,
    },
  ],
  ["booleans", { yes: true, no: false, list: [true, false] }],
];

async function start(options: Parameters<typeof createInstance>[0]) {
  const instance = await createInstance(options);
  const { browser } = await instance.operator();
  return { instance, operator: browser };
}

/** The metadata as every way of reading the tenant gives it. */
async function readings(instance: Instance, operator: Browser, id: string) {
  const { data } = await operator.get<Answer>("/tenant/get", { query: { id } });
  const { data: list } = await operator.get<Answer[]>("/tenant/list");
  const fromApi = await instance.api.getTenant({ query: { id } });
  const apiList = await instance.api.listTenants();
  return [
    data.metadata,
    list.find((tenant) => tenant.id === id)?.metadata,
    fromApi.metadata,
    apiList.find((tenant) => tenant.id === id)?.metadata,
  ];
}

describe.each(databases)("metadata on %s", (database) => {
  it.each(ROUND_TRIPS)("comes back as it was: %s", async (_, metadata) => {
    const { instance, operator } = await start({ database });
    const created = await operator.post<Answer>("/tenant/create", {
      name: "Acme",
      slug: "acme",
      metadata,
    });
    expect(created.status).toBe(200);
    expect(json(created.data.metadata)).toBe(json(metadata));
    const { id } = created.data;
    for (const read of await readings(instance, operator, id))
      expect(json(read)).toBe(json(metadata));

    const viaApi = await instance.api.createTenant({
      body: { name: "Other", slug: "other", metadata },
    });
    expect(json(viaApi.metadata)).toBe(json(metadata));
    const cleared = { tenantId: viaApi.id, metadata: null };
    expect((await instance.api.updateTenant({ body: cleared })).metadata).toBeNull();
    const updated = await operator.post<Answer>("/tenant/update", {
      tenantId: viaApi.id,
      metadata,
    });
    expect(json(updated.data.metadata)).toBe(json(metadata));
    const again = await instance.api.updateTenant({ body: { tenantId: viaApi.id, metadata } });
    expect(json(again.metadata)).toBe(json(metadata));
    for (const read of await readings(instance, operator, viaApi.id)) {
      expect(json(read)).toBe(json(metadata));
    }
  });

  it("keeps a key __proto__ as a key, and pollutes nothing", async () => {
    const { instance, operator } = await start({ database });
    const given = '{"__proto__":{"polluted":"yes"},"a":{"__proto__":[1]}}';
    const { status, data } = await operator.post<Answer>(
      "/tenant/create",
      `{"name":"Acme","slug":"acme","metadata":${given}}`,
    );
    expect(status).toBe(200);
    for (const read of [data.metadata, ...(await readings(instance, operator, data.id))]) {
      expect(json(read)).toBe(json(JSON.parse(given)));
      expect((read as { polluted?: string }).polluted).toBeUndefined();
    }
    expect(({} as { polluted?: string }).polluted).toBeUndefined();
    const updated = await operator.post<Answer>(
      "/tenant/update",
      `{"tenantId":"${data.id}","metadata":{"__proto__":null}}`,
    );
    expect(JSON.stringify(updated.data.metadata)).toBe('{"__proto__":null}');
  });

  it("takes up to 64 KiB of JSON, and not a byte more", async () => {
    const { instance, operator } = await start({ database });
    const create = (slug: string, metadata: Metadata) =>
      operator.post<Answer>("/tenant/create", { name: "Acme", slug, metadata });
    const largest = ofBytes(LIMIT);
    const created = await create("largest", largest);
    expect(created.status).toBe(200);
    for (const read of await readings(instance, operator, created.data.id)) {
      expect(json(read)).toBe(json(largest));
    }
    const tooLarge = await create("too-large", ofBytes(LIMIT + 1));
    expect([tooLarge.status, tooLarge.code]).toEqual([400, "VALIDATION_ERROR"]);
    // Half as many characters as bytes: it is bytes that count.
    const wide = await create("wide", { text: "é".repeat(LIMIT / 2) });
    expect([wide.status, wide.code]).toEqual([400, "VALIDATION_ERROR"]);
    const updated = await operator.post("/tenant/update", {
      tenantId: created.data.id,
      metadata: ofBytes(LIMIT + 1),
    });
    expect([updated.status, updated.code]).toEqual([400, "VALIDATION_ERROR"]);
    expect(await instance.rows("tenant")).toBe(1);
  });

  it("takes 30 levels", async () => {
    const { instance, operator } = await start({ database });
    const { status, data } = await operator.post<Answer>(
      "/tenant/create",
      `{"name":"Acme","slug":"acme","metadata":${nested(30)}}`,
    );
    expect(status).toBe(200);
    for (const read of await readings(instance, operator, data.id)) {
      expect(JSON.stringify(read)).toBe(nested(30));
    }
  });

  // MariaDB takes no JSON with more than 32 levels, and JSON.stringify() runs out of stack.
  it.each([40, 200, 6000, 10_000])(
    "stores %i levels or refuses them, and never breaks",
    async (levels) => {
      const { instance, operator } = await start({ database });
      const { status, code, data } = await operator.post<Answer>(
        "/tenant/create",
        `{"name":"Acme","slug":"acme","metadata":${nested(levels)}}`,
      );
      if (status === 200) expect(JSON.stringify(data.metadata)).toBe(nested(levels));
      else expect([status, code]).toEqual([400, "VALIDATION_ERROR"]);
      expect(await instance.rows("tenant")).toBe(status === 200 ? 1 : 0);
    },
  );
});

/** JSON with its keys in order: PostgreSQL does not keep theirs. A Date is no string here. */
function json(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(json)}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${json(item)}`)}}`;
}
