import { type ApiKeyConfigurationOptions, apiKey } from "@better-auth/api-key";
import { organization } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { runInTenant } from "../../../src/index";
import { countingIds, databases } from "../../support/database";
import { mapStorage } from "../../support/stores";
import { createSCIMWorld, identity, SCIM_MODELS } from "./world";

interface KeyApi {
  createApiKey(input: { body: object }): Promise<{ key: string }>;
  createOrganization(input: { body: object }): Promise<{ id: string }>;
  verifyApiKey(input: { body: object }): Promise<{ valid: boolean }>;
}

const ORGANIZATIONS = ["organization", "member", "invitation"];
const storage = "secondary-storage";

describe.each(databases)("API keys of users of a directory, on %s", (database) => {
  // Of numbers: a user and an organization have the same.
  it.each<[where: string, keys: ApiKeyConfigurationOptions]>([
    ["in the database", {}],
    ["in a storage", { storage }],
    ["in both", { storage, fallbackToDatabase: true }],
  ])("deletes the keys of whom it deletes, and of nobody else: %s", async (_, keys) => {
    const { storage: secondaryStorage } = mapStorage();
    const generateId = database === "sqlite" ? countingIds() : ("serial" as const);
    const advanced = { database: { generateId, defaultFindManyLimit: 2 } };
    const world = await createSCIMWorld({
      database,
      auth: { secondaryStorage, advanced },
      plugins: [
        organization(),
        apiKey([
          { ...keys, configId: "default" },
          { ...keys, configId: "ours", references: "organization" },
        ]),
      ],
      tenant: { scopedModels: [...SCIM_MODELS, ...ORGANIZATIONS, "apikey"] },
    });
    const api = world.api as unknown as KeyApi;
    const inAcme = <T>(run: () => Promise<T>) => runInTenant(world.ids.acme ?? "", run);
    const directory = await world.connect("acme");
    const { id: userId } = await world.as("bob", "acme");
    const { data } = await directory.add("ada");
    const ada = (await world.rowsIn("acme", "user")).find(({ id }) => String(id) !== userId);
    const adaId = String(ada?.id);

    const newKey = (body: object) => inAcme(async () => (await api.createApiKey({ body })).key);
    const hers = [];
    for (let n = 0; n < 3; n++) hers.push(await newKey({ userId: adaId }));
    let organizationId = "";
    for (let n = 0; organizationId !== adaId; n++) {
      const body = { name: "Ours", slug: `ours-${n}`, userId };
      organizationId = String((await inAcme(() => api.createOrganization({ body }))).id);
    }
    const others = [
      await newKey({ userId }),
      await newKey({ userId, organizationId, configId: "ours" }),
    ];
    const isValid = async (key: string) => (await api.verifyApiKey({ body: { key } })).valid;
    const verify = (all: string[]) => Promise.all(all.map((key) => inAcme(() => isValid(key))));

    expect(await verify([...hers, ...others])).toEqual([true, true, true, true, true]);
    expect((await directory.delete(`Users/${data.id}`)).status).toBe(204);
    expect(await verify([...hers, ...others])).toEqual([false, false, false, true, true]);
  });

  it("deletes those as well that a storage has lost", async () => {
    const { storage: secondaryStorage, entries } = mapStorage();
    const world = await createSCIMWorld({
      database,
      auth: { secondaryStorage },
      plugins: [apiKey({ storage, fallbackToDatabase: true })],
      tenant: { scopedModels: [...SCIM_MODELS, "apikey"] },
      scim: { identity },
    });
    const ada = await world.signUp("acme", "ada@example.com");
    const directory = await world.connect("acme");
    const { data } = await directory.add("ada");
    for (const name of ["one", "two"]) await ada.post("/api-key/create", { name });
    await ada.get("/api-key/list");
    const lost = [...entries.keys()].find((key) => key.includes("by-id:"));
    expect(lost && entries.delete(lost)).toBe(true);
    expect((await directory.delete(`Users/${data.id}`)).status).toBe(204);
    expect(await world.rowsIn("acme", "apikey")).toEqual([]);
    expect([...entries.keys()].filter((key) => key.includes("api-key:"))).toEqual([]);
  });

  // threat: a key that tenants share has no tenant, and outlives the job of its owner.
  it("a shared key is none while its owner is deactivated, wherever it is verified", async () => {
    const world = await createSCIMWorld({
      database,
      plugins: [apiKey()],
      tenant: { scopedModels: SCIM_MODELS, sharedModels: ["apikey"] },
    });
    const api = world.api as unknown as KeyApi;
    const directory = await world.connect("acme");
    const bob = await world.as("bob", "acme");
    const { data } = await directory.add("ada");
    const ada = (await world.rowsIn("acme", "user")).find(({ id }) => id !== bob.id);
    const places = [world.ids.acme ?? "", world.ids.globex ?? ""];
    const verify = async (key: string) => {
      const ask = () => api.verifyApiKey({ body: { key } });
      const asked = [ask(), ...places.map((id) => runInTenant(id, ask))];
      return new Set((await Promise.all(asked)).map(({ valid }) => valid));
    };
    const { key } = await api.createApiKey({ body: { userId: ada?.id } });
    const bobs = await api.createApiKey({ body: { userId: bob.id } });
    for (const active of [true, false, true]) {
      await directory.patch(`Users/${data.id}`, "active", active);
      expect(await verify(key)).toEqual(new Set([active]));
    }
    expect(await verify(bobs.key)).toEqual(new Set([true]));
  });
});
