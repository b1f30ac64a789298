import { describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import { createInstance } from "../support/instance";
import { createMailbox } from "./mailbox";
import { createWitness, person } from "./witness";

describe("getTenantId() in hooks and senders", () => {
  const SIGN_UP = [
    "before /sign-up/email",
    "before user",
    "after user",
    "before account",
    "after account",
    "before session",
    "after session",
    "after /sign-up/email",
  ].sort();

  it("knows the tenant in every hook of a sign-up that names one", async () => {
    const { seen, auth } = createWitness();
    const instance = await createInstance({ auth });
    const a = (await instance.createTenant("aa")).id;
    seen.length = 0;
    for (const tenantId of [a, null]) {
      const browser = instance.browser(tenantId ? { "x-tenant-id": tenantId } : {});
      expect((await browser.post("/sign-up/email", person())).status).toBe(200);
      expect(new Set(seen.map(([, tenant]) => tenant))).toEqual(new Set([tenantId]));
      expect(
        seen
          .splice(0)
          .map(([where]) => where)
          .sort(),
      ).toEqual(SIGN_UP);
    }
  });

  it("knows it in the hooks of better-auth's endpoint behind /tenant/*", async () => {
    const { seen, auth } = createWitness();
    const instance = await createInstance({ auth });
    const a = (await instance.createTenant("aa")).id;
    seen.length = 0;
    const body = { ...person(), tenantId: a };
    expect((await instance.browser().post("/tenant/sign-up/email", body)).status).toBe(200);
    const inner = seen.filter(([where]) => !where.includes("/tenant/"));
    expect(inner.map(([where]) => where).sort()).toEqual(SIGN_UP);
    expect(new Set(inner.map(([, tenant]) => tenant))).toEqual(new Set([a]));
  });

  it("knows it in the hooks of /tenant/sign-up/email and /tenant/sign-in/email themselves", async () => {
    const { seen, auth } = createWitness();
    const instance = await createInstance({ auth });
    const a = (await instance.createTenant("aa")).id;
    for (const path of ["/tenant/sign-up/email", "/tenant/sign-in/email"]) {
      seen.length = 0;
      const answer = await instance.browser().post(path, { ...person(), tenantId: a });
      expect(answer.status).toBe(200);
      expect(seen.filter(([where]) => where.includes("/tenant/"))).toEqual([
        [`before ${path}`, a],
        [`after ${path}`, a],
      ]);
    }
  });

  // The session is looked up after `hooks.before`, and looking it up earlier would cost every
  // request a query. docs/naming.md says so.
  it("R4: knows the tenant of the session from the first look at the database on", async () => {
    const { seen, auth } = createWitness();
    const instance = await createInstance({ auth });
    const a = (await instance.createTenant("aa")).id;
    const { browser } = await instance.signUp(a);
    seen.length = 0;
    expect((await browser.post("/update-user", { name: "Changed" })).status).toBe(200);
    expect(seen).toEqual([
      ["before /update-user", null],
      ["before update of user", a],
      ["after update of user", a],
      ["after /update-user", a],
    ]);
  });

  it("knows it in mail senders, whoever named it", async () => {
    const { mails, auth } = createMailbox();
    const instance = await createInstance({
      auth: {
        ...auth,
        emailVerification: { ...auth.emailVerification, sendOnSignUp: true },
      },
    });
    const a = (await instance.createTenant("aa")).id;
    const signedUp = await instance.signUp(a, "new@example.com");
    expect(mails.splice(0)).toMatchObject([
      { kind: "verification", userId: signedUp.user.id, sentIn: a },
    ]);
    const ways = [
      instance.browser({ "x-tenant-id": a }),
      // The session names it here.
      signedUp.browser,
    ];
    for (const browser of ways) {
      await browser.post("/request-password-reset", { email: "new@example.com" });
      await browser.post("/send-verification-email", { email: "new@example.com" });
      expect(mails.splice(0)).toMatchObject([
        { kind: "reset", userId: signedUp.user.id, sentIn: a },
        { kind: "verification", userId: signedUp.user.id, sentIn: a },
      ]);
    }
    const onPlatform = await instance.signUp(null, "new@example.com");
    expect(mails).toMatchObject([
      { kind: "verification", userId: onPlatform.user.id, sentIn: null },
    ]);
  });

  it("is null outside of requests, and is null again after one", async () => {
    const instance = await createInstance();
    const a = (await instance.createTenant("aa")).id;
    expect(getTenantId()).toBeNull();
    await instance.api.signUpEmailTenant({ body: { ...person(), tenantId: a } });
    await instance.api.signUpEmail({
      body: person("x@example.com"),
      headers: new Headers({ "x-tenant-id": a }),
    });
    expect(getTenantId()).toBeNull();
    expect(await instance.rows("user", `"tenantId" = ?`, [a])).toBe(2);
  });
});
