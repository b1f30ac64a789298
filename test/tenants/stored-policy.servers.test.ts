import { magicLink } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { databases } from "../support/database";
import { PASSWORD } from "../support/instance";
import { outcome, shareWorld } from "../support/world";

/** What somebody may have written into the column past us. */
const STRANGE = [
  ...['"closed"', "[]", "7", "0", "false", '""', '{"password":null}', '{"fromANewerVersion":true}'],
  ...['"never"', "null"].map((value) => `{"signUp":${value}}`),
  ...['"password"', "{}", "[]", '["pigeon"]', "[null]"].map((value) => `{"methods":${value}}`),
  ...['"example.com"', "{}"].map((value) => `{"emailDomains":${value}}`),
  ...['"long"', "-1"].map((value) => `{"session":{"expiresIn":${value}}}`),
];

/** Only a database without a type for JSON takes these. */
const NO_JSON = ["", "closed", "{"];

describe.each(databases)("a stored policy on %s", (kind) => {
  const world = shareWorld({ plugins: [magicLink({ sendMagicLink: async () => {} })] }, kind);

  /** A tenant that nobody has looked at yet: it is remembered from its first request on. */
  async function store(policy: string) {
    const { id } = await world.createTenant();
    const table = world.database.quote("tenant");
    await world.database.query(`update ${table} set policy = ? where id = ?`, [policy, id]);
    return id;
  }

  it.each([...STRANGE, ...(kind === "sqlite" ? NO_JSON : [])])(
    "that nobody understands lets nobody in, until a manager sets another: %s",
    async (stored) => {
      const tenantId = await store(stored);
      const at = world.at(tenantId);
      const operator = await world.operator();
      const person = { name: "New", email: "new@example.com", password: PASSWORD };
      const attempts = [
        await at.post("/sign-up/email", person),
        await at.post("/sign-in/email", person),
        await at.post("/sign-in/magic-link", person),
      ];
      const refused = [403, "SIGN_IN_METHOD_NOT_ALLOWED"];
      expect(attempts.map(outcome)).toEqual(attempts.map(() => refused));
      const page = await at.get("/tenant/sign-in-methods");
      const none = { enabled: false, signUp: false };
      expect([page.status, page.data.emailAndPassword]).toEqual([200, none]);
      // It breaks nothing.
      expect((await at.get("/get-session")).status).toBe(200);
      expect((await operator.get("/tenant/list")).status).toBe(200);
      const got = await operator.get("/tenant/get", { query: { id: tenantId } });
      const renamed = await operator.post("/tenant/update", { tenantId, name: "Renamed" });
      expect([renamed.status, renamed.data.policy]).toEqual([got.status, got.data.policy]);
      const mended = await operator.post("/tenant/update", { tenantId, policy: null });
      expect([mended.status, mended.data.policy]).toEqual([200, null]);
      expect((await at.post("/sign-up/email", person)).status).toBe(200);
    },
  );

  it.each(["null", '{"signUp":"open"}', '{"methods":["password"]}', "{}"])(
    "that is understood counts as it is: %s",
    async (stored) => {
      expect((await world.signUp(await store(stored))).token).toBeTruthy();
    },
  );
});
