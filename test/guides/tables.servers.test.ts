import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { getMigrations } from "better-auth/db/migration";
import { admin } from "better-auth/plugins";
import type { Pool, PoolClient, QueryResult } from "pg";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { tenantAuth } from "../../src/index";
import { createDatabase, databases, type TestDatabase } from "../support/database";
import { createInstance, createPlainInstance, type Instance, PASSWORD } from "../support/instance";
import { blocksIn, root, statementsFor } from "../support/pages";

const ADDING = "docs/adding.md";
const person = (email = "old@example.com") => ({ name: "Somebody", email, password: PASSWORD });
type Signed = { user: { id: string } };

describe.each(databases)("adding it to a running application on %s, as the guide says", (kind) => {
  async function createOld() {
    const database = await createDatabase(kind);
    onTestFinished(() => database.close());
    const old = await createPlainInstance(database);
    const member = old.browser();
    const { data } = await member.post<Signed>("/sign-up/email", person());
    return { database, old, member, memberId: data.user.id };
  }
  const install = async (database: TestDatabase) => {
    const instance = await createInstance({ database });
    // better-auth looks at the tables once, beside everything else: not while they are rebuilt.
    expect(await instance.api.listTenants()).toEqual([]);
    return instance;
  };

  it("the dry run shows what is added, drops nothing and changes no row", async () => {
    const { auth } = (await createOld()).old;
    const options = { ...auth.options, plugins: [admin(), tenantAuth()] };
    const { compileMigrations, toBeAdded } = await getMigrations(options);
    const plan = await compileMigrations();
    expect(plan.match(/create table .(\w+)/gi)).toHaveLength(2);
    expect(plan.match(/add (column )?.tenantId/gi)).toHaveLength(4);
    expect(plan).not.toMatch(/\b(drop|delete from|update|truncate|insert)\b/i);
    const tables = toBeAdded.map(({ table }) => table).sort();
    expect(tables).toEqual(["account", "session", "user", "verification"]);
  });

  it("the old version keeps working on the new tables; all steps, and all the way back", async () => {
    const { database, old, member, memberId } = await createOld();
    const expectOld = async ({ browser }: typeof old, newcomer: string) => {
      expect((await member.get("/get-session")).data).toMatchObject({ user: { id: memberId } });
      const { data } = await browser().post<Signed>("/sign-in/email", person());
      expect(data.user.id).toBe(memberId);
      const { status } = await browser().post("/sign-up/email", person(newcomer));
      expect(status).toBe(200);
    };
    const follow = async (heading: string) => {
      for (const statement of statementsFor(kind, ADDING, heading)) await database.query(statement);
    };
    const { auth, signUp, createTenant } = await install(database);
    await expectOld(old, "new@example.com");
    await follow("3. The old index on the e-mail");
    await follow("4. An index on accounts");
    const { toBeCreated, toBeAdded, toBeAddedIndexes } = await getMigrations(auth.options);
    expect([...toBeCreated, ...toBeAdded, ...toBeAddedIndexes]).toEqual([]);
    for (const slug of ["acme", "globex"]) {
      const { user } = await signUp((await createTenant(slug)).id, person().email);
      expect(user.id).not.toBe(memberId);
    }

    await follow("Rolling back");
    const table = database.quote("user");
    const users = await database.query(`select * from ${table} order by email`);
    expect(users.map(({ email }) => email)).toEqual(["new@example.com", person().email]);
    const ids = new Set(users.map(({ id }) => id));
    for (const name of ["session", "account"]) {
      const rows = await database.query(`select * from ${database.quote(name)}`);
      expect(new Set(rows.map(({ userId }) => userId)), name).toEqual(ids);
    }
    await expectOld(await createPlainInstance(database), "newer@example.com");
    // The old index is back, whatever else is true of it.
    const columns = ["id", "name", "email", "emailVerified", "createdAt", "updatedAt"];
    const list = columns.map(database.quote).join(", ");
    const copy = list.replace(database.quote("id"), "'copy'");
    const double = `insert into ${table} (${list}) select ${copy} from ${table} where id = ?`;
    await expect(database.query(double, [memberId])).rejects.toThrow(/unique|duplicate/i);
  });
});

const OWN_TABLES = "docs/own-tables.md";

/** Two tenants, and the guide's table with a project of each. */
async function createProjects(kind: (typeof databases)[number]) {
  const instance = await createInstance({ database: kind });
  const { database } = instance;
  if (kind === "sqlite") await database.query("pragma foreign_keys = on");
  for (const sql of statementsFor(kind, OWN_TABLES, "The column")) await database.query(sql);
  const acme = await instance.createTenant("acme");
  const globex = await instance.createTenant("globex");
  const table = database.quote("project");
  const columns = ["id", "tenantId", "name"].map(database.quote).join(", ");
  for (const { id, slug } of [acme, globex]) {
    const row = [`project-${slug}`, id, `Project of ${slug}`];
    await database.query(`insert into ${table} (${columns}) values (?, ?, ?)`, row);
  }
  return { ...instance, acme, globex };
}

it.each(databases)(
  "the table of docs/own-tables.md loses a tenant's rows with it, on %s",
  async (kind) => {
    const { api, acme, rows, database } = await createProjects(kind);
    expect(await rows("project")).toBe(2);
    await api.deleteTenant({ body: { tenantId: acme.id } });
    const left = await database.query(`select * from ${database.quote("project")}`);
    expect(left.map(({ id }) => id)).toEqual(["project-globex"]);
  },
);

interface Queries {
  listProjects(tenantId: string): Promise<{ id: string; name: string }[]>;
  findProject(tenantId: string, id: string): Promise<{ id: string } | undefined>;
  createProject(tenantId: string, name: string): Promise<unknown>;
  renameProject(tenantId: string, id: string, name: string): Promise<unknown>;
}

/** What a file of the guide exports, with the application's `database`. */
async function load<Exports>(name: string, { database }: Pick<Instance, "database">) {
  const block = blocksIn(OWN_TABLES).find(({ code }) => code.startsWith(`// ${name}\n`));
  if (!block) throw new Error(`${OWN_TABLES} has no ${name}`);
  const cache = join(root, "node_modules/.cache");
  mkdirSync(cache, { recursive: true });
  const directory = mkdtempSync(join(cache, "own-tables-"));
  vi.stubGlobal("database", database.option);
  onTestFinished(() => {
    rmSync(directory, { recursive: true });
    vi.unstubAllGlobals();
  });
  const file = join(directory, "file.ts");
  writeFileSync(file, block.code);
  return (await import(file)) as Exports;
}

describe.runIf(databases.includes("postgres"))("the code of docs/own-tables.md", () => {
  it.each(["kysely/projects.ts", "drizzle/projects.ts"])("%s stays in its tenant", async (file) => {
    const projects = await createProjects("postgres");
    const { acme, globex } = projects;
    const queries = await load<Queries>(file, projects);
    await queries.createProject(acme.id, "A new one");
    const names = async (id: string) => (await queries.listProjects(id)).map(({ name }) => name);
    expect(await names(acme.id)).toEqual(["A new one", "Project of acme"]);
    expect(await names(globex.id)).toEqual(["Project of globex"]);
    expect(await queries.findProject(acme.id, "project-globex")).toBeUndefined();
    await queries.renameProject(acme.id, "project-globex", "Taken over");
    expect(await names(globex.id)).toEqual(["Project of globex"]);
    await queries.renameProject(globex.id, "project-globex", "Renamed");
    expect(await names(globex.id)).toEqual(["Renamed"]);
  });

  it("row-level security hides and refuses rows of other tenants", async () => {
    const projects = await createProjects("postgres");
    const { database, acme, globex } = projects;
    const heading = "A second lock: row-level security";
    for (const sql of statementsFor("postgres", OWN_TABLES, heading)) await database.query(sql);
    // The tests connect as a superuser, whom nothing restricts.
    const role = `app_${acme.id.toLowerCase()}`;
    await database.query(`create role "${role}"`);
    await database.query(`grant all on "project" to "${role}"`);
    onTestFinished(async () => {
      await database.query(`drop owned by "${role}"`);
      await database.query(`drop role "${role}"`);
    });
    type Work = (client: PoolClient) => Promise<QueryResult>;
    type Guide = { asTenant(tenantId: string, work: Work): Promise<QueryResult> };
    const { asTenant } = await load<Guide>("lib/as-tenant.ts", projects);
    const queryAs = (tenantId: string, sql: string, values: string[] = []) =>
      asTenant(tenantId, async (client) => {
        await client.query(`set local role "${role}"`);
        return client.query(sql, values);
      });
    for (const { id, slug } of [acme, globex]) {
      const { rows } = await queryAs(id, 'select "id" from "project"');
      expect(rows).toEqual([{ id: `project-${slug}` }]);
    }
    const insert = `insert into "project" values ('stolen', $1, 'Stolen')`;
    await expect(queryAs(acme.id, insert, [globex.id])).rejects.toThrow(/row-level security/);
    // A connection that goes back to the pool keeps nothing.
    const pool = database.option as Pool;
    const { rows } = await pool.query("select current_setting('app.tenant_id', true) as tenant");
    expect(rows[0].tenant || null).toBeNull();
  });
});
