// What callers name by an id that the column of ids cannot hold.
import { organization } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { type DatabaseKind, databases } from "../../support/database";
import { PASSWORD } from "../../support/instance";
import { createWorld, outcome, PLACES } from "../../support/world";

const INVALID = [400, "INVALID_VALUE"];
const IMPOSSIBLE = [{}, { $ne: 1 }, ["x"], "abc", "1 or 1=1", "1x", "\0", true] as const;
const NO_NUMBERS = [1.5, -1, 1e30, "99999999999999999999"] as const;

const ABOUT_A_USER = [
  "list-user-sessions",
  "ban-user",
  "unban-user",
  "set-role",
  "update-user",
  "impersonate-user",
  "revoke-user-sessions",
  "set-user-password",
];

/** A world whose ids the database makes, with what it takes to ask for them. */
async function createTypedWorld(database: DatabaseKind, generateId: "serial" | "uuid") {
  const world = await createWorld({
    database,
    plugins: [organization()],
    auth: { advanced: { database: { generateId } } },
    tenant: { scopedModels: ["organization", "member", "invitation"] },
  });
  const jane = await world.as("jane", "acme");
  const callers = [await world.operator(), await world.as("admin", "acme")];
  const body = { role: "user", data: { name: "Jane" }, newPassword: "a long enough password" };
  /** What each administrator gets who does everything that there is to a user with this id. */
  async function actOn(userId: unknown) {
    const answers = [];
    for (const caller of callers) {
      for (const action of ABOUT_A_USER) {
        const browser = world.at("acme", caller);
        answers.push(outcome(await browser.post(`/admin/${action}`, { ...body, userId })));
      }
    }
    return answers;
  }
  return { ...world, jane, actOn };
}

const typed = (["serial", "uuid"] as const).flatMap((ids) =>
  databases
    .filter((kind) => (ids === "uuid" ? kind === "postgres" : kind !== "sqlite"))
    .map((kind) => [ids, kind] as const),
);

describe.runIf(typed.length > 0).each(typed)("%s ids on %s", (ids, kind) => {
  it("an impossible id of a user is a mistake of the caller, for a tenant's admin and an operator", async () => {
    const { actOn, jane } = await createTypedWorld(kind, ids);
    for (const id of [...IMPOSSIBLE, ...(ids === "serial" ? NO_NUMBERS : [])]) {
      for (const answer of await actOn(id)) expect(answer, JSON.stringify(id)).toEqual(INVALID);
    }
    for (const [status] of await actOn(jane.id)) expect(status).toBe(200);
  });

  it("so is one of an organization or of a member", async () => {
    const { jane, at } = await createTypedWorld(kind, ids);
    const browser = at("acme", jane);
    const made = await browser.post<{ id: string }>("/organization/create", {
      name: "Lab",
      slug: "lab",
    });
    const setActive = async (organizationId: unknown) =>
      outcome(await browser.post("/organization/set-active", { organizationId }));
    expect(await setActive("abc")).toEqual(INVALID);
    expect(await setActive(made.data.id)).toEqual([200, undefined]);
    const query = { organizationId: "abc" };
    expect(outcome(await browser.get("/organization/get-full-organization", { query }))).toEqual(
      INVALID,
    );
  });
});

it.each(databases)(
  "a NUL in a text is a mistake of the caller, or matches nothing, on %s",
  async (database) => {
    const world = await createWorld({ database });
    for (const place of PLACES) {
      const browser = world.at(place);
      const body = { email: "ann@example.com", name: "A\0nn", password: PASSWORD };
      const [status] = outcome(await browser.post("/sign-up/email", body));
      expect(status).toBe(400);
      const answer = await browser.get("/verify-email", { query: { token: "\0" } });
      expect(answer.status).toBeLessThan(500);
    }
  },
);

it("text ids: an id that no user has is answered as better-auth does", async () => {
  const world = await createWorld();
  const admin = await world.as("admin", "acme");
  const answer = await admin.post("/admin/ban-user", { userId: "abc" });
  expect(outcome(answer)).toEqual([404, "USER_NOT_FOUND"]);
});
