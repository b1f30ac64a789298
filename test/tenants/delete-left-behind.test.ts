import { apiKey } from "@better-auth/api-key";
import { passkey } from "@better-auth/passkey";
import {
  deviceAuthorization,
  emailOTP,
  jwt,
  organization,
  siwe,
  twoFactor,
} from "better-auth/plugins";
import { describe, expect, it, onTestFinished } from "vitest";
import { createDatabase } from "../support/database";
import { PASSWORD } from "../support/instance";
import { createMemory, mapStorage, type Row } from "../support/stores";
import { createWorld, type Person, PLACES, type World } from "../support/world";

/** Models of which every place has rows of its own here, and which of them the plugins bring. */
const BROUGHT = [
  "organization",
  "member",
  "invitation",
  "team",
  "teamMember",
  "apikey",
  "deviceCode",
  "walletAddress",
];
const MODELS = ["user", "session", "account", "verification", "twoFactor", ...BROUGHT];

let nonces = 0;

const plugins = () => [
  organization({ teams: { enabled: true } }),
  twoFactor(),
  passkey(),
  apiKey(),
  deviceAuthorization(),
  siwe({
    domain: "localhost:3000",
    getNonce: async () => `nonce000${++nonces}`,
    verifyMessage: async () => true,
  }),
  emailOTP({ sendVerificationOTP: async () => {} }),
  jwt(),
];

/** Where rows can be left: without foreign keys, and with them. */
const DATABASES = {
  "the memory adapter": async () => {
    const { tables, database } = createMemory();
    return { database, migrate: false, read: async (model: string) => tables[model] ?? [] };
  },
  SQLite: async () => {
    const database = await createDatabase("sqlite");
    onTestFinished(() => database.close());
    const read = async (model: string): Promise<Row[]> =>
      database.query(`select * from ${database.quote(model)}`);
    return { database, migrate: true, read };
  },
};

/** Does something with every plugin that keeps rows. */
async function fillUp(person: Person) {
  const steps: [path: string, body: object][] = [
    ["/organization/create", { name: "Org", slug: person.id }],
    ["/organization/invite-member", { email: "invited@example.com", role: "member" }],
    ["/organization/create-team", { name: "Team" }],
    ["/api-key/create", { name: "Robot" }],
    ["/device/code", { client_id: "tv" }],
    ["/email-otp/send-verification-otp", { email: person.email, type: "sign-in" }],
    ["/two-factor/enable", { password: PASSWORD }],
  ];
  for (const [path, body] of steps) {
    const { status, data } = await person.post(path, body);
    expect(status, `${path}: ${JSON.stringify(data)}`).toBe(200);
  }
}

/** A wallet signs somebody in: one more user, of the same wallet at every place. */
async function signInByWallet({ at }: World, place: (typeof PLACES)[number]) {
  const browser = at(place);
  const { nonce } = (await browser.post<{ nonce: string }>("/siwe/nonce")).data;
  const message = [
    "localhost:3000 wants you to sign in with your Ethereum account:",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed\n",
    "Sign in\n",
    "URI: http://localhost:3000",
    "Version: 1",
    "Chain ID: 1",
    `Nonce: ${nonce}`,
    "Issued At: 2026-01-01T00:00:00.000Z",
  ].join("\n");
  const { status, data } = await browser.post("/siwe/verify", { message, signature: "good" });
  expect(status, JSON.stringify(data)).toBe(200);
}

const deleteAcme = ({ api, ids }: World) => api.deleteTenant({ body: { tenantId: ids.acme } });

describe.each(Object.entries(DATABASES))("R10: deletion of a tenant on %s", (_, open) => {
  it("leaves no row of its people in any model, and all of the others'", async () => {
    const { read, ...options } = await open();
    const scopedModels = [...BROUGHT, "passkey"];
    const world = await createWorld({ ...options, plugins: plugins(), tenant: { scopedModels } });
    for (const place of PLACES) {
      await fillUp(await world.as("jane", place));
      await signInByWallet(world, place);
    }
    const count = async () => {
      const counts: Record<string, number> = {};
      for (const model of MODELS) counts[model] = (await read(model)).length;
      return counts;
    };
    const before = await count();
    const { id } = await world.as("jane", "acme");
    await deleteAcme(world);
    const after = await count();
    for (const [model, n = 0] of Object.entries(before)) {
      // Each place had as many as the others.
      expect([model, n > 0, after[model]]).toEqual([model, true, (n / 3) * 2]);
      expect(JSON.stringify(await read(model)).includes(id), model).toBe(false);
    }
  });

  it("leaves nothing of its people in secondary storage", async () => {
    const { read: _, ...options } = await open();
    const { entries, storage } = mapStorage();
    const world = await createWorld({
      ...options,
      plugins: [apiKey({ storage: "secondary-storage" })],
      tenant: { scopedModels: ["apikey"] },
      auth: { secondaryStorage: storage },
    });
    const { acme, globex } = await world.janes();
    for (const jane of [acme, globex]) await jane.post("/api-key/create", {});
    await deleteAcme(world);
    const mentions = (text: string) =>
      [...entries].filter((entry) => entry.some((part) => part.includes(text))).length;
    expect(mentions(globex.id)).toBeGreaterThan(2);
    expect([mentions(acme.token), mentions(acme.id)]).toEqual([0, 0]);
  });

  it("leaves no member of it in organizations that all tenants share", async () => {
    const { read, ...options } = await open();
    const sharedModels = ["organization", "member", "invitation"];
    const tenant = { scopedModels: [], sharedModels };
    const world = await createWorld({ ...options, plugins: [organization()], tenant });
    const { acme, globex } = await world.janes();
    for (const [slug, jane] of Object.entries({ acme, globex })) {
      const made = await jane.post("/organization/create", { name: slug, slug });
      expect(made.status).toBe(200);
    }
    await deleteAcme(world);
    expect((await read("member")).map(({ userId }) => userId)).toEqual([globex.id]);
  });
});
