import { magicLink } from "better-auth/plugins";
import { describe, expect, it, onTestFinished } from "vitest";
import { createDatabase } from "../support/database";
import { createInstance, PASSWORD } from "../support/instance";
import { databases } from "../support/servers";

/** What somebody may have written into the column past us. */
const STRANGE = [
  '"closed"',
  "[]",
  "7",
  "0",
  "false",
  '""',
  '{"signUp":"never"}',
  '{"signUp":null}',
  '{"methods":"password"}',
  '{"methods":{}}',
  '{"methods":[]}',
  '{"methods":["pigeon"]}',
  '{"methods":[null]}',
  '{"emailDomains":"example.com"}',
  '{"emailDomains":{}}',
  '{"session":{"expiresIn":"long"}}',
  '{"session":{"expiresIn":-1}}',
  '{"password":null}',
  '{"fromANewerVersion":true}',
];

/** Only a database without a type for JSON takes these. */
const NO_JSON = ["", "closed", "{"];

async function start(kind: (typeof databases)[number]) {
  const database = await createDatabase(kind);
  onTestFinished(() => database.close());
  const instance = await createInstance({
    database,
    plugins: [magicLink({ sendMagicLink: async () => {} })],
  });
  const { browser: operator } = await instance.operator();
  return { instance, operator };
}

describe.each(databases)("a stored policy that nobody understands, on %s", (kind) => {
  it("lets nobody in and breaks nothing, until a manager sets another", async () => {
    const { instance, operator } = await start(kind);
    for (const stored of [...STRANGE, ...(kind === "sqlite" ? NO_JSON : [])]) {
      const { id: tenantId } = await instance.createTenant();
      // Nobody has looked at the tenant yet: it is remembered from its first request on.
      await instance.database.query(
        `update ${instance.database.quote("tenant")} set policy = ? where id = ?`,
        [stored, tenantId],
      );
      const at = instance.browser({ "x-tenant-id": tenantId });
      const person = { name: "New", email: "new@example.com", password: PASSWORD };
      const attempts = [
        await at.post("/sign-up/email", person),
        await at.post("/sign-in/email", person),
        await at.post("/sign-in/magic-link", person),
      ];
      for (const { status, code } of attempts) {
        expect([stored, status, code]).toEqual([stored, 403, "SIGN_IN_METHOD_NOT_ALLOWED"]);
      }
      const page = await at.get("/tenant/sign-in-methods");
      expect([stored, page.status, page.data.emailAndPassword]).toEqual([
        stored,
        200,
        { enabled: false, signUp: false },
      ]);
      expect([stored, (await at.get("/get-session")).status]).toEqual([stored, 200]);
      const got = await operator.get("/tenant/get", { query: { id: tenantId } });
      expect([stored, got.status]).toEqual([stored, 200]);
      expect([stored, (await operator.get("/tenant/list")).status]).toEqual([stored, 200]);
      const renamed = await operator.post("/tenant/update", { tenantId, name: "Renamed" });
      expect([stored, renamed.status, renamed.data.policy]).toEqual([stored, 200, got.data.policy]);
      const mended = await operator.post("/tenant/update", { tenantId, policy: null });
      expect([stored, mended.status, mended.data.policy]).toEqual([stored, 200, null]);
      expect([stored, (await at.post("/sign-up/email", person)).status]).toEqual([stored, 200]);
    }
  });

  it("what is understood counts as it is, also a null in the place of none", async () => {
    const { instance } = await start(kind);
    for (const stored of ["null", '{"signUp":"open"}', '{"methods":["password"]}', "{}"]) {
      const { id: tenantId } = await instance.createTenant();
      await instance.database.query(
        `update ${instance.database.quote("tenant")} set policy = ? where id = ?`,
        [stored, tenantId],
      );
      expect((await instance.signUp(tenantId)).token).toBeTruthy();
    }
  });
});
