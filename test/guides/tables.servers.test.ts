import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { getMigrations } from "better-auth/db/migration";
import type { Pool, PoolClient } from "pg";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { tenantAuth } from "../../src/index";
import type { Browser } from "../support/browser";
import { createDatabase, databases, type TestDatabase } from "../support/database";
import { createInstance, createPlainInstance, type Instance, PASSWORD } from "../support/instance";
import { blocksIn, root, statementsFor } from "./pages";

const ADDING = "docs/adding.md";
const EMAIL = "old@example.com";
const person = (email = EMAIL) => ({ name: "Somebody", email, password: PASSWORD });
type Signed = { user: { id: string } };

describe.each(databases)("adding it to a running application on %s, as the guide says", (kind) => {
  let database: TestDatabase;
  let old: Awaited<ReturnType<typeof createPlainInstance>>;
  let member: Browser;
  let memberId: string;

  beforeEach(async () => {
    database = await createDatabase(kind);
    onTestFinished(() => database.close());
    old = await createPlainInstance(database, {}, []);
    member = old.browser();
    memberId = (await member.post<Signed>("/sign-up/email", person())).data.user.id;
  });

  const follow = async (heading: string) => {
    for (const statement of statementsFor(kind, ADDING, heading)) await database.query(statement);
  };
  const install = async () => {
    const plugin = tenantAuth();
    const { auth, browser } = await createPlainInstance(database, {}, [plugin]);
    const api = auth.api as unknown as {
      createTenant(input: { body: { name: string; slug: string } }): Promise<{ id: string }>;
      listTenants(): Promise<unknown[]>;
    };
    // better-auth looks at the tables once, beside everything else: not while they are rebuilt.
    expect(await api.listTenants()).toEqual([]);
    return {
      auth,
      browser,
      createTenant: (slug: string) => api.createTenant({ body: { name: slug, slug } }),
    };
  };

  it("the dry run shows what is added, drops nothing and changes no row", async () => {
    const options = { ...old.auth.options, plugins: [tenantAuth()] };
    const { compileMigrations } = await getMigrations(options);
    const plan = await compileMigrations();
    expect(plan.match(/create table .(\w+)/gi)).toHaveLength(2);
    expect(plan.match(/add column .tenantId/gi) ?? plan.match(/add .tenantId/gi)).toHaveLength(4);
    expect(plan).not.toMatch(/\b(drop|delete from|update|truncate|insert)\b/i);
    const { toBeAdded } = await getMigrations(options);
    expect(toBeAdded.map(({ table }) => table).sort()).toEqual([
      "account",
      "session",
      "user",
      "verification",
    ]);
  });

  it("the old version keeps working on the new tables", async () => {
    await install();
    expect((await member.get("/get-session")).data).toMatchObject({ user: { id: memberId } });
    const newcomer = await old.browser().post("/sign-up/email", person("new@example.com"));
    expect(newcomer.status).toBe(200);
    expect((await old.browser().post("/sign-in/email", person())).status).toBe(200);
  });

  it("all steps, and all the way back", async () => {
    const { auth, browser, createTenant } = await install();
    await follow("3. The old index on the email");
    await follow("4. An index on accounts");
    const { toBeCreated, toBeAdded, toBeAddedIndexes } = await getMigrations(auth.options);
    expect([...toBeCreated, ...toBeAdded, ...toBeAddedIndexes]).toEqual([]);

    const ids = [];
    for (const slug of ["acme", "globex"]) {
      const { id } = await createTenant(slug);
      const body = { ...person(), tenantId: id };
      const answer = await browser().post<Signed>("/tenant/sign-up/email", body);
      expect(answer.status, JSON.stringify(answer.data)).toBe(200);
      ids.push(answer.data.user.id);
    }
    expect(new Set([memberId, ...ids]).size).toBe(3);

    await follow("Rolling back");
    const users = await database.query(`select * from ${database.quote("user")}`);
    expect(users.map(({ id }) => id)).toEqual([memberId]);
    for (const table of ["session", "account"]) {
      const rows = await database.query(`select * from ${database.quote(table)}`);
      expect(new Set(rows.map(({ userId }) => userId)), table).toEqual(new Set([memberId]));
    }
    const again = await createPlainInstance(database, {}, []);
    const signIn = await again.browser().post<Signed>("/sign-in/email", person());
    expect([signIn.status, signIn.data.user.id]).toEqual([200, memberId]);
    expect((await member.get("/get-session")).data).toMatchObject({ user: { id: memberId } });
    expect((await again.browser().post("/sign-up/email", person("new@example.com"))).status).toBe(
      200,
    );
    // The old index is back, whatever else is true of it.
    const columns = ["id", "name", "email", "emailVerified", "createdAt", "updatedAt"];
    const list = columns.map(database.quote).join(", ");
    const values = columns.map((c) => (c === "id" ? "'copy'" : database.quote(c))).join(", ");
    const table = database.quote("user");
    await expect(
      database.query(`insert into ${table} (${list}) select ${values} from ${table} where id = ?`, [
        memberId,
      ]),
    ).rejects.toThrow(/unique|duplicate/i);
  });
});

const OWN_TABLES = "docs/own-tables.md";

/** Two tenants, and the guide's table with a project of each. */
async function createProjects(kind: (typeof databases)[number]) {
  const instance = await createInstance({ database: kind });
  const { database } = instance;
  if (kind === "sqlite") await database.query("pragma foreign_keys = on");
  for (const statement of statementsFor(kind, OWN_TABLES, "The column"))
    await database.query(statement);
  const [acme, globex] = [
    await instance.createTenant("acme"),
    await instance.createTenant("globex"),
  ];
  const table = database.quote("project");
  const columns = ["id", "tenantId", "name"].map(database.quote).join(", ");
  for (const { id, slug } of [acme, globex]) {
    const row = [`project-${slug}`, id, `Project of ${slug}`];
    await database.query(`insert into ${table} (${columns}) values (?, ?, ?)`, row);
  }
  return { ...instance, acme, globex };
}

describe.each(databases)("the table of docs/own-tables.md on %s", (kind) => {
  it("loses a tenant's rows together with the tenant", async () => {
    const { api, acme, rows, database } = await createProjects(kind);
    expect(await rows("project")).toBe(2);
    await api.deleteTenant({ body: { tenantId: acme.id } });
    const left = await database.query(`select * from ${database.quote("project")}`);
    expect(left.map(({ id }) => id)).toEqual(["project-globex"]);
  });
});

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
    expect(await queries.findProject(globex.id, "project-globex")).toMatchObject({
      id: "project-globex",
    });
    await queries.renameProject(acme.id, "project-globex", "Taken over");
    expect(await names(globex.id)).toEqual(["Project of globex"]);
    await queries.renameProject(globex.id, "project-globex", "Renamed");
    expect(await names(globex.id)).toEqual(["Renamed"]);
  });

  it("row-level security hides and refuses rows of other tenants", async () => {
    const projects = await createProjects("postgres");
    const { database, acme, globex } = projects;
    const heading = "A second lock: row-level security";
    for (const statement of statementsFor("postgres", OWN_TABLES, heading)) {
      await database.query(statement);
    }
    // The tests connect as a superuser, whom nothing restricts.
    const role = `app_${acme.id.toLowerCase()}`;
    await database.query(`create role "${role}"`);
    await database.query(`grant all on "project" to "${role}"`);
    onTestFinished(async () => {
      await dropRole(projects, role);
    });
    type AsTenant = <Result>(
      tenantId: string,
      work: (client: PoolClient) => Promise<Result>,
    ) => Promise<Result>;
    const { asTenant } = await load<{ asTenant: AsTenant }>("lib/as-tenant.ts", projects);
    const as = <Result>(tenantId: string, work: (client: PoolClient) => Promise<Result>) =>
      asTenant(tenantId, async (client) => {
        await client.query(`set local role "${role}"`);
        return work(client);
      });

    for (const { id, slug } of [acme, globex]) {
      const { rows } = await as(id, (client) => client.query('select "id" from "project"'));
      expect(rows).toEqual([{ id: `project-${slug}` }]);
    }
    const insert = `insert into "project" values ('stolen', $1, 'Stolen')`;
    await expect(as(acme.id, (client) => client.query(insert, [globex.id]))).rejects.toThrow(
      /row-level security/,
    );
    // A connection that goes back to the pool keeps nothing.
    const pool = database.option as Pool;
    const { rows } = await pool.query("select current_setting('app.tenant_id', true) as tenant");
    expect(rows[0].tenant || null).toBeNull();
  });

  async function dropRole({ database }: Instance, role: string) {
    await database.query(`drop owned by "${role}"`);
    await database.query(`drop role "${role}"`);
  }
});
