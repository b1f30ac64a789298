import { apiKey } from "@better-auth/api-key";
import { passkey } from "@better-auth/passkey";
import type { SCIMOptions } from "@better-auth/scim";
import { phoneNumber } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { runInTenant } from "../../../src/index";
import { createAuthenticator } from "../../../src/testing/makers/authenticator";
import { createSamlProvider } from "../../../src/testing/makers/saml";
import type { Browser } from "../../support/browser";
import { databases } from "../../support/database";
import { startIdentityProvider } from "../../support/identity-provider";
import { PASSWORD } from "../../support/instance";
import { mapStorage } from "../../support/stores";
import {
  ADA,
  acsOf,
  createEnterpriseWorld,
  type EnterpriseWorld,
  post,
  SCIM_MODELS,
  samlRegistration,
  samlUnderWay,
  sharedOidc,
  shareEnterpriseWorld,
} from "./world";

const idp = await createSamlProvider("https://acme.idp.example");
const PROTOCOLS = ["OpenID Connect", "SAML"] as const;

/** How a directory describes a person with this address. */
const withAddress = (email: string) => ({
  userName: email,
  emails: [{ value: email, primary: true }],
});

const sso = { domainVerification: { enabled: true } } as const;

/** A tenant with a directory, and a provider whose domain is verified, where there is such a thing. */
async function tenantIn(
  world: EnterpriseWorld,
  protocol: (typeof PROTOCOLS)[number] = "OpenID Connect",
  domain = "acme.example",
) {
  const { id, slug } = await world.createTenant();
  const providerId = `${slug}-idp`;
  const registration =
    protocol === "SAML" ? samlRegistration(providerId, idp) : world.oidc(providerId);
  await world.register(id, { ...registration, domain });
  if (world.context.tables.ssoProvider?.fields.domainVerified) {
    await world.write("ssoProvider", { domainVerified: true }, { providerId });
  }
  const users = async () =>
    (await world.rowsIn(id, "user")).filter(({ email }) => String(email).endsWith("acme.example"));
  const user = async () => (await users())[0] ?? {};
  const stored = () => Promise.all(["user", "account"].map((model) => world.rowsIn(id, model)));

  /** Starts at the tenant, goes to its provider and comes back. */
  async function signIn() {
    if (protocol !== "SAML") return world.ssoSignIn(id, providerId);
    const { browser, form } = await samlUnderWay(world, id, providerId, idp);
    const { location } = await post(browser, acsOf(providerId), form);
    return { browser, location, who: await world.whoIs(browser) };
  }

  return {
    id,
    directory: await world.connect(id),
    users,
    user,
    stored,
    signIn,

    /** As the application itself would do it. */
    update: async (change: object) => {
      const { id: userId } = await user();
      await runInTenant(id, () => world.context.internalAdapter.updateUser(`${userId}`, change));
    },

    /** The providers of the accounts that a user has. */
    accountsOf: async (userId: unknown) =>
      (await world.rowsIn(id, "account"))
        .filter((account) => account.userId === userId)
        .map((account) => (account.providerId === providerId ? "sso" : account.providerId)),

    /** A sign-in is refused, and changes no user and no account. */
    async expectUnlinked(run = signIn) {
      const before = await stored();
      const { location, who } = await run();
      expect(location).toMatch(/error=account[_+ ]not[_+ ]linked/);
      expect(who).toBe(null);
      expect(await stored()).toEqual(before);
    },
  };
}

describe.each(databases)("a user that the directory of a tenant creates, on %s", (database) => {
  const world = shareEnterpriseWorld({ sso }, database);

  it.each(PROTOCOLS)("signs in with %s: one user, verified, with one account", async (protocol) => {
    const { id, directory, signIn, users, user, accountsOf } = await tenantIn(world, protocol);
    expect((await directory.add("ada", withAddress(ADA))).status).toBe(201);
    const { id: userId, emailVerified } = await user();
    expect(Boolean(emailVerified)).toBe(false);
    for (const _ of ["the first time", "again"]) {
      const { location, who } = await signIn();
      expect(location).toContain("/welcome");
      expect(who).toEqual({ id: userId, email: ADA, tenantId: id });
    }
    expect(await users()).toHaveLength(1);
    expect(Boolean((await user()).emailVerified)).toBe(true);
    expect(await accountsOf(userId)).toEqual(["sso"]);
  });

  it("signs in whatever the policy says about sign-up and passwords", async () => {
    const { id, directory, signIn } = await tenantIn(world);
    const emailDomains = ["acme.example"];
    await world.change(id, { policy: { signUp: "closed", methods: ["sso"], emailDomains } });
    await directory.add("ada", withAddress(ADA));
    expect((await signIn()).who).toMatchObject({ email: ADA });
  });

  it("signs in after the directory has corrected the address, and after its end", async () => {
    const { directory, signIn, users } = await tenantIn(world);
    const { data } = await directory.add("ada", withAddress("adda@acme.example"));
    await directory.patch(`Users/${data.id}`, "emails", withAddress(ADA).emails);
    await directory.decommission();
    expect((await signIn()).who).toMatchObject({ email: ADA });
    expect(await users()).toHaveLength(1);
  });

  it("does not sign in while the directory has them as inactive, and nothing is written", async () => {
    const { directory, signIn, user, stored } = await tenantIn(world);
    const { data } = await directory.add("ada", { ...withAddress(ADA), active: false });
    const before = await stored();
    expect((await signIn()).location).toContain("error=USER_DEACTIVATED");
    expect(await stored()).toEqual(before);
    await directory.patch(`Users/${data.id}`, "active", true);
    expect((await signIn()).who).toMatchObject({ id: (await user()).id });
  });

  it("takeover: keeps no password and no session from before the address was proven", async () => {
    const { id, directory, signIn, user, accountsOf } = await tenantIn(world);
    const { data } = await directory.add("eve", withAddress("eve@acme.example"));
    const { id: userId } = await user();
    await world.at(id).post("/request-password-reset", { email: "eve@acme.example" });
    const { token } = world.lastMail("reset");
    await world.at(id).post("/reset-password", { token, newPassword: PASSWORD });
    // The directory gives Eve's user to Ada.
    await directory.patch(`Users/${data.id}`, "emails", withAddress(ADA).emails);
    const { person: eve } = await world.signIn(id, ADA);
    expect(await world.whoIs(eve)).toMatchObject({ id: userId });
    expect((await signIn()).who).toMatchObject({ id: userId });
    expect(await world.whoIs(eve)).toBe(null);
    expect((await world.signIn(id, ADA)).status).toBe(401);
    expect(await accountsOf(userId)).toEqual(["sso"]);
  });

  it.each(PROTOCOLS)("is linked by no provider of another domain: %s", async (protocol) => {
    for (const domain of ["other.example", "sub.acme.example"]) {
      const { directory, expectUnlinked } = await tenantIn(world, protocol, domain);
      await directory.add("ada", withAddress(ADA));
      await expectUnlinked();
    }
  });

  it("is linked by no provider whose domain is not verified yet", async () => {
    const { id, providerId } = await world.newTenant();
    await (await world.connect(id)).add("ada", withAddress(ADA));
    expect((await world.start(id, providerId)).status).toBe(401);
  });

  it("is another person in another tenant", async () => {
    const [ours, theirs] = [await tenantIn(world), await tenantIn(world)];
    await theirs.directory.add("ada", withAddress(ADA));
    const before = await world.everythingIn(theirs.id);
    expect((await ours.signIn()).who).toMatchObject({ email: ADA, tenantId: ours.id });
    expect(await world.everythingIn(theirs.id)).toEqual(before);
  });

  it("takeover: is not one who signed up, where the directory has others", async () => {
    const { id, directory, expectUnlinked } = await tenantIn(world);
    await world.signUp(id, ADA);
    await directory.add("bob", withAddress("bob@acme.example"));
    await expectUnlinked();
  });

  it("takeover: is not one who has taken another address since", async () => {
    const { directory, update, expectUnlinked } = await tenantIn(world);
    await directory.add("eve", withAddress("eve@acme.example"));
    await update({ email: ADA });
    await expectUnlinked();
  });
});

describe.each(databases)("a user that the application links to a directory, on %s", (database) => {
  let profile: "preserve" | "manage" = "preserve";
  const identity: SCIMOptions["identity"] = {
    resolveUser: async ({ resource }, { database }) => {
      const where = [{ field: "email", value: resource.primaryEmail }];
      const user = await database.findOne<{ id: string }>({ model: "user", where });
      return user ? { action: "link", userId: user.id, profile } : { action: "create" };
    },
  };
  const signUpOnVerification = {
    getTempEmail: (number: string) => `${number.slice(1)}@phone.example`,
  };
  const world = shareEnterpriseWorld(
    {
      sso,
      scim: { identity },
      auth: {
        account: { accountLinking: { allowUnlinkingAll: true } },
        user: { changeEmail: { enabled: true, updateEmailWithoutVerification: true } },
      },
      plugins: (send) => [phoneNumber({ sendOTP: send("phone"), signUpOnVerification })],
    },
    database,
  );

  it.each(["preserve", "manage"] as const)(
    "takeover: may be one who signed up with the address, and is not linked: %s",
    async (wanted) => {
      const { id, directory, update, signIn, expectUnlinked } = await tenantIn(world);
      const attacker = await world.signUp(id, ADA);
      profile = wanted;
      expect((await directory.add("ada", withAddress(ADA))).status).toBe(201);
      await expectUnlinked();
      // Control: the address was verified.
      await update({ emailVerified: true });
      expect((await signIn()).who).toMatchObject({ id: attacker.id });
    },
  );

  it("takeover: may have signed up a moment ago, and have no account left", async () => {
    const { id, directory, signIn, expectUnlinked } = await tenantIn(world);
    const attacker = await world.signUp(id, ADA);
    await directory.add("ada", withAddress(ADA));
    const [account] = (await attacker.get<{ id: string }[]>("/list-accounts")).data;
    const body = { providerId: "credential", accountId: account?.id };
    const unlinked = await attacker.post("/unlink-account", body);
    expect(unlinked.status).toBe(200);
    await expectUnlinked();
    // Control: the same directory creates the user.
    const other = await tenantIn(world);
    await other.directory.add("ada", withAddress(ADA));
    expect((await other.signIn()).who).toMatchObject({ email: ADA, tenantId: other.id });
    expect((await signIn()).who).toBe(null);
  });

  it("takeover: may have signed up with a phone number, and have had no account", async () => {
    const { id, directory, expectUnlinked } = await tenantIn(world);
    const attacker = world.at(id);
    const phone = { phoneNumber: "+15551234567" };
    await attacker.post("/phone-number/send-otp", phone);
    const { code } = world.lastMail("phone");
    await attacker.post("/phone-number/verify", { ...phone, code });
    await attacker.post("/change-email", { newEmail: ADA });
    expect(await world.whoIs(attacker)).toMatchObject({ email: ADA });
    expect((await directory.add("ada", withAddress(ADA))).status).toBe(201);
    await expectUnlinked();
  });
});

describe("a user that the directory of a tenant creates", () => {
  it.each(PROTOCOLS)("is not linked where no domain is verified: %s", async (protocol) => {
    const world = await createEnterpriseWorld();
    const { directory, expectUnlinked } = await tenantIn(world, protocol);
    await directory.add("ada", withAddress(ADA));
    await expectUnlinked();
  });

  it("is linked by no provider of another domain that says the address is verified", async () => {
    const world = await createEnterpriseWorld({ sso: { ...sso, trustEmailVerified: true } });
    world.provider.addPerson("ada", { email: ADA, email_verified: true });
    const other = await tenantIn(world, "OpenID Connect", "other.example");
    await other.directory.add("ada", withAddress(ADA));
    await other.expectUnlinked();
    // Control: the one of the domain.
    const own = await tenantIn(world);
    await own.directory.add("ada", withAddress(ADA));
    expect((await own.signIn()).who).toMatchObject({ email: ADA });
  });

  it("is linked by no provider of everybody's, and by no social one", async () => {
    const provider = await startIdentityProvider();
    const everybodys = sharedOidc(provider, "everybodys");
    const { providerId, oidcConfig } = everybodys;
    const { clientId, clientSecret, issuer } = oidcConfig;
    const world = await createEnterpriseWorld({
      provider,
      sso: { ...sso, trustEmailVerified: true, defaultSSO: [everybodys] },
      auth: { socialProviders: { gitlab: { clientId, clientSecret, issuer } } },
    });
    provider.addPerson("ada", { email: ADA, email_verified: true });
    const { id, directory, signIn, expectUnlinked } = await tenantIn(world);
    await directory.add("ada", withAddress(ADA));
    await expectUnlinked(() => world.ssoSignIn(id, providerId));
    await expectUnlinked(async () => {
      const browser = world.at(id);
      const body = { provider: "gitlab", callbackURL: "/in", errorCallbackURL: "/failed" };
      const { data } = await browser.post<{ url: string }>("/sign-in/social", body);
      const { location } = await browser.get(await provider.authorize(data.url, "ada"));
      return { browser, location, who: await world.whoIs(browser) };
    });
    // Control: the tenant's own.
    expect((await signIn()).who).toMatchObject({ email: ADA });
  });

  it.each([{ enabled: false }, { disableImplicitLinking: true }])(
    "is not linked where the application says %j",
    async (accountLinking) => {
      const world = await createEnterpriseWorld({ sso, auth: { account: { accountLinking } } });
      const { directory, expectUnlinked } = await tenantIn(world);
      await directory.add("ada", withAddress(ADA));
      await expectUnlinked();
    },
  );

  it("takeover: keeps no session in a storage from before the address was proven", async () => {
    const secondaryStorage = mapStorage().storage;
    const world = await createEnterpriseWorld({ sso, auth: { secondaryStorage } });
    const { id, directory, user, signIn } = await tenantIn(world);
    await directory.add("ada", withAddress(ADA));
    const { id: userId } = await user();
    const admin = await world.as("admin", id);
    await admin.post("/admin/set-user-password", { userId, newPassword: PASSWORD });
    const { person } = await world.signIn(id, ADA);
    expect(await world.whoIs(person)).toMatchObject({ id: userId });
    expect((await signIn()).who).toMatchObject({ id: userId });
    expect(await world.whoIs(person)).toBe(null);
    expect((await world.signIn(id, ADA)).status).toBe(401);
  });

  it("takeover: keeps nothing that the previous holder has enrolled, and no cookie", async () => {
    const world = await createEnterpriseWorld({
      sso,
      auth: { session: { cookieCache: { enabled: true, maxAge: 3600 } } },
      plugins: (send) => [
        apiKey({ enableSessionForAPIKeys: true }),
        passkey({ rpID: "localhost" }),
        phoneNumber({ sendOTP: send("phone") }),
      ],
      tenant: { scopedModels: ["ssoProvider", ...SCIM_MODELS, "apikey", "passkey"] },
    });
    const { id, directory, user, signIn } = await tenantIn(world);
    const { data } = await directory.add("eve", withAddress("eve@acme.example"));
    const { id: userId } = await user();
    const admin = await world.as("admin", id);
    await admin.post("/admin/set-user-password", { userId, newPassword: PASSWORD });
    const { person: eve } = await world.signIn(id, "eve@acme.example");
    const { key } = (await eve.post<{ key: string }>("/api-key/create", { name: "x" })).data;
    const authenticator = await createAuthenticator("localhost");
    const challengeOf = async (browser: Browser, path: string) =>
      (await browser.get<{ challenge: string }>(`/passkey/generate-${path}-options`)).data
        .challenge;
    const origin = "http://localhost:3000";
    await eve.post("/passkey/verify-registration", {
      response: await authenticator.register(await challengeOf(eve, "register"), origin),
    });
    const phone = { phoneNumber: "+15551234567" };
    const verifyPhone = async (browser: Browser, more: object = {}) => {
      await browser.post("/phone-number/send-otp", phone);
      const { code } = world.lastMail("phone");
      await browser.post("/phone-number/verify", { ...phone, code, ...more });
    };
    await verifyPhone(eve, { updatePhoneNumber: true });

    /** Whether each of these is a way in. */
    const ways = async () => {
      const [byPasskey, byPhone] = [world.at(id), world.at(id)];
      const challenge = await challengeOf(byPasskey, "authenticate");
      const response = await authenticator.assert(challenge, origin);
      await byPasskey.post("/passkey/verify-authentication", { response });
      await verifyPhone(byPhone);
      const withKey = await world.at(id).get("/get-session", { headers: { "x-api-key": key } });
      const who = await Promise.all([eve, byPasskey, byPhone].map((one) => world.whoIs(one)));
      return [...who.map(Boolean), withKey.status === 200];
    };
    expect(await ways()).toEqual([true, true, true, true]);
    expect(await world.rowsIn(id, "passkey")).toHaveLength(1);
    await directory.patch(`Users/${data.id}`, "emails", withAddress(ADA).emails);
    const { browser, who } = await signIn();
    expect(who).toMatchObject({ id: userId, email: ADA });
    expect(await ways()).toEqual([false, false, false, false]);
    expect(await world.rowsIn(id, "passkey")).toEqual([]);
    // Control: the cookie of the person who has proven the address.
    expect(await world.whoIs(browser)).toMatchObject({ id: userId });
  });
});
