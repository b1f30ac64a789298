import { describe, expect, it } from "vitest";
import { createInstance, PASSWORD } from "../support/instance";
import { databases } from "../support/servers";

const SIGN_UP = "/tenant/sign-up/email";
const SIGN_IN = "/tenant/sign-in/email";
const PATHS = [SIGN_UP, SIGN_IN];
const ANN = { name: "Ann", email: "ann@example.com", password: PASSWORD };

async function setUp(database?: (typeof databases)[number]) {
  const instance = await createInstance(database ? { database } : {});
  const { id: tenantId } = await instance.createTenant();
  const victim = await instance.signUp(tenantId, "victim@example.com");
  const count = async () => {
    const counts: Record<string, number> = {};
    for (const table of ["user", "account", "session", "verification"]) {
      counts[table] = await instance.rows(table);
    }
    return counts;
  };
  const before = await count();
  const expectNothingWritten = async () => expect(await count()).toEqual(before);
  return { instance, tenantId, victim, expectNothingWritten };
}

describe("what is not a body", () => {
  it.each([
    ["nothing", ""],
    ["an array", "[]"],
    ["null", "null"],
    ["a number", "1"],
    ["a string", '"ann"'],
    ["an empty object", "{}"],
  ])("%s is 400", async (_, body) => {
    const { instance, tenantId, expectNothingWritten } = await setUp();
    for (const path of PATHS) {
      const answer = await instance.browser({ "x-tenant-id": tenantId }).post(path, body);
      expect(answer.status).toBe(400);
      expect(["VALIDATION_ERROR", "BAD_REQUEST"]).toContain(answer.code);
    }
    await expectNothingWritten();
  });

  it.each(['{"email": "ann@exa', "{'email': 1}", "\0", "email=ann"])(
    "broken JSON is 400: %j",
    async (body) => {
      const { instance, tenantId, expectNothingWritten } = await setUp();
      for (const path of PATHS) {
        const answer = await instance.browser({ "x-tenant-id": tenantId }).post(path, body);
        expect([answer.status, answer.code]).toEqual([400, "BAD_REQUEST"]);
      }
      await expectNothingWritten();
    },
  );

  it.each(["text/plain", "application/xml", "multipart/form-data; boundary=x", "nonsense"])(
    "the content type %s is 415",
    async (type) => {
      const { instance, tenantId, expectNothingWritten } = await setUp();
      for (const path of PATHS) {
        const body = { ...ANN, tenantId };
        const answer = await instance.browser({ "content-type": type }).post(path, body);
        expect([answer.status, answer.code]).toEqual([415, "UNSUPPORTED_MEDIA_TYPE"]);
      }
      await expectNothingWritten();
    },
  );

  it.each(["GET", "PUT", "PATCH", "DELETE"])("%s is 404", async (method) => {
    const { instance, tenantId, expectNothingWritten } = await setUp();
    for (const path of PATHS) {
      const answer = await instance.browser().send(path, { method, query: { ...ANN, tenantId } });
      expect(answer.status).toBe(404);
    }
    await expectNothingWritten();
  });
});

describe("fields of the wrong kind", () => {
  const WRONG: unknown[] = [
    undefined,
    null,
    1,
    true,
    [],
    {},
    ["ann@example.com"],
    { toString: "x" },
  ];
  const MAY_BE_MISSING = ["image", "callbackURL", "rememberMe", "tenantId"];

  it.each([
    ...["name", "email", "password", ...MAY_BE_MISSING].map((field) => [SIGN_UP, field]),
    ...["email", "password", "callbackURL", "rememberMe", "tenantId"].map((f) => [SIGN_IN, f]),
  ])("%s with a wrong %s is 400", async (path = "", field = "") => {
    const { instance, tenantId, expectNothingWritten } = await setUp();
    const wrong = field === "rememberMe" ? [...WRONG, "true", 0] : WRONG;
    for (const value of wrong) {
      if (value === undefined && MAY_BE_MISSING.includes(field)) continue;
      if (value === true && field === "rememberMe") continue;
      const body = { ...ANN, [field]: value };
      const answer = await instance.browser({ "x-tenant-id": tenantId }).post(path, body);
      const sent = JSON.stringify(value);
      expect([sent, answer.status]).toEqual([sent, 400]);
      // better-auth checks URLs before it checks the body, and gives no code with that.
      if (field !== "callbackURL") expect(answer.code).toBe("VALIDATION_ERROR");
    }
    await expectNothingWritten();
  });

  it.each(["", "ann", "@example.com", "ann@", "ann@localhost", "a b@example.com", "a@b@c.com"])(
    "%j is not an e-mail",
    async (email) => {
      const { instance, tenantId, expectNothingWritten } = await setUp();
      const browser = instance.browser({ "x-tenant-id": tenantId });
      const up = await browser.post(SIGN_UP, { ...ANN, email });
      expect([up.status, up.code]).toEqual([400, "VALIDATION_ERROR"]);
      const signedIn = await browser.post(SIGN_IN, { ...ANN, email });
      expect([signedIn.status, signedIn.code]).toEqual([400, "INVALID_EMAIL"]);
      await expectNothingWritten();
    },
  );

  it.each([
    ["", 400, "VALIDATION_ERROR", 401, "INVALID_EMAIL_OR_PASSWORD"],
    ["short", 400, "PASSWORD_TOO_SHORT", 401, "INVALID_EMAIL_OR_PASSWORD"],
    ["x".repeat(129), 400, "PASSWORD_TOO_LONG", 400, "PASSWORD_TOO_LONG"],
    ["x".repeat(1_000_000), 400, "PASSWORD_TOO_LONG", 400, "PASSWORD_TOO_LONG"],
  ])("the password %.9j is refused", async (password, upStatus, upCode, inStatus, inCode) => {
    const { instance, tenantId, expectNothingWritten } = await setUp();
    const up = await instance.browser().post(SIGN_UP, { ...ANN, password, tenantId });
    expect([up.status, up.code]).toEqual([upStatus, upCode]);
    const body = { email: "victim@example.com", password, tenantId };
    const signedIn = await instance.browser().post(SIGN_IN, body);
    expect([signedIn.status, signedIn.code]).toEqual([inStatus, inCode]);
    await expectNothingWritten();
  });
});

describe.each(databases)("what a database may choke on, on %s", (database) => {
  it("R2: ids that are none are 404", async () => {
    const { instance, tenantId, expectNothingWritten } = await setUp(database);
    const ids = ["\0", `${tenantId}\0`, "x".repeat(100_000), "' or 1=1 --", "%", "\uD800", "null"];
    for (const path of PATHS) {
      for (const id of ids) {
        const answer = await instance.browser().post(path, { ...ANN, tenantId: id });
        expect([answer.status, answer.code]).toEqual([404, "TENANT_NOT_FOUND"]);
      }
    }
    await expectNothingWritten();
  });

  it("R2: an id in other letters is nobody's, or the tenant's under its true id", async () => {
    const { instance, tenantId } = await setUp(database);
    // Databases that compare without case, or without spaces at the end, find the tenant.
    const ids = [tenantId.toUpperCase(), tenantId.toLowerCase(), `${tenantId} `];
    for (const [n, id] of ids.entries()) {
      const body = { ...ANN, email: `ann-${n}@example.com`, tenantId: id };
      const answer = await instance.browser().post(SIGN_UP, body);
      if (answer.status === 200) expect(answer.data.user).toMatchObject({ tenantId });
      else expect([answer.status, answer.code]).toEqual([404, "TENANT_NOT_FOUND"]);
    }
    const { quote, query } = instance.database;
    for (const table of ["user", "account", "session"]) {
      const rows = await query(`select ${quote("tenantId")} as id from ${quote(table)}`);
      expect(new Set(rows.map((row) => row.id))).toEqual(new Set([tenantId]));
    }
  });

  it.each([
    ["a NUL in the name", { name: "A\0nn" }],
    ["half a character in the name", { name: "\uD83D" }],
    ["a name of 100000 letters", { name: "x".repeat(100_000) }],
    ["an e-mail of 1000 letters", { email: `${"x".repeat(1000)}@example.com` }],
    ["a NUL in the image", { image: "\0" }],
    ["an image of 100000 letters", { image: "x".repeat(100_000) }],
  ])("%s is no server error, and all or nothing", async (_, field) => {
    const { instance, tenantId, expectNothingWritten } = await setUp(database);
    const answer = await instance.browser().post(SIGN_UP, { ...ANN, ...field, tenantId });
    expect([200, 400, 422]).toContain(answer.status);
    if (answer.status !== 200) {
      await expectNothingWritten();
    } else {
      expect(await instance.rows("user")).toBe(2);
      expect(await instance.rows("account")).toBe(2);
    }
    const back = await instance.browser().post(SIGN_IN, { ...ANN, ...field, tenantId });
    expect(back.status).toBe(answer.status === 200 ? 200 : 401);
  });
});

describe("threat: authority from the body", () => {
  const smuggled = (victim: string, other: string): [string, object][] => [
    ["id", { id: victim }],
    ["userId", { userId: victim }],
    ["accountId", { accountId: victim }],
    ["role", { role: "admin" }],
    ["emailVerified", { emailVerified: true }],
    ["banned", { banned: true, banReason: "x" }],
    ["session", { session: { userId: victim, tenantId: other } }],
    ["user", { user: { id: victim, tenantId: other, role: "admin" } }],
    ["data", { data: { tenantId: other, role: "admin" } }],
    ["impersonatedBy", { impersonatedBy: victim }],
    ["createdAt", { createdAt: "1999-01-01", updatedAt: "1999-01-01" }],
    ["tenant_id", { tenant_id: other, tenantID: other, TenantId: other }],
  ];

  it("fields smuggled into a sign-up are refused or ignored", async () => {
    const { instance, tenantId, victim } = await setUp();
    const other = await instance.createTenant();
    for (const [field, extra] of smuggled(victim.user.id, other.id)) {
      const email = `${field.toLowerCase()}@example.com`;
      const users = await instance.rows("user");
      const answer = await instance
        .browser()
        .post<{ user: { id: string; createdAt: string } }>(SIGN_UP, {
          ...ANN,
          email,
          tenantId,
          ...extra,
        });
      if (answer.status !== 200) {
        expect([field, answer.status]).toEqual([field, 400]);
        expect(await instance.rows("user")).toBe(users);
        continue;
      }
      const { user } = answer.data;
      expect(user).toMatchObject({ tenantId, role: "user", emailVerified: false, banned: false });
      expect(user).toMatchObject({ email });
      expect(user.id).not.toBe(victim.user.id);
      expect(new Date(user.createdAt).getTime()).toBeGreaterThan(Date.now() - 60_000);
      expect(answer.data).toMatchObject({ session: { tenantId, userId: user.id } });
    }
    expect(await instance.rows("user", "role = 'admin'")).toBe(0);
    expect(await instance.rows("user", `"tenantId" <> ?`, [tenantId])).toBe(0);
    expect(await instance.rows("session", `"userId" = ?`, [victim.user.id])).toBe(1);
  });

  it("fields smuggled into a sign-in are ignored", async () => {
    const { instance, tenantId, victim } = await setUp();
    const other = await instance.createTenant();
    const ann = await instance.signUp(tenantId, ANN.email);
    for (const [, extra] of smuggled(victim.user.id, other.id)) {
      const answer = await instance.browser().post(SIGN_IN, { ...ANN, tenantId, ...extra });
      expect(answer.status).toBe(200);
      expect(answer.data.user).toMatchObject({ id: ann.user.id, tenantId, role: "user" });
      expect(answer.data.session).toMatchObject({ userId: ann.user.id, tenantId });
      expect(answer.data.session).toMatchObject({ impersonatedBy: null });
    }
    expect(await instance.rows("session", `"userId" = ?`, [victim.user.id])).toBe(1);
  });

  it("a prototype in the body is no input", async () => {
    const { instance, tenantId } = await setUp();
    const other = await instance.createTenant();
    const inner = JSON.stringify({ tenantId: other.id, role: "admin", emailVerified: true });
    const json = JSON.stringify(ANN).slice(0, -1);
    const body = `${json},"__proto__":${inner},"constructor":{"prototype":${inner}}}`;
    const nameless = await instance.browser().post(SIGN_UP, body);
    expect([nameless.status, nameless.code]).toEqual([400, "TENANT_ID_REQUIRED"]);
    const answer = await instance.browser({ "x-tenant-id": tenantId }).post(SIGN_UP, body);
    expect(answer.status).toBe(200);
    const expected = { tenantId, role: "user", emailVerified: false };
    expect(answer.data.user).toMatchObject(expected);
    expect({}).not.toHaveProperty("tenantId");
  });

  it("R1: two tenants in the query are none", async () => {
    const { instance, tenantId, expectNothingWritten } = await setUp();
    const other = await instance.createTenant();
    const query = `?tenantId=${tenantId}&tenantId=${other.id}`;
    const answer = await instance.browser().post(`${SIGN_UP}${query}`, ANN);
    expect(answer.status).toBe(400);
    expect(["TENANT_ID_REQUIRED", "VALIDATION_ERROR"]).toContain(answer.code);
    await expectNothingWritten();
  });
});

describe("better-auth's own sign-up", () => {
  it("R1: the header names the tenant, a tenantId in the body does not", async () => {
    const { instance, tenantId } = await setUp();
    const other = await instance.createTenant();
    const body = { ...ANN, tenantId: other.id };
    const answer = await instance.browser({ "x-tenant-id": tenantId }).post("/sign-up/email", body);
    // Ignored as it is today, or refused: both are fine. Acted on is not.
    if (answer.status === 200) expect(answer.data.user).toMatchObject({ tenantId });
    else expect([answer.status, answer.code]).toEqual([400, "FIELD_NOT_ALLOWED"]);
    for (const table of ["user", "account", "session"]) {
      expect(await instance.rows(table, `"tenantId" = ?`, [other.id])).toBe(0);
    }
  });

  it("R4: without a header the body's tenantId leaves one on the platform", async () => {
    const { instance, tenantId } = await setUp();
    const before = await instance.rows("user", `"tenantId" = ?`, [tenantId]);
    const answer = await instance.browser().post("/sign-up/email", { ...ANN, tenantId });
    if (answer.status === 200) expect(answer.data.user).toMatchObject({ tenantId: null });
    else expect([answer.status, answer.code]).toEqual([400, "FIELD_NOT_ALLOWED"]);
    expect(await instance.rows("user", `"tenantId" = ?`, [tenantId])).toBe(before);
  });

  it("R3: nobody updates themselves into another tenant", async () => {
    const { instance, tenantId, victim } = await setUp();
    const other = await instance.createTenant();
    for (const id of [other.id, "", null]) {
      await victim.browser.post("/update-user", { name: "New", tenantId: id });
      expect(await instance.rows("user", `"tenantId" = ?`, [tenantId])).toBe(1);
    }
    expect(await instance.rows("user")).toBe(1);
  });
});
