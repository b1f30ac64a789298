import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Pool, PoolClient } from "pg";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { databases } from "../support/database";
import { createInstance, type Instance } from "../support/instance";
import { blocksIn, root, statementsFor } from "../support/pages";

const GUIDE = "docs/own-tables.md";

/** Two tenants, and the guide's table with a project of each. */
async function createProjects(kind: (typeof databases)[number]) {
  const instance = await createInstance({ database: kind });
  const { database } = instance;
  if (kind === "sqlite") await database.query("pragma foreign_keys = on");
  for (const statement of statementsFor(kind, GUIDE, "The column")) await database.query(statement);
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
  const block = blocksIn(GUIDE).find(({ code }) => code.startsWith(`// ${name}\n`));
  if (!block) throw new Error(`${GUIDE} has no ${name}`);
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
    for (const statement of statementsFor("postgres", GUIDE, heading)) {
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
