import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { bySlug, type TenantPolicy } from "../src/index";
import type { Answer, Browser } from "./support/browser";
import { createDatabase, type TestDatabase } from "./support/database";
import { createInstance, createPlainInstance, PASSWORD } from "./support/instance";

const auth = {
  socialProviders: { google: { clientId: "global-client", clientSecret: "global-secret" } },
};
const GOOGLE = { providerId: "google", clientId: "tenant-client", clientSecret: "tenant-secret" };
const SOCIAL = { provider: "google", callbackURL: "/" };
const person = { name: "Somebody", email: "somebody@example.com", password: PASSWORD };

const POLICY: TenantPolicy = {
  signUp: "open",
  methods: ["password", "social:google"],
  password: { minLength: 10 },
  session: { expiresIn: 3600 },
};
const COLUMNS = [
  "no tenant",
  "session's tenant",
  "tenant",
  "tenant with a config",
  "tenant with a policy",
  "tenant by slug",
];

type Counts = Record<string, number>;

/** The same steps everywhere: only how a request names its tenant differs. */
interface Names {
  prefix?: "/tenant";
  body?: { tenantId: string };
  headers?: Record<string, string>;
}

/** Walks through the endpoints, and counts what reaches the database at each of them. */
async function measure(
  database: TestDatabase,
  browser: (headers?: Record<string, string>) => Browser,
  { prefix, body, headers = {} }: Names,
): Promise<Counts> {
  const counts: Counts = {};
  const count = async (name: string, run: () => Promise<Answer<unknown>>) => {
    database.statements.length = 0;
    const answer = await run();
    counts[name] = database.statements.length;
    if (answer.status !== 200) throw new Error(`${name}: ${JSON.stringify(answer.data)}`);
  };
  const path = (suffix: string) => `${prefix ?? ""}${suffix}`;
  // better-auth looks at the tables once, along with its first request. That is not counted.
  await browser().post("/sign-up/email", { ...person, email: "first@example.com" });
  // A tenant is looked up once in a while, and that is not counted either.
  await browser(headers).post(path("/sign-in/email"), { ...person, ...body });
  const user = browser(headers);
  await count("sign-up", () => user.post(path("/sign-up/email"), { ...person, ...body }));
  await count("get-session", () => user.get("/get-session"));
  await count("list-sessions", () => user.get("/list-sessions"));
  await count("update-user", () => user.post("/update-user", { name: "New name" }));
  await count("sign-in again", () => user.post(path("/sign-in/email"), { ...person, ...body }));
  await count("sign-out", () => user.post("/sign-out"));
  await count("get-session, signed out", () => user.get("/get-session"));
  const stranger = browser(headers);
  await count("sign-in", () => stranger.post(path("/sign-in/email"), { ...person, ...body }));
  const another = browser(headers);
  await count("social start", () => another.post(path("/sign-in/social"), { ...SOCIAL, ...body }));
  return counts;
}

/** All counts next to each other, for the message of an assertion that fails. */
function table(columns: Record<string, Counts>): string {
  const names = Object.keys(columns);
  const rows = Object.keys(columns.plain ?? {}).map((row) =>
    [row.padEnd(26), ...names.map((name) => String(columns[name]?.[row]).padEnd(name.length))].join(
      "  ",
    ),
  );
  return `\n${["queries".padEnd(26), ...names].join("  ")}\n${rows.join("\n")}\n`;
}

describe("queries", () => {
  const columns: Record<string, Counts> = {};

  beforeAll(async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: new Date() });
    const database = await createDatabase("sqlite");
    const plain = await createPlainInstance(database, auth);
    columns.plain = await measure(database, plain.browser, {});
    await database.close();

    for (const name of COLUMNS) {
      const database = await createDatabase("sqlite");
      const bySlugs = name === "tenant by slug";
      const tenant = bySlugs ? { resolveTenantId: bySlug() } : {};
      const instance = await createInstance({ database, auth, tenant });
      const { id: tenantId, slug } = await instance.createTenant();
      if (name === "tenant with a config") {
        await instance.api.registerTenantOAuthConfig({ body: { tenantId, ...GOOGLE } });
      }
      if (name === "tenant with a policy") {
        await instance.api.updateTenant({ body: { tenantId, policy: POLICY } });
      }
      const endpoints = { prefix: "/tenant", body: { tenantId } } as const;
      const names: Record<string, Names> = {
        "no tenant": {},
        "session's tenant": endpoints,
        "tenant by slug": { prefix: "/tenant", headers: { "x-tenant-slug": slug } },
      };
      columns[name] = await measure(
        database,
        instance.browser,
        names[name] ?? { ...endpoints, headers: { "x-tenant-id": tenantId } },
      );
      await database.close();
    }
  });

  afterAll(() => {
    vi.useRealTimers();
  });

  function expectMore(column: string, row: string, extra: number) {
    const [count, plain] = [columns[column]?.[row], columns.plain?.[row]];
    expect(plain, table(columns)).toBeGreaterThanOrEqual(0);
    expect(count, `${column}: ${row}${table(columns)}`).toBe(Number(plain) + extra);
  }

  it.each([
    "sign-up",
    "sign-in",
    "get-session",
    "get-session, signed out",
    "list-sessions",
    "update-user",
    "sign-out",
    "social start",
  ])("%s costs nothing more where no tenant is named", (row) => {
    expectMore("no tenant", row, 0);
  });

  it("R4: only a sign-in by somebody who is signed in has to look at that session", () => {
    expectMore("no tenant", "sign-in again", 1);
  });

  it.each([
    // The tenant is looked up after the commit: it may be gone by then.
    ["sign-up", 1],
    ["sign-in", 0],
    ["sign-in again", 0],
    ["get-session", 0],
    ["get-session, signed out", 0],
    ["list-sessions", 0],
    ["update-user", 0],
    ["sign-out", 0],
    ["social start", 1],
  ] as const)("%s costs %i more in a tenant that the request names", (row, extra) => {
    expectMore("tenant", row, extra);
    expectMore("tenant with a config", row, extra);
    expectMore("tenant with a policy", row, extra);
    expectMore("tenant by slug", row, extra);
  });

  it.each(["get-session", "get-session, signed out", "list-sessions", "update-user", "sign-out"])(
    "%s costs nothing more in the tenant of the session",
    (row) => {
      expectMore("session's tenant", row, 0);
    },
  );

  it("are counted at all", () => {
    for (const [name, counts] of Object.entries(columns)) {
      expect(counts["sign-up"], name).toBeGreaterThanOrEqual(4);
      expect(counts["get-session"], name).toBeGreaterThanOrEqual(1);
    }
  });
});
