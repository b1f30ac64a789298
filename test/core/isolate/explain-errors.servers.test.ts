import type { AuthContext } from "better-auth";
import { deviceAuthorization, emailOTP } from "better-auth/plugins";
import type { DBAdapter } from "better-auth/types";
import { beforeAll, describe, expect, it } from "vitest";
import { explainDatabaseError } from "../../../src/core/isolate/explain-errors";
import { prepareScopes } from "../../../src/core/request";
import { runInTenant } from "../../../src/index";
import { crowdOn, type DatabaseKind, databases, type TestDatabase } from "../../support/database";
import { newcomer, PASSWORD } from "../../support/instance";
import { createMemory } from "../../support/stores";
import {
  createWorld,
  EMAIL,
  outcome,
  PLACES,
  type Place,
  shareWorld,
  type World,
} from "../../support/world";

const TAKEN = [422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL"];
const signUp = ({ at }: World, place: Place, email = EMAIL) => {
  const path = place === "platform" ? "/sign-up/email" : "/tenant/sign-up/email";
  return at(place).post(path, { name: "Somebody", email, password: PASSWORD });
};

const times = <T>(count: number, run: () => Promise<T>) =>
  Promise.all(Array.from({ length: count }, run));
const successes = (answers: { status: number }[]) =>
  answers.filter(({ status }) => status === 200).length;

describe.each(databases)("threat: races on %s", (database) => {
  it("of many sign-ups with one e-mail at once, one gets it", async () => {
    const world = await createWorld({ database });
    const answers = await times(crowdOn(database), () => signUp(world, "acme"));
    expect(successes(answers)).toBe(1);
    // The answer to an e-mail that is taken, and to one that is taken a moment later.
    const refused = answers.filter(({ status }) => status !== 200).map(outcome);
    expect(refused).toEqual(refused.map(() => TAKEN));
    for (const table of ["user", "account", "session"]) expect(await world.rows(table)).toBe(1);
  }, 60_000);

  it("one reset token and one code, each redeemed 50 times at once, are good once", async () => {
    const world = await createWorld({
      database,
      plugins: (send) => [emailOTP({ sendVerificationOTP: send("code") })],
    });
    const jane = await world.as("jane", "acme");
    // better-auth locks an unverified user with an id that is too long for its column on MySQL.
    await world.changeUser(jane.id, { emailVerified: true });
    await jane.post("/request-password-reset", { email: EMAIL });
    const reset = { token: world.lastMail("reset").token, newPassword: "another long password" };
    const resets = await times(50, () => world.browser().post("/reset-password", reset));
    expect(successes(resets)).toBe(1);

    await jane.post("/email-otp/send-verification-otp", { email: EMAIL, type: "sign-in" });
    const code = { email: EMAIL, otp: world.lastMail("code").code };
    const signIns = await times(50, () => world.at("acme").post("/sign-in/email-otp", code));
    expect(successes(signIns)).toBe(1);
  });
});

/** The names of all fields, and the type of what is in them. */
function shape(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value === null ? "null" : typeof value;
  const entries = Object.entries(value).sort();
  return Object.fromEntries(entries.map(([key, item]) => [key, shape(item)]));
}

const unique = { tenant: { keepEmailGloballyUnique: true } };

describe.each(databases)("keepEmailGloballyUnique on %s", (database) => {
  const changeEmail = { enabled: true, updateEmailWithoutVerification: true };
  const world = shareWorld({ ...unique, auth: { user: { changeEmail } } }, database);

  it.each<[string, Place, Place]>([
    ["once in a tenant", "acme", "acme"],
    ["in one tenant or another", "acme", "globex"],
    ["on the platform or in a tenant", "platform", "acme"],
  ])("has an e-mail %s", async (_, first, second) => {
    const email = `from-${first}-to-${second}@example.com`;
    expect((await signUp(world, first, email)).status).toBe(200);
    const answer = await world.unchanged(() => signUp(world, second, email.toUpperCase()));
    expect(outcome(answer)).toEqual(TAKEN);
    expect((await signUp(world, second, `other-${email}`)).status).toBe(200);
  });

  it("refuses to change an e-mail into one that is taken elsewhere, without an internal error", async () => {
    await world.as("jane", "platform");
    const bob = await world.as("bob", "acme");
    const answer = await bob.post("/change-email", { newEmail: EMAIL });
    expect(answer.status).toBeLessThan(500);
    expect(await world.rows("user", "id = ? and email = ?", [bob.id, bob.email])).toBe(1);
  });

  it.each([{ requireEmailVerification: true }, { autoSignIn: false }])(
    "threat: accounts can be probed: with %j nothing shows elsewhere",
    async (settings) => {
      const hiding = await createWorld({
        ...unique,
        database,
        auth: { emailAndPassword: { enabled: true, ...settings } },
      });
      expect((await signUp(hiding, "acme")).status).toBe(200);
      for (const second of ["globex", "platform"] as const) {
        await signUp(hiding, second, `${second}@example.com`);
        const takenHere = await signUp(hiding, second, `${second}@example.com`);
        hiding.mails.length = 0;
        const made = await hiding.unchanged(() => signUp(hiding, second));
        expect(made.status).toBe(200);
        const user = { email: EMAIL, emailVerified: false, tenantId: hiding.ids[second] };
        expect(made.data).toMatchObject({ token: null, user });
        expect(shape(made.data)).toEqual(shape(takenHere.data));
        expect(hiding.mails).toEqual([]);
      }
    },
  );
});

it.each(databases)(
  "a taken value of a field named like an email is a 422 on %s",
  async (database) => {
    const workEmail = { type: "string", required: false, unique: true } as const;
    const user = { additionalFields: { workEmail } };
    const world = await createWorld({ database, auth: { user } });
    for (const place of ["acme", "platform"] as const) {
      const body = { workEmail: "a@work.example" };
      const signUpWith = () => world.at(place).post("/sign-up/email", { ...newcomer(), ...body });
      expect((await signUpWith()).status).toBe(200);
      const person = world.at(place);
      await person.post("/sign-up/email", newcomer());
      for (const taken of [await person.post("/update-user", body), await signUpWith()]) {
        expect(outcome(taken)).toEqual([422, "VALUE_TAKEN"]);
      }
    }
    expect(world.logs.join()).not.toContain("Drop that index");
  },
);

describe("device codes that collide", () => {
  /** Codes in the order given, and then the last one for ever. */
  function drawing(...codes: string[]) {
    const drawn = [...codes];
    return deviceAuthorization({ generateUserCode: () => drawn.shift() ?? codes.at(-1) ?? "" });
  }

  async function expectDrawnAgain(place: Place, database: DatabaseKind | TestDatabase) {
    const { at } = await createWorld({
      database,
      migrate: typeof database === "string",
      plugins: [drawing("SAME", "SAME", "OTHER", "SAME")],
      tenant: { scopedModels: ["deviceCode"] },
    });
    const ask = async (where: Place) => {
      const { status, data } = await at(where).post("/device/code", { client_id: "tv" });
      return [status, data.user_code ?? data.error];
    };
    expect(await ask("acme")).toEqual([200, "SAME"]);
    expect(await ask(place)).toEqual([200, "OTHER"]);
    expect(await ask(place)).toEqual([500, "server_error"]);
  }

  it.each(databases.flatMap((database) => PLACES.map((place) => [place, database] as const)))(
    "with one of Acme, at %s, are drawn again and refused as by better-auth: %s",
    expectDrawnAgain,
  );

  /** A database that says in the words of a driver that a code is taken. */
  const speaking = (words: object) =>
    createMemory((inner) => {
      const create = async (call: { model: string; data: { userCode?: string } }) => {
        const where = [{ field: "userCode", value: call.data.userCode ?? "" }];
        const isTaken = call.model === "deviceCode" && (await inner.count({ ...call, where }));
        if (isTaken) throw Object.assign(new Error(), words);
        return inner.create(call);
      };
      return { ...inner, create } as DBAdapter;
    }).database;

  const UNIQUE = "UNIQUE constraint failed: deviceCode.userCode";

  it.each<[driver: string, words: object]>([
    ["node:sqlite", { code: "ERR_SQLITE_ERROR", errcode: 2067, message: UNIQUE }],
    ["Cloudflare's D1", { message: `D1_ERROR: ${UNIQUE}` }],
    ["libSQL's client", { code: "SQLITE_CONSTRAINT", message: `SQLITE_CONSTRAINT: ${UNIQUE}` }],
    ["SQL Server", { code: "EREQUEST", number: 2627, message: "UNIQUE KEY constraint violated" }],
    ["MySQL in German", { errno: 1062, code: "ER_DUP_ENTRY", message: "Doppelter Eintrag" }],
  ])("are drawn again whatever the driver says: %s", async (_, words) => {
    for (const place of PLACES) await expectDrawnAgain(place, speaking(words));
  });
});

describe("what a driver says when the database refuses", () => {
  beforeAll(prepareScopes);
  const postgres = (constraint: string) => ({
    code: "23505",
    message: "doppelter Schlüsselwert",
    constraint,
  });
  const mysql = (index: string) => ({
    code: "ER_DUP_ENTRY",
    message: `Duplicate entry 'jane' for key '${index}'`,
  });
  const sqlite = (columns: string) => ({
    code: "SQLITE_CONSTRAINT_UNIQUE",
    message: `UNIQUE constraint failed: ${columns}`,
  });
  const TAKEN_VALUE = [422, "VALUE_TAKEN"];
  const GONE = [403, "USER_NOT_IN_TENANT"];
  const AS_IT_IS = "as it is";
  const PRISMA_KEY = ["tenantId", "email"];
  const OLD_INDEX =
    /^A sign-up at tenant acme failed: .*"people" .* \('?(user_email_key|user\.email)'?\)/;

  it.each<[object, unknown, RegExp?]>([
    [postgres("device_code_key"), TAKEN_VALUE],
    [mysql("username"), TAKEN_VALUE],
    [sqlite("user.username"), TAKEN_VALUE],
    [postgres("user_workEmail_key"), TAKEN_VALUE],
    [mysql("user.user_work_email_key"), TAKEN_VALUE],
    [sqlite("people.workEmail"), TAKEN_VALUE],
    [{ message: "E11000 duplicate key" }, TAKEN_VALUE],
    [{ code: "ERR_SQLITE_ERROR", errcode: 2067, message: "UNIQUE constraint failed" }, TAKEN_VALUE],
    [{ code: "EREQUEST", number: 2627, message: "verletzt" }, TAKEN_VALUE],
    [{ code: "ER_DUP_ENTRY", errno: 1062, message: "Doppelter Eintrag" }, TAKEN_VALUE],
    [postgres("user_tenantId_email_key"), TAKEN],
    [mysql("user_tenantId_email_uidx"), TAKEN],
    [sqlite("user.tenantId, user.email"), TAKEN],
    [postgres("user_email_key"), TAKEN, OLD_INDEX],
    [mysql("user_email_key"), TAKEN, OLD_INDEX],
    [sqlite("user.email"), TAKEN, OLD_INDEX],
    [postgres("people_email_key"), TAKEN, /\(people_email_key\)/],
    [{ code: "23505", constraint_name: "user_tenantId_email_key" }, TAKEN],
    [{ code: "P2002", message: "Unique constraint failed", meta: { target: PRISMA_KEY } }, TAKEN],
    [{ code: "42703", message: 'column "isUnique" does not exist' }, AS_IT_IS],
    [{ code: "23503", message: "verletzt" }, GONE],
    [{ code: "ER_NO_REFERENCED_ROW_2", message: "a foreign key constraint fails" }, GONE],
    [{ message: "connection closed" }, AS_IT_IS],
  ])("%j: %j", async (error, outcome, logged) => {
    const lines: string[] = [];
    const tables = { user: { modelName: "people" } };
    const ctx = { tables, options: {}, logger: { error: (line: string) => lines.push(line) } };
    const explain = async () => explainDatabaseError(ctx as unknown as AuthContext, error, "user");
    const said = (await runInTenant("acme", explain)) as {
      statusCode?: number;
      message: string;
      body?: { code: string; message: string };
    };
    expect(said === error ? AS_IT_IS : [said.statusCode, said.body?.code]).toEqual(outcome);
    if (outcome === TAKEN_VALUE) {
      // What better-auth looks at is there, and the answer has neither that nor a value.
      const { message: _, constraint: __, ...identifiers } = error as Record<string, unknown>;
      expect(said).toMatchObject(identifiers);
      expect(said.message).toBe("Value taken (unique constraint)");
      expect(said.body).toEqual({ code: "VALUE_TAKEN", message: "Value taken" });
    }
    expect(lines).toEqual(logged ? [expect.stringMatching(logged)] : []);
    // The platform's users have no tenant that could have gone.
    if (outcome === GONE) expect(await explain()).toBe(error);
  });
});
