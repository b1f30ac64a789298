import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Answer, Browser } from "../support/browser";
import type { DatabaseKind, TestDatabase } from "../support/database";
import { createInstance, type Instance, PASSWORD } from "../support/instance";
import { databases } from "../support/servers";

const SECRET = "tenant-secret-in-clear";
const GOOGLE = { providerId: "google", clientId: "tenant-client", clientSecret: SECRET };

/** What this process writes past better-auth's logger. */
const console = { lines: [] as string[] };

beforeEach(() => {
  console.lines = [];
  for (const method of ["log", "info", "warn", "error", "debug"] as const) {
    vi.spyOn(globalThis.console, method).mockImplementation((...args) => {
      console.lines.push(args.map(everything).join(" "));
    });
  }
});

afterEach(() => {
  vi.restoreAllMocks();
});

/** A value with everything that a serializer of errors would dig out of it. */
function everything(value: unknown): string {
  if (!(value instanceof Error)) return JSON.stringify(value) ?? String(value);
  const own = Object.getOwnPropertyNames(value).map((name) =>
    everything((value as unknown as Record<string, unknown>)[name]),
  );
  return [value.name, ...own].join(" ");
}

const written = ({ status, headers, data }: Answer) => JSON.stringify([status, [...headers], data]);

async function cipherTexts({ database }: Instance): Promise<string[]> {
  const rows = await database.query(`select * from ${database.quote("tenantOauthConfig")}`);
  return rows.flatMap((row) => [String(row.clientId), String(row.clientSecret)]);
}

function expectNone(where: string, text: string, secrets: string[]) {
  for (const secret of secrets) {
    // The test runner would print the whole text; the name of the place is enough.
    if (secret && text.includes(secret)) expect.fail(`a secret shows in ${where}`);
  }
}

/** Lets every write of the second provider fail, with as many words as the database has. */
async function breakWrites(database: TestDatabase) {
  const table = database.quote("tenantOauthConfig");
  const provider = database.quote("providerId");
  if (database.kind === "sqlite") {
    await database.query(
      `create trigger broken before insert on ${table} when new.${provider} = 'github'
       begin select raise(abort, 'broken'); end`,
    );
  } else {
    await database.query(
      `alter table ${table} add constraint broken check (${provider} <> 'github')`,
    );
  }
}

describe.each(databases)("threat: secrets leak: on %s", (database: DatabaseKind) => {
  let instance: Instance;
  let operator: Browser;
  let tenantId: string;

  beforeEach(async () => {
    instance = await createInstance({ database });
    operator = (await instance.operator()).browser;
    tenantId = (await instance.createTenant()).id;
  });

  const register = (changes: object = {}) =>
    operator.post("/tenant/oauth-config/register", { tenantId, ...GOOGLE, ...changes });
  const logged = () => [...instance.logs, ...console.lines].join("\n");

  it("no endpoint shows a secret, clear or cipher, when all goes well", async () => {
    const answers: [string, Answer][] = [["register", await register()]];
    const before = await cipherTexts(instance);
    answers.push(["replace", await register({ clientSecret: `${SECRET}-2` })]);
    const after = await cipherTexts(instance);
    const person = instance.browser();
    const email = { email: "a@example.com", password: PASSWORD, name: "A", tenantId };
    const query = { tenantId };
    const start = { tenantId, provider: "google", callbackURL: "/" };
    answers.push(
      ["list", (await operator.get("/tenant/oauth-config/list", { query })) as Answer],
      ["get tenant", await operator.get("/tenant/get", { query: { id: tenantId } })],
      ["list tenants", await operator.get("/tenant/list")],
      ["update tenant", await operator.post("/tenant/update", { tenantId, name: "New" })],
      ["sign-up", await person.post("/tenant/sign-up/email", email)],
      ["get-session", await person.get("/get-session")],
      ["sign-in", await person.post("/tenant/sign-in/email", email)],
      ["social start", await instance.browser().post("/tenant/sign-in/social", start)],
      ["link-social", await person.post("/link-social", { provider: "google", callbackURL: "/" })],
      ["delete", await operator.post("/tenant/oauth-config/delete", { tenantId, ...GOOGLE })],
      ["delete tenant", await operator.post("/tenant/delete", { tenantId })],
    );
    for (const [name, answer] of answers) {
      expect([name, answer.status]).toEqual([name, 200]);
      expectNone(name, written(answer), [SECRET, ...before, ...after]);
    }
    expectNone("the log", logged(), [SECRET, ...before, ...after]);
  });

  it("the stored state of a flow holds no secret", async () => {
    await register();
    const start = { tenantId, provider: "google", callbackURL: "/" };
    const answer = await instance.browser().post("/tenant/sign-in/social", start);
    expect(answer.status).toBe(200);
    const rows = await instance.database.query("select * from verification");
    expect(rows).toHaveLength(1);
    expectNone("the state", JSON.stringify(rows), [SECRET, ...(await cipherTexts(instance))]);
  });

  it("no refusal shows a secret", async () => {
    await register();
    const ciphers = await cipherTexts(instance);
    const refused: [string, Answer, number][] = [
      ["bad provider", await register({ providerId: "nobody" }), 400],
      ["bad redirect URI", await register({ redirectURI: `javascript:${SECRET}` }), 400],
      ["no client id", await register({ clientId: undefined }), 400],
      ["bad secret", await register({ clientSecret: [SECRET] }), 400],
      ["secret too long", await register({ clientSecret: SECRET.repeat(1000) }), 400],
      ["bad scopes", await register({ scopes: SECRET }), 400],
      ["no tenant", await register({ tenantId: undefined }), 400],
      ["unknown tenant", await register({ tenantId: "nobody" }), 404],
      [
        "no session",
        await instance.browser().post("/tenant/oauth-config/register", { tenantId, ...GOOGLE }),
        401,
      ],
    ];
    for (const [name, answer, status] of refused) {
      expect([name, answer.status]).toEqual([name, status]);
      expectNone(name, written(answer), [SECRET, ...ciphers]);
    }
    expectNone("the log", logged(), [SECRET, ...ciphers]);
  });

  it("credentials that cannot be decrypted stay out of answers, errors and the log", async () => {
    await register();
    const broken = "00ff00ff00ff00ff-broken-cipher-text";
    const { quote, query } = instance.database;
    await query(
      `update ${quote("tenantOauthConfig")} set ${quote("clientId")} = ?, ${quote("clientSecret")} = ?`,
      [broken, broken],
    );
    const list = await operator.get("/tenant/oauth-config/list", { query: { tenantId } });
    const start = await instance
      .browser()
      .post("/tenant/sign-in/social", { tenantId, provider: "google" });
    const check = await operator.post("/tenant/oauth-config/check", {
      tenantId,
      providerId: "google",
    });
    expect([list.status, check.status, start.status]).toEqual([200, 200, 500]);
    expect(start.code).toBe("OAUTH_CREDENTIAL_DECRYPT_FAILED");
    for (const answer of [list, check, start]) expectNone("the answer", written(answer), [broken]);
    const thrown = await instance.api
      .signInSocialTenant({ body: { tenantId, provider: "google" } })
      .catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(Error);
    expectNone("the thrown error", everything(thrown), [broken]);
    expectNone("the log", logged(), [broken]);
  });

  it("a write that the database refuses shows no cipher text", async () => {
    await register();
    const [sample = ""] = await cipherTexts(instance);
    await breakWrites(instance.database);
    const answer = await register({ providerId: "github" });
    expect(answer.status).toBe(500);
    const thrown = await instance.api
      .registerTenantOAuthConfig({ body: { tenantId, ...GOOGLE, providerId: "github" } })
      .catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(Error);
    // These cipher texts were never stored, so they are known by their form, as is the beginning
    // of one: databases quote no more than that.
    const cipher = /[0-9a-f]{40}/;
    expect(sample).toMatch(cipher);
    for (const [where, text] of [
      ["the answer", written(answer)],
      ["the thrown error", everything(thrown)],
      ["the log", logged()],
    ] as const) {
      expectNone(where, text, [SECRET]);
      if (cipher.test(text)) expect.fail(`cipher text shows in ${where}`);
    }
  });
});
