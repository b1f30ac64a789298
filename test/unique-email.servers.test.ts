import { describe, expect, it } from "vitest";
import { createInstance, type Instance, type InstanceOptions, PASSWORD } from "./support/instance";
import { databases } from "./support/servers";

const EMAIL = "person@example.com";
const TAKEN = [422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL"];

describe.each(databases)("keepEmailGloballyUnique on %s", (database) => {
  const start = (auth?: InstanceOptions["auth"]) =>
    createInstance({ database, auth, tenant: { keepEmailGloballyUnique: true } });

  function signUp(instance: Instance, tenantId: string | null, email = EMAIL) {
    const body = { name: "Somebody", email, password: PASSWORD };
    return tenantId === null
      ? instance.browser().post("/sign-up/email", body)
      : instance.browser().post("/tenant/sign-up/email", { ...body, tenantId });
  }

  it.each<[string, "tenant" | "platform", "tenant" | "other" | "platform"]>([
    ["once in a tenant", "tenant", "tenant"],
    ["in one tenant or another", "tenant", "other"],
    ["in a tenant or on the platform", "tenant", "platform"],
    ["on the platform or in a tenant", "platform", "tenant"],
    ["once on the platform", "platform", "platform"],
  ])("has an e-mail %s", async (_, first, second) => {
    const instance = await start();
    const ids = {
      tenant: (await instance.createTenant()).id,
      other: (await instance.createTenant()).id,
      platform: null,
    };
    expect((await signUp(instance, ids[first])).status).toBe(200);
    const answer = await signUp(instance, ids[second], EMAIL.toUpperCase());
    expect([answer.status, answer.code]).toEqual(TAKEN);
    expect(await instance.rows("user")).toBe(1);
    expect(await instance.rows("account")).toBe(1);
    expect(await instance.rows("session")).toBe(1);
    expect((await signUp(instance, ids[second], "other@example.com")).status).toBe(200);
  });

  it.each<[string, "tenant" | "platform", "other" | "platform"]>([
    ["another tenant", "tenant", "other"],
    ["the platform", "tenant", "platform"],
    ["a tenant, by somebody of the platform", "platform", "other"],
  ])(
    "threat: accounts can be probed: with verification nothing shows in %s",
    async (_, first, second) => {
      const mails: string[] = [];
      const instance = await start({
        emailAndPassword: { enabled: true, requireEmailVerification: true },
        emailVerification: {
          sendVerificationEmail: async ({ user }) => {
            mails.push(user.email);
          },
        },
      });
      const ids = {
        tenant: (await instance.createTenant()).id,
        other: (await instance.createTenant()).id,
        platform: null,
      };
      expect((await signUp(instance, ids[first])).status).toBe(200);
      await signUp(instance, ids[second], "here@example.com");
      const takenHere = await signUp(instance, ids[second], "here@example.com");
      mails.length = 0;
      const made = await signUp(instance, ids[second]);
      expect(made.status).toBe(200);
      expect(made.data).toMatchObject({
        token: null,
        user: { email: EMAIL, emailVerified: false, tenantId: ids[second] },
      });
      expect(shape(made.data)).toEqual(shape(takenHere.data));
      expect(mails).toEqual([]);
      expect(await instance.rows("user")).toBe(2);
      expect(await instance.rows("account")).toBe(2);
    },
  );

  it("keeps the e-mail's own unique index in the table", async () => {
    const instance = await start();
    const { id } = await instance.createTenant();
    await signUp(instance, null);
    const { quote, query } = instance.database;
    const columns = ["id", "name", "email", "emailVerified", "createdAt", "updatedAt", "tenantId"];
    const values = columns.map((name) => {
      if (name === "id") return "'copy'";
      return name === "tenantId" ? `'${id}'` : quote(name);
    });
    const copy = `insert into ${quote("user")} (${columns.map(quote).join(", ")})
      select ${values.join(", ")} from ${quote("user")}`;
    await expect(query(copy)).rejects.toThrow(/unique|duplicate/i);
  });

  it("refuses to change an e-mail into one that is taken elsewhere, without an internal error", async () => {
    const instance = await start({
      user: { changeEmail: { enabled: true, updateEmailWithoutVerification: true } },
    });
    const { id } = await instance.createTenant();
    await signUp(instance, null);
    const { browser, email, user } = await instance.signUp(id);
    const answer = await browser.post("/change-email", { newEmail: EMAIL });
    expect(answer.status).toBeLessThan(500);
    expect(await instance.rows("user", "id = ? and email = ?", [user.id, email])).toBe(1);
  });
});

/** The names of all fields, and the type of what is in them. */
function shape(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value === null ? "null" : typeof value;
  return Object.fromEntries(
    Object.entries(value)
      .sort()
      .map(([key, item]) => [key, shape(item)]),
  );
}
