import { type ApiKeyConfigurationOptions, apiKey } from "@better-auth/api-key";
import { organization } from "better-auth/plugins";
import { expect, it } from "vitest";
import { createInstance, type InstanceOptions } from "../../support/instance";
import { mapStorage } from "../../support/stores";

type Keys = ApiKeyConfigurationOptions;

const storage = "secondary-storage";
const tenant = { scopedModels: ["apikey"] };
const start = (options: InstanceOptions) => createInstance({ migrate: false, tenant, ...options });

it.each<[string, Keys | Keys[]]>([
  ["the database", {}],
  ["a secondary storage", { storage }],
  ["a secondary storage before the database", { storage, fallbackToDatabase: true }],
  ["the database, past a custom storage", { customStorage: mapStorage().storage }],
  ["two places", [{ configId: "default" }, { configId: "fast", storage }]],
])("R11: keys in %s are confined", async (_, keys) => {
  const auth = { secondaryStorage: mapStorage().storage };
  await expect(start({ auth, plugins: [apiKey(keys)] })).resolves.toBeDefined();
});

// threat: a key that isolation never sees is valid in every tenant, and outlives its own.
it.each<[string, (keys: Keys) => Keys | Keys[]]>([
  ["a custom storage", (keys) => keys],
  ["one before the database", (keys) => ({ ...keys, fallbackToDatabase: true })],
  [
    "one of the last of several configurations",
    (keys) => [
      { configId: "default" },
      { configId: "fast", storage },
      { ...keys, configId: "own" },
    ],
  ],
])("R11: keys in %s are refused at start, and the storage is not touched", async (_, configure) => {
  const asked: string[] = [];
  const get = async (key: string) => void asked.push(key);
  const customStorage = { ...mapStorage().storage, get };
  const plugins = [apiKey(configure({ storage, customStorage }))];
  const auth = { secondaryStorage: mapStorage().storage };
  for (const arrange of [
    (ours, others) => [ours, ...others],
    (ours, others) => [...others, ours],
  ] satisfies InstanceOptions["arrange"][]) {
    const message = /^tenantAuth\(\): the customStorage of api-key.*\n.*\n {2}secondaryStorage: /;
    await expect(start({ auth, plugins, arrange })).rejects.toThrow(message);
  }
  expect(asked).toEqual([]);
});

it("R11: keys in a storage that cannot be read are refused at start", async () => {
  const { listApiKeys: _, ...endpoints } = apiKey().endpoints;
  const hidden = { ...apiKey(), endpoints };
  await expect(start({ plugins: [hidden] })).rejects.toThrow(/^tenantAuth\(\): it cannot be seen/);
});

it("R11: keys that could not be deleted with their tenant are not shared", async () => {
  const auth = { advanced: { database: { generateId: false as const } } };
  const tenant = { sharedModels: ["apikey"] };
  const message = /"apikey"\] cannot be shared.*\n.*\n {2}scopedModels: .*"apikey"/;
  const stored = {
    plugins: [apiKey({ storage })],
    auth: { secondaryStorage: mapStorage().storage },
  };
  await expect(start({ ...stored, tenant })).rejects.toThrow(message);
  const scopedModels = ["organization", "member", "invitation"];
  const both = { plugins: [apiKey(), organization()], tenant: { ...tenant, scopedModels } };
  await expect(start({ ...both, auth })).rejects.toThrow(message);
  await expect(start(both)).resolves.toBeDefined();
});
