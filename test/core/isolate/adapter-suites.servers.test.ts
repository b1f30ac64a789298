import {
  authFlowTestSuite,
  caseInsensitiveTestSuite,
  joinsTestSuite,
  normalTestSuite,
  testAdapter,
  transactionsTestSuite,
  uuidTestSuite,
} from "@better-auth/test-utils/adapter";
import type { BetterAuthOptions } from "better-auth";
import type { DBAdapter, DBTransactionAdapter } from "better-auth/types";
import { afterAll, beforeAll, describe, expect, vi } from "vitest";
import { runInScope, scopeOf } from "../../../src/core/request";
import { createDatabase, type TestDatabase } from "../../support/database";
import { createInstance, type InstanceOptions } from "../../support/instance";
import { everyCase } from "../../support/matrix";

/** What the suites ask for and the isolated adapter cannot give, with the reason. */
const disableTests = {
  // A table whose foreign key is a user's email. That takes a unique email, and here an email is
  // unique in its tenant only.
  "findOne - should join a model with modified field name": true,
};

const ORGANIZATIONS = ["organization", "member", "invitation", "team", "teamMember"];

/** Without the suite of serial ids, which are refused on SQLite. */
const TESTS = () => [
  normalTestSuite({ disableTests }),
  joinsTestSuite({ disableTests }),
  uuidTestSuite({ disableTests }),
  transactionsTestSuite(),
  caseInsensitiveTestSuite(),
  authFlowTestSuite(),
];

// The suites print a line for every clean-up and migration.
beforeAll(() => void vi.spyOn(console, "log").mockImplementation(() => {}));
afterAll(() => vi.restoreAllMocks());

/**
 * Someone else's tests: the suites that better-auth publishes for the authors of database adapters,
 * through the isolated adapter, on the platform and inside a tenant: hundreds of them, of what
 * adapter-properties tries in `npm test` as well.
 */
describe.runIf(everyCase).each(["the platform", "a tenant"])("%s", async (side) => {
  let database: TestDatabase | undefined;
  let tenantId: string | null = null;
  let started = new WeakMap<BetterAuthOptions, ReturnType<typeof start>>();

  /** better-auth with the plugin, and what the start asks for: tables and columns of a suite. */
  async function start({ plugins = [], ...auth }: BetterAuthOptions, migrate: boolean) {
    const models = plugins.flatMap(({ schema }) => Object.keys(schema ?? {}));
    const isolated = ["user", "session", "account", "verification"];
    const { email } = auth.user?.fields ?? {};
    const tenant = {
      scopedModels: models.filter((model) => ORGANIZATIONS.includes(model)),
      sharedModels: models.filter((model) => ![...isolated, ...ORGANIZATIONS].includes(model)),
      ...(email && { schema: { user: { fields: { email } } } }),
    };
    const arrange: InstanceOptions["arrange"] = (ours, others) => [
      ours,
      // The suites compare whole rows, without what this one brings.
      ...others.filter(({ id }) => id !== "admin"),
    ];
    const on = database as TestDatabase;
    return createInstance({ database: on, tenant, auth, plugins, arrange, migrate });
  }

  const finish = async () => database?.close();

  /** Suites change the options and want the tables that belong to them: a new database each time. */
  async function runMigrations(options: BetterAuthOptions) {
    await finish();
    database = await createDatabase("sqlite");
    started = new WeakMap();
    const { id } = await (await open(options, true)).createTenant();
    tenantId = side === "a tenant" ? id : null;
  }

  /** A suite asks for its adapter at every call, with the same options until it changes them. */
  async function open(options: BetterAuthOptions, migrate = false) {
    if (!database) await runMigrations(options);
    const known = started.get(options) ?? start(options, migrate);
    started.set(options, known);
    return known;
  }

  /**
   * The suites compare whole rows, and know nothing of tenants: our columns are checked here, and
   * taken away. Where fields are selected it was not asked for, and has to be absent.
   */
  function withoutTenant(row: unknown, select?: string[]): unknown {
    if (Array.isArray(row)) return row.map((item) => withoutTenant(item, select));
    if (typeof row !== "object" || row === null || row instanceof Date) return row;
    const { tenantId: owner, ...others } = row as Record<string, unknown>;
    // A column of ours that a new user does not have yet.
    const { sessionGeneration, ...rest } = others;
    expect(sessionGeneration ?? null).toBeNull();
    if (select?.length) expect(owner).toBeUndefined();
    else if (owner !== undefined) expect(owner).toBe(tenantId);
    const entries = Object.entries(rest).map(([key, value]) => [key, withoutTenant(value)]);
    return Object.fromEntries(entries);
  }

  /** The adapter, with every call in the scope. */
  const inScope = <Adapter extends DBTransactionAdapter>(adapter: Adapter): Adapter =>
    new Proxy(adapter, {
      get(_, name) {
        const method: unknown = Reflect.get(adapter, name);
        if (typeof method !== "function") return method;
        if (name === "transaction") {
          return (run: (inner: DBTransactionAdapter) => unknown) =>
            method((inner: DBTransactionAdapter) => run(inScope(inner)));
        }
        return async (call: { select?: string[] }) =>
          withoutTenant(await runInScope(scopeOf(tenantId), () => method(call)), call.select);
      },
    });

  const { execute } = await testAdapter({
    adapter: async (options) => {
      const { context } = await open(options);
      return () => inScope(context.adapter as unknown as DBAdapter);
    },
    runMigrations,
    onFinish: finish,
    tests: TESTS(),
  });
  execute();
});
