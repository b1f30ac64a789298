import { apiKey } from "@better-auth/api-key";
import { getCurrentAdapter, runWithTransaction } from "@better-auth/core/context";
import type { SCIMOptions } from "@better-auth/scim";
import { bearer, emailOTP, magicLink } from "better-auth/plugins";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { runInTenant, type TenantPolicy } from "../../../src/index";
import { databases } from "../../support/database";
import { REFUSED_RESET_KEEPS_TOKEN } from "../../support/differences";
import { startIdentityProvider } from "../../support/identity-provider";
import { PASSWORD } from "../../support/instance";
import { createStorage, mapStorage, STORAGE_KINDS } from "../../support/stores";
import { expectRefused, type Where, type WorldOptions } from "../../support/world";
import { createSCIMWorld, identity, SCIM_MODELS, shareSCIMWorld } from "./world";

const ADA = "ada@example.com";
const STATIC_TOKEN = "a-static-token-of-the-application";

interface KeyVerifier {
  verifyApiKey(input: { body: { key: string } }): Promise<{ valid: boolean }>;
}

/** What a directory may do to somebody who has left. */
const LEAVING = ["deactivates", "deletes"] as const;
type How = (typeof LEAVING)[number];
type Directory = Awaited<ReturnType<Awaited<ReturnType<typeof createSCIMWorld>>["connect"]>>;

const letGo = async (directory: Directory, id: string, how: How) =>
  how === "deletes"
    ? directory.delete(`Users/${id}`)
    : directory.patch(`Users/${id}`, "active", false);

describe.each(databases)("a directory of a tenant, on %s", (database) => {
  const credentials = [{ type: "bearer" as const, id: "static", token: STATIC_TOKEN }];
  const world = shareSCIMWorld(
    {
      scim: { identity, connections: [{ id: "platform", credentials }] },
      auth: { emailVerification: { autoSignInAfterVerification: true } },
      plugins: (send) => [
        magicLink({ sendMagicLink: send("link") }),
        emailOTP({ sendVerificationOTP: send("otp") }),
        apiKey({ enableSessionForAPIKeys: true }),
        // Hands back the headers that were sent.
        bearer(),
      ],
      tenant: {
        scopedModels: [...SCIM_MODELS, "apikey"],
        tenantRoles: { admin: ["policy:update"] },
      },
    },
    database,
  );

  async function newTenant(policy: TenantPolicy | null = null) {
    const { id } = await world.createTenant();
    if (policy) await world.change(id, { policy });
    return { id, directory: await world.connect(id) };
  }

  /** A directory adds Ada, who is an administrator. */
  async function addAdmin(id: string, directory: Directory) {
    const { data } = await directory.add("ada");
    const [ada] = await world.rowsIn(id, "user");
    await world.setRole(String(ada?.id), "admin");
    return data.id;
  }

  it("creates, reads, changes and deletes users of that tenant", async () => {
    const [ours, theirs] = [await newTenant(), await newTenant()];
    const ids: string[] = [];
    for (const { id, directory } of [ours, theirs]) {
      const { status, data } = await directory.add("ada");
      expect([status, await world.emails(id)]).toEqual([201, [ADA]]);
      ids.push(data.id);
      expect((await directory.addGroup("Staff", data.id)).status).toBe(201);
      const found = await directory.get("Users", { filter: `userName eq "${ADA}"` });
      expect(found.data.Resources.map((one) => one.id)).toEqual([data.id]);
      await directory.patch(`Users/${data.id}`, "displayName", `Ada at ${id}`);
      const read = await directory.get(`Users/${data.id}`);
      expect(read.data.displayName).toBe(`Ada at ${id}`);
    }
    expect((await ours.directory.delete(`Users/${ids[0]}`)).status).toBe(204);
    expect([await world.emails(ours.id), await world.emails(theirs.id)]).toEqual([[], [ADA]]);
    // Somebody who comes back is somebody new.
    expect((await ours.directory.add("ada")).status).toBe(201);
  });

  it("has a token that is none where another tenant is named, or altered, or after it ends", async () => {
    const { id, directory } = await newTenant();
    const [credential = ""] = directory.token.split(".");
    const [, secret] = (await newTenant()).directory.token.split(".");
    const add = async (token = directory.token, where: Where = "platform") =>
      (await world.directory(token, world.naming(where)).add("ada")).status;
    expect(await add(undefined, "globex")).toBe(401);
    expect(await add(`${directory.token}x`)).toBe(401);
    expect(await add(`${credential}.${secret}`)).toBe(401);
    expect(await world.emails(id)).toEqual([]);
    expect(await add(undefined, id)).toBe(201);
    await world.change(id, { status: "suspended" });
    expect(await add()).toBe(403);
    await world.api.deleteTenant({ body: { tenantId: id } });
    expect(await add()).toBe(401);
    const rest = Object.values(await world.everythingIn(id)).flat();
    expect(rest).toEqual([]);
  });

  it("is the platform's where the application has written its token down", async () => {
    for (const [where, status] of [
      ["acme", 401],
      ["platform", 201],
    ] as const) {
      const directory = world.directory(STATIC_TOKEN, world.naming(where));
      expect((await directory.add("static")).status).toBe(status);
    }
    expect(await world.emails("platform")).toEqual(["static@example.com"]);
    expect(await world.emails("acme")).toEqual([]);
  });

  it("makes users whatever the policy says about sign-up, and changes addresses as it likes", async () => {
    const { id, directory } = await newTenant({
      signUp: "closed",
      methods: ["password"],
      emailDomains: ["other.example"],
    });
    const { status, data } = await directory.add("ada");
    expect([status, await world.emails(id)]).toEqual([201, [ADA]]);
    const emails = [{ value: "ada@third.example", primary: true }];
    expect((await directory.patch(`Users/${data.id}`, "emails", emails)).status).toBe(200);
    expect(await world.emails(id)).toEqual(["ada@third.example"]);
  });

  it.each(["the only directory", "the one after another"])(
    "%s does not take the last administrator away, and is told so before anything is deleted",
    async (which) => {
      const { id, directory } = await newTenant();
      if (which !== "the only directory") {
        const before = await world.connect(id);
        await before.add("ada");
        await before.decommission();
      }
      const path = `Users/${await addAdmin(id, directory)}`;
      const expectKept = async () => {
        const refused = await directory.delete(path);
        expect([refused.status, refused.data.detail]).toEqual([409, "Last admin"]);
        expect((await directory.get(path)).status).toBe(200);
      };
      await expectKept();
      // A deputy who cannot sign in is none.
      const { email } = await world.join(id, "admin", "deputy@example.com");
      const deputy = await directory.add("deputy");
      await directory.patch(`Users/${deputy.data.id}`, "active", false);
      await expectKept();
      await directory.patch(`Users/${deputy.data.id}`, "active", true);
      expect((await directory.delete(path)).status).toBe(204);
      expect(await world.emails(id)).toEqual([email]);
    },
  );

  it("of which there are two: the one that lets the last administrator in keeps them", async () => {
    const { id, directory } = await newTenant();
    const second = await world.connect(id);
    const { id: adaId } = await world.signUp(id, ADA);
    const [first, other] = [await directory.add("ada"), await second.add("ada")];
    await world.setRole(adaId, "admin");
    await second.patch(`Users/${other.data.id}`, "active", false);
    const refused = await directory.delete(`Users/${first.data.id}`);
    expect([refused.status, refused.data.detail]).toEqual([409, "Last admin"]);
    // With another one she stays in the second directory, and out.
    await world.join(id, "admin");
    expect((await directory.delete(`Users/${first.data.id}`)).status).toBe(204);
    expect(await world.emails(id)).toContain(ADA);
    expectRefused(await world.signIn(id, ADA), 403, "USER_DEACTIVATED");
  });

  it("deletes a user it has deactivated, also the only administrator", async () => {
    const { id, directory } = await newTenant();
    const path = `Users/${await addAdmin(id, directory)}`;
    await directory.patch(path, "active", false);
    expect((await directory.delete(path)).status).toBe(204);
    expect(await world.emails(id)).toEqual([]);
  });

  it.each<[steps: string, signIn: number, afterUnban: number]>([
    ["1 active, 2 inactive", 200, 200],
    ["1 inactive, 2 inactive", 403, 403],
    ["1 active, 1 ends", 200, 200],
    ["1 active, 1 ends, 2 inactive", 403, 403],
    ["1 active, 1 ends, 2 inactive, 2 ends", 403, 200],
    ["1 inactive, 1 ends", 403, 200],
    ["1 inactive, 1 ends, 2 inactive", 403, 403],
    ["1 inactive, 1 ends, 2 active", 200, 200],
    ["1 inactive, 1 ends, 2 active, 2 ends", 200, 200],
  ])(
    "decides as long as it is there, and then the administrator does: %s",
    async (steps, ...expected) => {
      const { id } = await newTenant();
      const admin = await world.join(id, "admin");
      const ada = await world.signUp(id, ADA);
      const directories = [await world.connect(id), await world.connect(id)] as const;
      for (const step of steps.split(", ")) {
        const [which, word] = step.split(" ");
        const directory = directories[which === "1" ? 0 : 1];
        if (word === "ends") await directory.decommission();
        else {
          const { data } = await directory.add("ada");
          const { status } = await directory.patch(`Users/${data.id}`, "active", word === "active");
          expect(status).toBe(200);
        }
      }
      const signIn = async () => (await world.signIn(id, ADA)).status;
      const before = await signIn();
      expect((await admin.post("/admin/unban-user", { userId: ada.id })).status).toBe(200);
      expect([before, await signIn()]).toEqual(expected);
    },
  );

  it("ends the sessions of a user it deactivates, who gets no new one until it is active again", async () => {
    const { id, directory } = await newTenant();
    const ada = await world.signUp(id, ADA);
    // A link to an address that is not verified would take the password away.
    await world.write("user", { emailVerified: true }, { id: ada.id });
    const elsewhere = await world.signUp("globex", ADA);
    const { key } = (await ada.post<{ key: string }>("/api-key/create", {})).data;
    const withKey = async () =>
      (await world.at(id).get("/get-session", { headers: { "x-api-key": key } })).data;
    const verifier = world.api as unknown as KeyVerifier;
    const verify = async () =>
      (await runInTenant(id, () => verifier.verifyApiKey({ body: { key } }))).valid;
    const signIn = () => world.at(id).post("/sign-in/email", { email: ADA, password: PASSWORD });
    expect(await withKey()).toMatchObject({ user: { id: ada.id } });
    expect(await verify()).toBe(true);
    const { data } = await directory.add("ada");
    expect(await world.whoIs(ada)).toMatchObject({ tenantId: id });

    expect((await directory.patch(`Users/${data.id}`, "active", false)).status).toBe(200);
    expect(await world.whoIs(ada)).toBe(null);
    expectRefused(await signIn(), 403, "USER_DEACTIVATED");
    await world.at(id).post("/sign-in/magic-link", { email: ADA });
    const late = world.at("platform");
    await late.get(world.lastMail("link").url);
    expect(await world.whoIs(late)).toBe(null);
    expect(await withKey()).not.toHaveProperty("session");
    expect(await verify()).toBe(false);
    // The same address in another tenant is somebody else.
    expect(await world.whoIs(elsewhere)).toMatchObject({ tenantId: world.ids.globex });

    expect((await directory.patch(`Users/${data.id}`, "active", true)).status).toBe(200);
    expect((await signIn()).status).toBe(200);
    expect(await withKey()).toMatchObject({ user: { id: ada.id } });
  });

  // threat: an administrator who has left stays in as the person whom they have become.
  it.each(LEAVING)("ends the impersonations of a user that it %s, and no others", async (how) => {
    const { id, directory } = await newTenant();
    const [other, ada] = [await world.join(id, "admin"), await world.join(id, "admin", ADA)];
    const operator = (await world.operator()).fork();
    const bob = await world.signUp(id, "bob@example.com");
    const { data } = await directory.add("ada");
    for (const browser of [other, ada, operator]) {
      const { status } = await browser.post("/admin/impersonate-user", { userId: bob.id });
      expect([status, await world.whoIs(browser)]).toMatchObject([200, { id: bob.id }]);
    }
    expect((await letGo(directory, data.id, how)).status).toBeLessThan(300);
    expect(await world.whoIs(ada)).toBe(null);
    expect((await ada.post("/admin/stop-impersonating")).status).toBe(401);
    for (const browser of [other, operator, bob]) {
      expect(await world.whoIs(browser)).toMatchObject({ id: bob.id });
    }
    const sessions = await world.rowsIn(id, "session");
    expect(sessions.map(({ impersonatedBy }) => impersonatedBy)).not.toContain(ada.id);
  });

  it("refuses to impersonate a user that another process has deactivated", async () => {
    const { id, directory } = await newTenant();
    const ada = await world.join(id, "admin", ADA);
    const bob = await world.signUp(id, "bob@example.com");
    await directory.add("ada");
    expect(await world.whoIs(ada)).toMatchObject({ id: ada.id });
    await runInTenant(id, () => {
      const where = [{ field: "userId", value: ada.id }];
      return world.context.adapter.update({ model: "scimUser", where, update: { active: false } });
    });
    const answer = await ada.post("/admin/impersonate-user", { userId: bob.id });
    expectRefused(answer, 403, "USER_DEACTIVATED");
  });

  it.each<[what: string, isVerified: boolean, path: string, mail: string]>([
    ["a link to sign in", false, "/sign-in/magic-link", "link"],
    ["a link to sign in, with a verified address,", true, "/sign-in/magic-link", "link"],
    ["a link that verifies an address", false, "/send-verification-email", "verification"],
  ])("tells the page of %s that the user is deactivated", async (_, isVerified, path, mail) => {
    const { id, directory } = await newTenant();
    const { id: adaId } = await world.signUp(id, ADA);
    await runInTenant(id, () =>
      world.context.internalAdapter.updateUser(adaId, { emailVerified: isVerified }),
    );
    const { data } = await directory.add("ada");
    await world.at(id).post(path, { email: ADA, callbackURL: "/in" });
    await directory.patch(`Users/${data.id}`, "active", false);
    const browser = world.at("platform");
    const answer = await browser.get(world.lastMail(mail).url);
    expect([answer.status, answer.location]).toEqual([302, "/in?error=USER_DEACTIVATED"]);
    expect(await world.whoIs(browser)).toBe(null);
  });

  describe("a link that resets the password of a user of the directory", () => {
    const newPassword = "another good password";
    const request = (id: string, email: string) =>
      world.at(id).post("/request-password-reset", { email, redirectTo: "/page" });
    const reset = (id: string, token: string) =>
      world.at(id).post("/reset-password", { token, newPassword });

    /** The directory changes the address of a user that it has created itself. */
    async function start(who: "created" | "signed up") {
      const { id, directory } = await newTenant();
      const email = `${crypto.randomUUID()}@example.com`;
      if (who === "signed up") await world.signUp(id, email);
      const { data } = await directory.add(email.split("@")[0] ?? "");
      const change = (field: string, value: unknown) =>
        directory.patch(`Users/${data.id}`, field, value);
      return { id, email, change };
    }

    it("ends when the directory changes the address", async () => {
      const { id, email, change } = await start("created");
      await request(id, email);
      const { token, url } = world.lastMail("reset");
      const next = `new-${email}`;
      expect((await change("emails", [{ value: next, primary: true }])).status).toBe(200);
      expect(await world.emails(id)).toContain(next);
      expect((await world.at("platform").get(url)).location).toContain("INVALID_TOKEN");
      expectRefused(await reset(id, token), 400, "INVALID_TOKEN");
      await request(id, next);
      expect((await reset(id, world.lastMail("reset").token)).status).toBe(200);
      expect((await world.signIn(id, next, newPassword)).status).toBe(200);
    });

    it("does not count while the user is deactivated", async () => {
      const { id, email, change } = await start("signed up");
      await request(id, email);
      const { token } = world.lastMail("reset");
      await change("active", false);
      expectRefused(await reset(id, token), 403, "USER_DEACTIVATED");
      const sent = world.mails.length;
      expect((await request(id, email)).status).toBe(200);
      expect(world.mails).toHaveLength(sent);
      await change("active", true);
      // Who is back may use the link, if the refused attempt has not used it up.
      const isLeft = REFUSED_RESET_KEEPS_TOKEN;
      expect((await reset(id, token)).status).toBe(isLeft ? 200 : 400);
      const password = isLeft ? newPassword : PASSWORD;
      expect((await world.signIn(id, email, password)).status).toBe(200);
      await request(id, email);
      expect((await reset(id, world.lastMail("reset").token)).status).toBe(200);
    });
  });

  it.each(["a link", "a code"])(
    "does not delete a password when %s of a deactivated user is used",
    async (what) => {
      const { id, directory } = await newTenant();
      await world.signUp(id, ADA);
      const { data } = await directory.add("ada");
      const open = async () => {
        if (what === "a link") {
          await world.at(id).post("/sign-in/magic-link", { email: ADA });
          return world.at("platform").get(world.lastMail("link").url);
        }
        const asked = { email: ADA, type: "sign-in" };
        await world.at(id).post("/email-otp/send-verification-otp", asked);
        return world
          .at(id)
          .post("/sign-in/email-otp", { email: ADA, otp: world.lastMail("otp").code });
      };
      await directory.patch(`Users/${data.id}`, "active", false);
      const refused = await open();
      if (what === "a code") expectRefused(refused, 403, "USER_DEACTIVATED");
      else expect(refused.location).toBe("/?error=USER_DEACTIVATED");
      await directory.patch(`Users/${data.id}`, "active", true);
      expect((await world.signIn(id, ADA)).status).toBe(200);
      // Control: that is what it does, as better-auth wants it, for whoever has not proven an address.
      await open();
      expect((await world.signIn(id, ADA)).status).toBe(401);
    },
  );
});

it("a social sign-in of a user that the directory has deactivated links nothing and writes nothing", async () => {
  const idp = await startIdentityProvider();
  idp.registerClient("client", "secret");
  idp.addPerson("ada", { email: ADA });
  const client = { clientId: "client", clientSecret: "secret", issuer: idp.issuer };
  const world = await createSCIMWorld({
    scim: { identity },
    auth: { socialProviders: { gitlab: { ...client, overrideUserInfoOnSignIn: true } } },
  });
  const directory = await world.connect("acme");
  const { data } = await directory.add("ada");
  const { internalAdapter } = world.context;
  const [user] = await world.rowsIn("acme", "user");
  const verified = { emailVerified: true };
  await runInTenant(world.ids.acme, () => internalAdapter.updateUser(`${user?.id}`, verified));
  const signIn = async () => {
    const browser = world.at("acme");
    const body = { provider: "gitlab", callbackURL: "/in", errorCallbackURL: "/failed" };
    const started = await browser.post<{ url: string }>("/sign-in/social", body);
    const { location } = await browser.get(await idp.authorize(started.data.url, "ada"));
    return location?.split("&")[0];
  };
  // Nothing is linked the first time; the second time there is an account, and another profile.
  for (const name of ["Ada", "Ada L."]) {
    idp.addPerson("ada", { email: ADA, name });
    await directory.patch(`Users/${data.id}`, "active", false);
    const stored = () => Promise.all(["user", "account"].map((it) => world.rowsIn("acme", it)));
    const before = await stored();
    expect(await signIn()).toBe("/failed?error=USER_DEACTIVATED");
    expect(await stored()).toEqual(before);
    await directory.patch(`Users/${data.id}`, "active", true);
    expect(await signIn()).toBe("/in");
    expect((await world.rowsIn("acme", "user"))[0]).toMatchObject({ name });
  }
});

/** The one of the docs. */
const projection: SCIMOptions["projection"] = {
  roles: {
    map: ({ source }) => (source.displayName === "Admins" ? ["admin"] : []),
    exists: () => true,
  },
  reconcileUser: async ({ userId, grants }, { database }) => {
    await database.update({
      model: "user",
      where: [{ field: "id", value: userId }],
      update: { role: grants.map(({ role }) => role).join(",") || "user" },
    });
  },
};

describe.each(databases)("a directory whose groups are roles, on %s", (database) => {
  const world = shareSCIMWorld(
    {
      scim: { identity, projection },
      tenant: { scopedModels: SCIM_MODELS, tenantRoles: { admin: ["tenant:get"] } },
    },
    database,
  );
  // threat: an administrator who has left the company stays signed in.
  it.each<[how: string, signIn: number, run: (one: Directory, two: Directory) => Promise<number>]>([
    [
      "by the only directory",
      403,
      async (one) => {
        const { data } = await one.add("ada");
        await one.addGroup("Admins", data.id);
        return (await one.patch(`Users/${data.id}`, "active", false)).status;
      },
    ],
    ["from the start", 403, async (one) => (await one.add("ada", { active: false })).status],
    [
      "by one of two, and is no administrator in the other",
      200,
      async (one, two) => {
        const { data } = await one.add("ada");
        await one.addGroup("Admins", data.id);
        await two.add("ada");
        return (await one.patch(`Users/${data.id}`, "active", false)).status;
      },
    ],
  ])("the last administrator is deactivated %s", async (how, signIn, run) => {
    const { id } = await world.createTenant();
    const ada = await world.signUp(id, ADA);
    await world.setRole(ada.id, how === "from the start" ? "admin" : "user");
    expect([200, 201]).toContain(await run(await world.connect(id), await world.connect(id)));
    expect((await world.rowsIn(id, "user")).map(({ role }) => role)).toEqual(["user"]);
    expect((await world.signIn(id, ADA)).status).toBe(signIn);
    if (signIn === 403) expect(await world.whoIs(ada)).toBe(null);
  });

  it("the last administrator leaves no group for another, nor goes with the directory's deletion", async () => {
    const { id } = await world.createTenant();
    const [one, two] = [await world.connect(id), await world.connect(id)];
    const { data } = await one.add("ada");
    const group = await one.addGroup("Admins", data.id);
    await two.add("ada");
    expect((await one.patch(`Groups/${group.data.id}`, "members", [])).status).toBe(409);
    expect((await one.delete(`Users/${data.id}`)).status).toBe(409);
    expect((await world.rowsIn(id, "user")).map(({ role }) => role)).toEqual(["admin"]);
  });
});

const losesIndex = STORAGE_KINDS.find(({ forgets }) => forgets);

const ODD_PLACES: [string, () => WorldOptions["auth"]][] = [
  ["in a cookie", () => ({ session: { cookieCache: { enabled: true } } })],
  ["that is missing from the index", () => ({ secondaryStorage: createStorage(losesIndex) })],
];

it.each(ODD_PLACES.flatMap(([place, auth]) => LEAVING.map((how) => [place, how, auth] as const)))(
  "a session %s ends when the directory %s its user",
  async (_, how, auth) => {
    const world = await createSCIMWorld({ auth: auth() ?? {}, scim: { identity } });
    const directory = await world.connect("acme");
    const [ada, bob] = [await world.join("acme", "admin", ADA), await world.as("bob", "acme")];
    const { data } = await directory.add("ada");
    expect(await world.whoIs(ada)).toMatchObject({ tenantId: world.ids.acme });
    const [kept, asBob] = [ada.fork(), ada.fork()];
    expect((await asBob.post("/admin/impersonate-user", { userId: bob.id })).status).toBe(200);
    expect(await world.whoIs(asBob)).toMatchObject({ id: bob.id });
    await letGo(directory, data.id, how);
    expect(await world.whoIs(ada)).toBe(null);
    expect(await world.whoIs(asBob)).toBe(null);
    expect((await kept.get("/list-sessions")).status).toBe(401);
    expect(await world.whoIs(bob)).toMatchObject({ tenantId: world.ids.acme });
  },
);

it("a session in a cookie does not come back when the directory activates its user again", async () => {
  const auth = { session: { cookieCache: { enabled: true } } };
  const world = await createSCIMWorld({ auth, scim: { identity } });
  const directory = await world.connect("acme");
  const ada = await world.signUp("acme", ADA);
  const { data } = await directory.add("ada");
  expect(await world.whoIs(ada)).toMatchObject({ id: ada.id });
  const kept = ada.fork();
  for (const active of [false, true]) await directory.patch(`Users/${data.id}`, "active", active);
  expect(await world.whoIs(kept)).toBe(null);
  expect((await world.signIn("acme", ADA)).status).toBe(200);
});

it("R10: sessions in cookies end for good with a suspended tenant that has a directory", async () => {
  const world = await createSCIMWorld({ auth: { session: { cookieCache: { enabled: true } } } });
  await world.connect("acme");
  const jane = await world.as("jane", "acme");
  const other = await world.as("jane", "globex");
  expect(await world.whoIs(jane)).toMatchObject({ id: jane.id });
  await world.change("acme", { status: "suspended" });
  expect(await world.whoIs(jane.fork())).toBe(null);
  await world.change("acme", { status: "active" });
  expect(await world.whoIs(jane)).toBe(null);
  expect(await world.whoIs(other)).toMatchObject({ id: other.id });
});

it("impersonation ends ten seconds after an administrator has removed the operator", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: new Date() });
  onTestFinished(() => void vi.useRealTimers());
  const auth = { session: { cookieCache: { enabled: true } } };
  const world = await createSCIMWorld({ auth });
  const [ada, bob] = [await world.join("acme", "admin", ADA), await world.as("bob", "acme")];
  await ada.post("/admin/impersonate-user", { userId: bob.id });
  expect(await world.whoIs(ada)).toMatchObject({ id: bob.id });
  const admin = await world.as("admin", "acme");
  expect((await admin.post("/admin/remove-user", { userId: ada.id })).status).toBe(200);
  vi.setSystemTime(Date.now() + 10_001);
  expect(await world.whoIs(ada)).toBe(null);
  expect(await world.whoIs(bob)).toMatchObject({ id: bob.id });
});

it("what a transaction sees of the directory admits no user after it is rolled back", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: new Date() });
  onTestFinished(() => void vi.useRealTimers());
  const auth = { session: { cookieCache: { enabled: true } } };
  const world = await createSCIMWorld({ auth, scim: { identity } });
  const directory = await world.connect("acme");
  const ada = await world.as("ada", "acme");
  await directory.add("ada");
  expect(await world.whoIs(ada)).toMatchObject({ tenantId: world.ids.acme });
  const headers = new Headers({ cookie: ada.cookieHeader() });
  const { adapter } = world.context;
  const where = [{ field: "userId", value: ada.id }];
  // In the table alone: the directory itself would end the session for good.
  await runInTenant(world.ids.acme, () =>
    adapter.update({ model: "scimUser", where, update: { active: false } }),
  );
  vi.setSystemTime(Date.now() + 10_001);
  const undone = runWithTransaction(adapter, async () => {
    await runInTenant(world.ids.acme, async () => {
      const inside = await getCurrentAdapter(adapter);
      await inside.update({ model: "scimUser", where, update: { active: true } });
    });
    expect(await world.api.getSession({ headers })).toMatchObject({ user: { id: ada.id } });
    throw new Error("undone");
  });
  await expect(undone).rejects.toThrow("undone");
  expect(await world.whoIs(ada)).toBe(null);
});

it("a user who signs in while being deactivated has no session, also if it is stored last", async () => {
  const { storage } = mapStorage();
  let meanwhile: (() => Promise<unknown>) | undefined;
  let whose = ADA;
  const secondaryStorage = {
    ...storage,
    set: async (key: string, value: string, ttl?: number) => {
      const run = value.includes(whose) ? meanwhile : undefined;
      if (run) meanwhile = undefined;
      await run?.();
      await storage.set(key, value, ttl);
    },
  };
  const world = await createSCIMWorld({ auth: { secondaryStorage }, scim: { identity } });
  const directory = await world.connect("acme");
  const [ada, bob] = [await world.as("ada", "acme"), await world.as("bob", "acme")];
  const { data } = await directory.add("ada");
  const setActive = (active: boolean) => directory.patch(`Users/${data.id}`, "active", active);

  meanwhile = () => setActive(false);
  const late = await world.signIn("acme", ADA);
  expect(meanwhile).toBeUndefined();
  expect(await world.whoIs(late.person)).toBe(null);
  expect((await late.person.post("/update-user", { name: "Here" })).status).toBe(401);

  expect((await setActive(true)).status).toBe(200);
  await world.setRole(ada.id, "admin");
  const { person } = await world.signIn("acme", ADA);
  expect(await world.whoIs(person)).toMatchObject({ tenantId: world.ids.acme });

  // Nor is a session one in which they act as somebody else.
  whose = "bob@example.com";
  meanwhile = () => setActive(false);
  await person.post("/admin/impersonate-user", { userId: bob.id });
  expect(meanwhile).toBeUndefined();
  expect(await world.whoIs(person)).toBe(null);
});

it("without roles of tenants no user is the last administrator: the directory deletes any user", async () => {
  const world = await createSCIMWorld();
  const directory = await world.connect("acme");
  const { data } = await directory.add("ada");
  const [ada] = await world.rowsIn("acme", "user");
  await world.setRole(String(ada?.id), "admin");
  expect((await directory.delete(`Users/${data.id}`)).status).toBe(204);
  expect(await world.emails("acme")).toEqual([]);
});
