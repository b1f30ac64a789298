import { apiKey } from "@better-auth/api-key";
import type { SCIMOptions } from "@better-auth/scim";
import { magicLink } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { runInTenant } from "../../src/index";
import { mapStorage } from "../sessions/stores";
import { type InstanceOptions, PASSWORD } from "../support/instance";
import {
  createSCIMWorld,
  group,
  patch,
  person,
  SCIM_MODELS,
  type SCIMResource,
  type SCIMWorld,
  setActive,
} from "./scim-world";
import { named, whoIs } from "./sso-world";

const usersOf = async ({ database }: SCIMWorld, tenantId: string) =>
  (
    await database.query(
      `select email from ${database.quote("user")} where ${database.quote("tenantId")} = ? order by email`,
      [tenantId],
    )
  ).map(({ email }) => email);

type ResolveUser = NonNullable<NonNullable<SCIMOptions["identity"]>["resolveUser"]>;

const linkByAddress: ResolveUser = async ({ resource }, { database }) => {
  const where = [{ field: "email", value: resource.primaryEmail }];
  const user = await database.findOne<{ id: string }>({ model: "user", where });
  return user ? { action: "link", userId: user.id, profile: "preserve" } : { action: "create" };
};

const ADA = "ada@corp.example";

interface KeyVerifier {
  verifyApiKey(input: { body: { key: string } }): Promise<{ valid: boolean }>;
}

describe("a directory of a tenant", () => {
  it("creates, reads, filters, changes and deletes people of that tenant", async () => {
    const world = await createSCIMWorld();
    const ids = new Map<string, string>();
    for (const { id, slug, directory } of [world.acme, world.globex]) {
      for (const name of ["ada", "bob"]) {
        const made = await directory.post<SCIMResource>("/scim/v2/Users", person(name));
        expect(made.status, JSON.stringify(made.data)).toBe(201);
        ids.set(`${slug}/${name}`, made.data.id);
      }
      expect(await usersOf(world, id)).toEqual(["ada@corp.example", "bob@corp.example"]);
    }
    expect(new Set(ids.values()).size).toBe(4);
    for (const { slug, directory } of [world.acme, world.globex]) {
      const ada = ids.get(`${slug}/ada`) ?? "";
      const list = await directory.get<SCIMResource>("/scim/v2/Users");
      expect(list.data.totalResults).toBe(2);
      const filter = 'userName eq "ada@corp.example"';
      const found = await directory.get<SCIMResource>("/scim/v2/Users", { query: { filter } });
      expect(found.data.Resources.map(({ id }) => id)).toEqual([ada]);
      const path = `/scim/v2/Users/${ada}`;
      const body = patch({ op: "replace", path: "displayName", value: `Ada of ${slug}` });
      expect((await directory.send(path, { method: "PATCH", body })).status).toBe(200);
      const read = await directory.get<SCIMResource>(path);
      expect(read.data.displayName).toBe(`Ada of ${slug}`);
    }
    const { directory } = world.acme;
    const gone = await directory.send(`/scim/v2/Users/${ids.get("acme/ada")}`, {
      method: "DELETE",
    });
    expect(gone.status).toBe(204);
    expect(await usersOf(world, world.acme.id)).toEqual(["bob@corp.example"]);
    expect(await usersOf(world, world.globex.id)).toEqual(["ada@corp.example", "bob@corp.example"]);
    // Somebody who comes back is somebody new.
    const again = await directory.post<SCIMResource>("/scim/v2/Users", person("ada"));
    expect(again.status).toBe(201);
  });

  it("reaches nothing of another tenant, by whichever id", async () => {
    const world = await createSCIMWorld();
    const { directory } = world.globex;
    const { data: ada } = await world.acme.directory.post<SCIMResource>(
      "/scim/v2/Users",
      person("ada"),
    );
    const { data: staff } = await world.acme.directory.post<SCIMResource>(
      "/scim/v2/Groups",
      group("Staff", ada.id),
    );
    const body = patch({ op: "replace", path: "displayName", value: "Mallory" });
    for (const path of [`/scim/v2/Users/${ada.id}`, `/scim/v2/Groups/${staff.id}`]) {
      expect((await directory.get(path)).status).toBe(404);
      expect((await directory.send(path, { method: "PATCH", body })).status).toBe(404);
      expect((await directory.send(path, { method: "DELETE" })).status).toBe(404);
    }
    const theirs = await directory.post("/scim/v2/Groups", group("Theirs", ada.id));
    expect(theirs.status).toBeGreaterThanOrEqual(400);
    expect((await world.acme.directory.get(`/scim/v2/Users/${ada.id}`)).status).toBe(200);
  });

  it("has a token that is none where another tenant is named, or altered, or after it ends", async () => {
    const world = await createSCIMWorld();
    const { acme, globex } = world;
    const create = (token: string, headers = {}) =>
      world.directory(token).post("/scim/v2/Users", person("ada"), { headers });
    expect((await create(acme.token, named(globex.id))).status).toBe(401);
    expect((await create(`${acme.token}x`)).status).toBe(401);
    const [, secret] = globex.token.split(".");
    expect((await create(`${acme.token.split(".")[0]}.${secret}`)).status).toBe(401);
    expect((await create(acme.token, named(acme.id))).status).toBe(201);
    await world.api.updateTenant({ body: { tenantId: acme.id, status: "suspended" } });
    expect((await create(acme.token)).status).toBe(403);
    await world.api.deleteTenant({ body: { tenantId: acme.id } });
    expect((await create(acme.token)).status).toBe(401);
    expect(await world.rows("user")).toBe(0);
    for (const model of ["scimUser", "scimManagedCredential", "scimConnectionBinding"]) {
      const rest = await world.rows(model, `${world.database.quote("tenantId")} = ?`, [acme.id]);
      expect([model, rest]).toEqual([model, 0]);
    }
  });

  it("whose token the application has written down is the platform's", async () => {
    const token = "a-static-token-of-the-application";
    const credentials = [{ type: "bearer" as const, id: "static", token }];
    const world = await createSCIMWorld({
      scim: { connections: [{ id: "platform", credentials }] },
    });
    const directory = world.directory(token);
    const headers = named(world.acme.id);
    const inside = await directory.post("/scim/v2/Users", person("ada"), { headers });
    expect(inside.status).toBe(401);
    expect((await directory.post("/scim/v2/Users", person("ada"))).status).toBe(201);
    expect(await usersOf(world, "")).toEqual(["ada@corp.example"]);
    expect(await usersOf(world, world.acme.id)).toEqual([]);
  });

  it("makes users whatever the policy says about sign-up", async () => {
    const world = await createSCIMWorld();
    const { directory, id } = await world.furnish("closed", {
      signUp: "closed",
      methods: ["password"],
      emailDomains: ["other.example"],
    });
    const made = await directory.post<SCIMResource>("/scim/v2/Users", person("ada"));
    expect(made.status).toBe(201);
    expect(await usersOf(world, id)).toEqual(["ada@corp.example"]);
    // And changes their address as it likes.
    const emails = [{ value: "ada@third.example", primary: true }];
    const body = patch({ op: "replace", path: "emails", value: emails });
    const path = `/scim/v2/Users/${made.data.id}`;
    expect((await directory.send(path, { method: "PATCH", body })).status).toBe(200);
    expect(await usersOf(world, id)).toEqual(["ada@third.example"]);
  });

  it("does not take the last administrator away, and is told so before anything is deleted", async () => {
    const world = await createSCIMWorld({
      tenant: { scopedModels: SCIM_MODELS, tenantRoles: { admin: ["policy:update"] } },
    });
    const { directory, id } = world.acme;
    const { data } = await directory.post<SCIMResource>("/scim/v2/Users", person("ada"));
    await world.database.query(`update ${world.database.quote("user")} set role = 'admin'`);
    const path = `/scim/v2/Users/${data.id}`;
    for (let tries = 0; tries < 2; tries++) {
      const refused = await directory.send<{ detail: string }>(path, { method: "DELETE" });
      expect([refused.status, refused.data.detail]).toEqual([409, "Last admin"]);
      expect((await directory.get(path)).status).toBe(200);
    }
    const { user } = await world.signUp(id, "another@corp.example");
    await world.database.query(
      `update ${world.database.quote("user")} set role = 'admin' where id = ?`,
      [user.id],
    );
    expect((await directory.send(path, { method: "DELETE" })).status).toBe(204);
    expect(await usersOf(world, id)).toEqual(["another@corp.example"]);
  });
});

describe("somebody whom the directory has deactivated", () => {
  it("has no session any more, and gets none by any way until they are activated", async () => {
    const links: string[] = [];
    const world = await createSCIMWorld({
      plugins: [
        magicLink({ sendMagicLink: ({ url }) => void links.push(url) }),
        apiKey({ enableSessionForAPIKeys: true }),
      ],
      tenant: { scopedModels: [...SCIM_MODELS, "apikey"] },
      scim: {
        identity: {
          // The person has been there before, with a password.
          resolveUser: linkByAddress,
        },
      },
    });
    const { id: tenantId, directory } = world.acme;
    const headers = named(tenantId);
    const ada = await world.signUp(tenantId, "ada@corp.example");
    // A link to an address that is not verified would take the password away.
    const users = world.database.quote("user");
    await world.database.query(`update ${users} set ${world.database.quote("emailVerified")} = 1`);
    const elsewhere = await world.signUp(world.globex.id, "ada@corp.example");
    const key = await ada.browser.post<{ key: string }>("/api-key/create", {});
    const withKey = () =>
      world.browser().get("/get-session", { headers: { ...headers, "x-api-key": key.data.key } });
    expect((await withKey()).data).not.toBeNull();
    const verify = () =>
      runInTenant(tenantId, () =>
        (world.api as unknown as KeyVerifier).verifyApiKey({ body: { key: key.data.key } }),
      );
    expect((await verify()).valid).toBe(true);
    const { data } = await directory.post<SCIMResource>("/scim/v2/Users", person("ada"));
    expect(await whoIs(ada.browser)).toMatchObject({ tenantId });

    const link = () =>
      world.browser().post("/sign-in/magic-link", { email: "ada@corp.example" }, { headers });
    const password = () =>
      world
        .browser()
        .post("/sign-in/email", { email: "ada@corp.example", password: PASSWORD }, { headers });
    expect((await setActive(directory, data.id, false)).status).toBe(200);
    expect(await whoIs(ada.browser)).toBeUndefined();
    const refused = await password();
    expect([refused.status, refused.code]).toEqual([403, "USER_DEACTIVATED"]);
    await link();
    const late = world.browser();
    await late.get(links[0] ?? "");
    expect(await whoIs(late)).toBeUndefined();
    expect((await withKey()).data).not.toHaveProperty("session");
    expect((await verify()).valid).toBe(false);
    // The same address in another tenant is somebody else.
    expect(await whoIs(elsewhere.browser)).toMatchObject({ tenantId: world.globex.id });

    expect((await setActive(directory, data.id, true)).status).toBe(200);
    expect((await password()).status).toBe(200);
    expect((await withKey()).data).not.toBeNull();
  });
});

describe("a session of somebody whom the directory deactivates is over, also", () => {
  const cached = (strategy: "compact" | "jwe") => ({
    auth: { session: { cookieCache: { enabled: true, strategy } } },
  });
  it.each<[string, () => { auth: InstanceOptions["auth"]; lose?: () => void }]>([
    ["in a cookie", () => cached("compact")],
    ["in an encrypted cookie", () => cached("jwe")],
    [
      "where the index of the storage has lost it",
      () => {
        const { storage, entries } = mapStorage();
        const lose = () => {
          for (const key of entries.keys())
            if (key.includes("active-sessions")) entries.delete(key);
        };
        return { auth: { secondaryStorage: storage }, lose };
      },
    ],
  ])("%s", async (_, place) => {
    const { auth, lose } = place();
    const world = await createSCIMWorld({
      ...(auth && { auth }),
      scim: { identity: { resolveUser: linkByAddress } },
    });
    const { id: tenantId, directory } = world.acme;
    const { browser } = await world.signUp(tenantId, ADA);
    const another = await world.signUp(tenantId, "bob@corp.example");
    const { data } = await directory.post<SCIMResource>("/scim/v2/Users", person("ada"));
    expect(await whoIs(browser)).toMatchObject({ tenantId });
    const kept = browser.fork();
    lose?.();
    await setActive(directory, data.id, false);
    expect(await whoIs(browser)).toBeUndefined();
    const headers = named(tenantId);
    expect((await kept.get("/list-sessions", { headers })).status).toBe(401);
    expect(await whoIs(another.browser)).toMatchObject({ tenantId });
  });
});

describe("somebody who signs in while the directory deactivates them", () => {
  it("has no session afterwards, also where it is stored after the others were ended", async () => {
    const { storage, entries } = mapStorage();
    let meanwhile: (() => Promise<unknown>) | undefined;
    const world = await createSCIMWorld({
      auth: {
        secondaryStorage: {
          ...storage,
          set: async (key, value, ttl) => {
            const run = value.includes(ADA) ? meanwhile : undefined;
            if (run) meanwhile = undefined;
            await run?.();
            await storage.set(key, value, ttl);
          },
        },
      },
      scim: { identity: { resolveUser: linkByAddress } },
    });
    const { id: tenantId, directory } = world.acme;
    await world.signUp(tenantId, ADA);
    const { data } = await directory.post<SCIMResource>("/scim/v2/Users", person("ada"));
    const browser = world.browser();
    const signIn = () =>
      browser.post(
        "/sign-in/email",
        { email: ADA, password: PASSWORD },
        { headers: named(tenantId) },
      );

    meanwhile = () => setActive(directory, data.id, false);
    const refused = await signIn();
    expect(meanwhile).toBeUndefined();
    expect([refused.status, refused.code]).toEqual([403, "USER_DEACTIVATED"]);
    expect(await whoIs(browser)).toBeUndefined();
    expect([...entries.values()].filter((value) => value.includes(ADA))).toEqual([]);

    expect((await setActive(directory, data.id, true)).status).toBe(200);
    expect((await signIn()).status).toBe(200);
    expect(await whoIs(browser)).toMatchObject({ tenantId });
  });
});

describe("the groups of a directory", () => {
  it("become roles where the application maps them", async () => {
    const world = await createSCIMWorld({
      scim: {
        projection: {
          roles: {
            map: ({ source }) => (source.displayName === "Admins" ? ["admin"] : []),
            exists: () => true,
          },
          reconcileUser: async ({ userId, grants }, { database }) => {
            const role = grants.map((grant) => grant.role).join(",") || "user";
            const where = [{ field: "id", value: userId }];
            await database.update({ model: "user", where, update: { role } });
          },
        },
      },
    });
    const roles = async (tenantId: string) =>
      (
        await world.database.query(
          `select role from ${world.database.quote("user")} where ${world.database.quote("tenantId")} = ?`,
          [tenantId],
        )
      ).map(({ role }) => role);
    const groups = [];
    for (const { directory } of [world.acme, world.globex]) {
      const ada = await directory.post<SCIMResource>("/scim/v2/Users", person("ada"));
      const made = await directory.post<SCIMResource>("/scim/v2/Groups", group("Admins"));
      expect(made.status, JSON.stringify(made.data)).toBe(201);
      groups.push({ path: `/scim/v2/Groups/${made.data.id}`, member: ada.data.id });
    }
    const [ours] = groups;
    const body = patch({ op: "add", path: "members", value: [{ value: ours?.member }] });
    const added = await world.acme.directory.send(ours?.path ?? "", { method: "PATCH", body });
    expect(added.status, JSON.stringify(added.data)).toBeLessThan(300);
    expect(await roles(world.acme.id)).toEqual(["admin"]);
    expect(await roles(world.globex.id)).toEqual(["user"]);
    const removed = await world.acme.directory.send(ours?.path ?? "", { method: "DELETE" });
    expect(removed.status).toBe(204);
    expect(await roles(world.acme.id)).toEqual(["user"]);
  });
});
