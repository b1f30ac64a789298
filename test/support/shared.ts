import { afterAll, beforeAll } from "vitest";
import type { Browser } from "./browser";
import { createDatabase, type DatabaseKind } from "./database";
import { createInstance, type Instance, type InstanceOptions } from "./instance";

/** An instance that all tests of a file work on, each in a tenant of its own. */
export interface Shared {
  instance: Instance;
  /** Somebody who may manage tenants. */
  operator: Browser;
}

/** Most of the time of a small test goes into its instance: here a whole file shares one. */
export function shareInstance(
  options: Omit<InstanceOptions, "database"> = {},
  kind: DatabaseKind = "sqlite",
): Shared {
  const shared = {} as Shared;
  beforeAll(async () => {
    const database = await createDatabase(kind);
    shared.instance = await createInstance({ ...options, database });
    shared.operator = (await shared.instance.operator()).browser;
  });
  afterAll(() => shared.instance.database.close());
  return shared;
}
