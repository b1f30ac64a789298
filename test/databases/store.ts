import { username } from "better-auth/plugins";
import { onTestFinished } from "vitest";
import { tenantInvitations } from "../../src/invitations/index";
import type { DatabaseKind, TestDatabase } from "../support/database";
import { createSocialInstance } from "../support/social";

export type IdKind = (typeof ID_KINDS)[number];

/** How better-auth makes ids: random texts, UUIDs, or numbers that the database counts. */
export const ID_KINDS = ["text", "uuid", "serial"] as const;

export const DATABASE_NAMES: Record<DatabaseKind, string> = {
  sqlite: "SQLite",
  postgres: "PostgreSQL",
  mysql: "MariaDB",
};

export type Row = Record<string, unknown>;

/** A fresh, empty database behind one of better-auth's adapters. */
export interface Store extends Pick<TestDatabase, "option" | "close"> {
  /** Whether better-auth's own migrations make the tables; otherwise they are there already. */
  migrate: boolean;
  /** Every row of a model as it is stored, past the border. */
  rows(model: string): Promise<Row[]>;
}

/** An adapter on a database, with one kind of ids: something that the plugin has to work on. */
export interface Ground {
  name: string;
  ids: IdKind;
  open(): Promise<Store>;
  /** How many come at once: fewer where there is one connection, and less to find. */
  crowd?: number;
  /** Why nothing here keeps a value from being stored twice. */
  noUniqueValues?: string;
  /** Why better-auth cannot join in the database here. */
  noJoins?: string | undefined;
  /** Of two that wait for each other the database ends one, and nobody tries again. */
  deadlocks?: boolean;
  /** An id may come back after its row was deleted. */
  reusesIds?: boolean;
}

/** One has a column that is unique over all tenants, the other a table of its own. */
export const plugins = () => [username(), tenantInvitations({ sendInvitationEmail: () => {} })];

export const generateId = (ids: IdKind) => (ids === "text" ? undefined : ids);

/** The name of a test, with the reason where this ground cannot stand it. */
export const because = (name: string, reason: string | undefined) =>
  reason ? `${name} (skipped: ${reason})` : name;

interface WorldOptions {
  /** Whether better-auth joins in the database. */
  joins?: boolean;
  sendResetPassword?: (mail: { token: string }) => Promise<void>;
}

export type World = Awaited<ReturnType<typeof createWorld>>;

/** An instance with the fake identity provider, two tenants, and a look past the border. */
export async function createWorld(ground: Ground, options: WorldOptions = {}) {
  const { joins = false, sendResetPassword } = options;
  const store = await ground.open();
  onTestFinished(() => store.close());
  const query = async () => {
    throw new Error("Not every adapter has SQL behind it: use rows()");
  };
  const app = await createSocialInstance({
    database: { kind: "sqlite", quote: String, query, statements: [], ...store },
    migrate: store.migrate,
    plugins: plugins(),
    auth: {
      emailAndPassword: { enabled: true, sendResetPassword },
      advanced: { database: { generateId: generateId(ground.ids), joins } },
    },
  });

  return {
    ...app,
    a: await app.createTenant("acme"),
    b: await app.createTenant("bolt"),
    rows: store.rows,
    /** The rows of a tenant, or of the platform. */
    rowsOf: async (model: string, tenantId: string | null) =>
      (await store.rows(model)).filter((row) => String(row.tenantId) === (tenantId ?? "")),
    count: async (model: string) => (await store.rows(model)).length,
  };
}
