import { createHash } from "node:crypto";
import type { TestDatabase } from "../../test/support/database";

/** How many of each. Tenant 0 comes on top: the hot one, with users of its own. */
export interface Size {
  tenants: number;
  users: number;
  hotUsers: number;
}

/** What they sign in with. */
export interface Credentials {
  /** As it is stored. */
  password: string;
  /** Where every tenth of them has an account. */
  provider: string;
}

type Database = Pick<TestDatabase, "kind" | "option" | "query" | "quote">;

export const HOT = 0;
export const TABLES = [
  "tenant",
  "tenantOauthConfig",
  "user",
  "session",
  "account",
  "verification",
] as const;

// Ids lie scattered over the indexes, as better-auth's own do.
const md5 = (text: string) => createHash("md5").update(text).digest("hex");
export const tenantId = (n: number) => md5(`tenant-${n}`);
export const tenantSlug = (n: number) => `tenant-${n}`;
export const userId = (n: number) => md5(`user-${n}`);
export const userEmail = (n: number) => `member-${n}@example.com`;

/** Users of a tenant, for k from 1 on. Those with a round number have an account at the provider. */
export const userOf = (tenant: number, k: number, { tenants, users }: Size) =>
  tenant === HOT ? users + 10 * k : tenant - 1 + k * tenants;

/**
 * Fills the tables past better-auth. Users have a password, a session and perhaps a social account;
 * there are reset tokens, and OAuth configs, which are copies of the ones that are there already.
 */
export async function populate(
  database: Database,
  { tenants, users, hotUsers }: Size,
  { password, provider }: Credentials,
): Promise<void> {
  const { numbers, inSeconds, md5Of } = WORDS[database.kind];
  const q = database.quote;
  const hash = (prefix: string, n = "n") => md5Of(`concat('${prefix}-', ${n})`);
  const tenant = hash("tenant", `case when n > ${users} then ${HOT} else 1 + n % ${tenants} end`);
  const everybody = numbers(1, users + hotUsers);
  const times = { createdAt: inSeconds("-n"), updatedAt: inSeconds("-n") };
  const owned = { tenantId: tenant, userId: hash("user"), ...times };
  const expiresAt = inSeconds("604800");

  if (database.kind === "sqlite") await writeHashes(database, users + hotUsers, provider);
  await inBulk(database, async (run) => {
    const insert = (table: string, columns: Record<string, string>, from: string) => {
      const names = Object.keys(columns).map(q).join(", ");
      const values = Object.values(columns).join(", ");
      return run(`insert into ${q(table)} (${names}) select ${values} from ${from}`);
    };
    await insert(
      "tenant",
      {
        id: hash("tenant"),
        name: "concat('Tenant ', n)",
        slug: "concat('tenant-', n)",
        status: "'active'",
        ...times,
      },
      numbers(0, tenants),
    );
    await insert(
      "user",
      {
        id: hash("user"),
        tenantId: tenant,
        name: "concat('User ', n)",
        email: "concat('member-', n, '@example.com')",
        emailVerified: "true",
        ...times,
      },
      everybody,
    );
    await insert(
      "session",
      { id: hash("session"), token: hash("token"), expiresAt, ...owned },
      everybody,
    );
    await insert(
      "account",
      {
        id: hash("account", "concat(provider, n)"),
        providerId: "provider",
        accountId: `case provider when 'credential' then ${hash("user")} else concat(n, '') end`,
        password: `case provider when 'credential' then '${password}' end`,
        ...owned,
      },
      `${everybody}, (select 'credential' as provider union all select '${provider}') p
       where provider = 'credential' or n % 10 = 0`,
    );
    await insert(
      "verification",
      {
        id: hash("verification"),
        tenantId: tenant,
        identifier: `concat('reset-password:', ${hash("reset")})`,
        value: hash("user"),
        expiresAt,
        ...times,
      },
      `${everybody} where n % 10 = 0 or n > ${users}`,
    );
    const copied = ["providerId", "clientId", "clientSecret", "enabled", "createdAt", "updatedAt"];
    await insert(
      "tenantOauthConfig",
      {
        id: hash("config"),
        tenantId: hash("tenant"),
        ...Object.fromEntries(copied.map((column) => [column, q(column)])),
      },
      `${q("tenantOauthConfig")}, ${numbers(0, tenants)} where n % 10 < 2`,
    );
  });
}

interface Words {
  /** A table of numbers, in a column n. */
  numbers(from: number, to: number): string;
  inSeconds(seconds: string): string;
  md5Of(text: string): string;
}

/** What each database has another word for. */
const WORDS: Record<TestDatabase["kind"], Words> = {
  postgres: {
    numbers: (from, to) => `generate_series(${from}, ${to}) n`,
    inSeconds: (seconds) => `date_trunc('second', now()) + (${seconds}) * interval '1 second'`,
    md5Of: (text) => `md5(${text})`,
  },
  mysql: {
    numbers: (from, to) => `(select seq as n from seq_${from}_to_${to}) s`,
    inSeconds: (seconds) => `date_add(now(3), interval ${seconds} second)`,
    md5Of: (text) => `md5(${text})`,
  },
  sqlite: {
    numbers: (from, to) =>
      `(with recursive s(n) as (select ${from} union all select n + 1 from s where n < ${to})
        select n from s) s`,
    inSeconds: (seconds) => `strftime('%Y-%m-%dT%H:%M:%fZ', 'now', concat(${seconds}, ' seconds'))`,
    md5Of: (text) => `(select hash from temp.hashes where text = ${text})`,
  },
};

/** SQLite cannot count them itself. */
async function writeHashes({ query }: Database, last: number, provider: string): Promise<void> {
  await query("create temp table hashes (text text primary key, hash text)");
  const things = ["tenant", "user", "session", "token", "verification", "reset", "config"];
  const accounts = ["credential", provider].map((name) => `account-${name}`);
  for (let n = 0; n <= last; n++) {
    const texts = [...things.map((thing) => `${thing}-${n}`), ...accounts.map((it) => it + n)];
    const rows = texts.map((text) => `('${text}', '${md5(text)}')`);
    await query(`insert into temp.hashes values ${rows}`);
  }
}

type Run = (sql: string) => Promise<unknown>;

/** Loads into tables without keys, and builds the keys at the end: that is several times faster. */
async function inBulk(database: Database, load: (run: Run) => Promise<void>) {
  if (database.kind === "mysql") {
    // One connection, and it builds the keys of an empty table in one go by itself.
    const connection = await database.option.getConnection();
    const run: Run = (sql) => connection.query(sql);
    await run("set unique_checks = 0, foreign_key_checks = 0");
    await load(run);
    connection.destroy();
    await database.query(`analyze table ${TABLES.map(database.quote).join(", ")}`);
    return;
  }
  const { query } = database;
  if (database.kind === "sqlite") {
    await load(query);
    await query("drop table temp.hashes");
    await query("analyze");
    return;
  }
  await query("set synchronous_commit = off");
  await query("set maintenance_work_mem = '512MB'");
  const constraints = await query(`
    select format('alter table %s drop constraint %I', conrelid::regclass, conname) as drop,
      format('alter table %s add constraint %I %s', conrelid::regclass, conname,
        pg_get_constraintdef(oid)) as make
    from pg_constraint where connamespace = 'public'::regnamespace order by contype <> 'f'`);
  const indexes = await query(`
    select format('drop index %s', indexrelid::regclass) as drop, pg_get_indexdef(indexrelid) as make
    from pg_index join pg_class on pg_class.oid = indrelid
    where relnamespace = 'public'::regnamespace
      and not exists (select from pg_constraint where conindid = indexrelid)`);
  for (const { drop } of [...constraints, ...indexes]) await query(String(drop));
  await load(query);
  for (const { make } of [...constraints.reverse(), ...indexes]) await query(String(make));
  await query(`vacuum analyze ${TABLES.map(database.quote).join(", ")}`);
}
