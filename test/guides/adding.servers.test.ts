import { getMigrations } from "better-auth/db/migration";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { tenantAuth } from "../../src/index";
import type { Browser } from "../support/browser";
import { createDatabase, databases, type TestDatabase } from "../support/database";
import { createPlainInstance, PASSWORD } from "../support/instance";
import { statementsFor } from "../support/pages";

const GUIDE = "docs/adding.md";
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
    for (const statement of statementsFor(kind, GUIDE, heading)) await database.query(statement);
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
    await follow("3. The old index on the e-mail");
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
