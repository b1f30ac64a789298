import { createAuthEndpoint } from "better-auth/api";
import { emailOTP } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { runInTenant, type TenantPolicy } from "../../src/index";
import { mapStorage } from "../sessions/stores";
import { createInstance, PASSWORD } from "../support/instance";

const ACME: TenantPolicy = { emailDomains: ["acme.com"] };
const STORES = ["the database", "secondary storage"] as const;

/** A plugin that changes users in every way there is. */
const writer = {
  id: "writer",
  endpoints: {
    write: createAuthEndpoint("/writer/write", { method: "POST" }, async (ctx) => {
      const { adapter, internalAdapter } = ctx.context;
      const { how, id, email } = ctx.query as Record<"how" | "id" | "email", string>;
      const call = { model: "user", where: [{ field: "id", value: id }], update: { email } };
      if (how === "internalAdapter") await internalAdapter.updateUser(id, { email });
      if (how === "update") await adapter.update(call);
      if (how === "updateMany") await adapter.updateMany(call);
      if (how === "transaction") await adapter.transaction((inner) => inner.update(call));
      return ctx.json({ ok: true });
    }),
  },
};

async function start(store: (typeof STORES)[number] = "the database") {
  const mails: { token?: string; otp?: string }[] = [];
  const instance = await createInstance({
    plugins: [
      emailOTP({
        changeEmail: { enabled: true },
        sendVerificationOTP: async ({ otp }) => void mails.push({ otp }),
      }),
      writer,
    ],
    auth: {
      user: { changeEmail: { enabled: true, updateEmailWithoutVerification: true } },
      emailVerification: { sendVerificationEmail: async ({ token }) => void mails.push({ token }) },
      ...(store === "secondary storage" && { secondaryStorage: mapStorage().storage }),
    },
  });
  const { id: tenantId } = await instance.createTenant();
  /** Somebody who is there, and signed in. The header is not needed: the session says where. */
  const join = async (email: string, emailVerified: boolean) => {
    const { user, browser } = await instance.signUp(tenantId, email);
    await runInTenant(tenantId, () =>
      instance.context.internalAdapter.updateUser(user.id, { emailVerified }),
    );
    return { id: user.id, browser };
  };
  const addressOf = async (id: string) => {
    const [row] = await instance.database.query('select * from "user" where id = ?', [id]);
    return [row?.email, Boolean(row?.emailVerified)];
  };
  const setPolicy = (policy: TenantPolicy | null = ACME) =>
    instance.api.updateTenant({ body: { tenantId, policy } });
  return { instance, tenantId, join, addressOf, setPolicy, mails };
}

describe.each(STORES)("a new address, where the policy names domains; sessions in %s", (store) => {
  it("has to be of one of them, and is refused alike whether it is taken or not", async () => {
    const { join, addressOf, setPolicy, mails } = await start(store);
    const people = [await join("al@acme.com", true), await join("bo@acme.com", false)];
    await join("taken@elsewhere.com", true);
    await setPolicy();
    for (const { id, browser } of people) {
      const before = await addressOf(id);
      for (const path of ["/change-email", "/email-otp/request-email-change"]) {
        for (const newEmail of ["free@elsewhere.com", "taken@elsewhere.com", "x@sub.acme.com"]) {
          const { status, code } = await browser.post(path, { newEmail });
          expect([path, newEmail, status, code]).toEqual([
            path,
            newEmail,
            403,
            "EMAIL_DOMAIN_NOT_ALLOWED",
          ]);
        }
      }
      expect(await addressOf(id)).toEqual(before);
    }
    expect(mails).toEqual([]);
  });

  it("has to be theirs before they have it", async () => {
    const { join, addressOf, setPolicy, mails } = await start(store);
    const { id, browser } = await join("al@elsewhere.com", false);
    await setPolicy();
    const asked = await browser.post("/change-email", { newEmail: "Boss@acme.com" });
    expect([asked.status, asked.data]).toEqual([200, { status: true }]);
    expect(await addressOf(id)).toEqual(["al@elsewhere.com", false]);
    const query = { token: mails.at(-1)?.token ?? "" };
    expect((await browser.get("/verify-email", { query })).status).toBe(200);
    expect(await addressOf(id)).toEqual(["boss@acme.com", true]);
    // Without domains it is as the application has it.
    await setPolicy(null);
    const other = await join("cy@elsewhere.com", false);
    await other.browser.post("/change-email", { newEmail: "cy@acme.com" });
    expect(await addressOf(other.id)).toEqual(["cy@acme.com", false]);
  });

  it("is not changed by what was mailed before, nor by a plugin that writes it", async () => {
    const { join, addressOf, setPolicy, mails } = await start(store);
    const { id, browser } = await join("al@acme.com", true);
    await browser.post("/change-email", { newEmail: "al@elsewhere.com" });
    const query = { token: mails.at(-1)?.token ?? "" };
    await browser.post("/email-otp/request-email-change", { newEmail: "al@elsewhere.com" });
    const code = { newEmail: "al@elsewhere.com", otp: mails.at(-1)?.otp };
    await setPolicy();
    const attempts = [
      await browser.get("/verify-email", { query }),
      await browser.post("/email-otp/change-email", code),
    ];
    for (const how of ["internalAdapter", "update", "updateMany", "transaction"]) {
      const path = `/writer/write?how=${how}&id=${id}&email=`;
      attempts.push(await browser.post(`${path}al@elsewhere.com`));
      const unverified = await browser.post(`${path}boss@acme.com`);
      expect([how, unverified.status, unverified.code]).toEqual([how, 403, "EMAIL_NOT_VERIFIED"]);
      expect((await browser.post(`${path}al@acme.com`)).status).toBe(200);
    }
    for (const { status, code } of attempts) {
      expect([status, code]).toEqual([403, "EMAIL_DOMAIN_NOT_ALLOWED"]);
    }
    expect(await addressOf(id)).toEqual(["al@acme.com", true]);
    await setPolicy(null);
    expect((await browser.get("/verify-email", { query })).status).toBe(200);
    expect(await addressOf(id)).toEqual(["al@elsewhere.com", true]);
  });

  it("is given by operators, the tenant's own administrators and the server's own code", async () => {
    const { instance, tenantId, join, addressOf, setPolicy } = await start(store);
    const { id } = await join("al@acme.com", true);
    const admin = await join("admin@acme.com", true);
    await runInTenant(tenantId, () =>
      instance.context.internalAdapter.updateUser(admin.id, { role: "admin" }),
    );
    // A session that is kept outside the database knows the role from when it was made.
    const body = { email: "admin@acme.com", password: PASSWORD, tenantId };
    await admin.browser.post("/tenant/sign-in/email", body);
    await setPolicy();
    const { browser: operator, email } = await instance.operator();
    await operator.post("/sign-in/email", { email, password: PASSWORD });
    for (const [browser, email] of [
      [operator, "one@elsewhere.com"],
      [admin.browser, "two@elsewhere.com"],
    ] as const) {
      const body = { userId: id, data: { email } };
      expect((await browser.post("/admin/update-user", body)).status).toBe(200);
      expect((await addressOf(id))[0]).toBe(email);
    }
    await runInTenant(tenantId, () =>
      instance.context.internalAdapter.updateUser(id, { email: "three@elsewhere.com" }),
    );
    expect((await addressOf(id))[0]).toBe("three@elsewhere.com");
  });
});
