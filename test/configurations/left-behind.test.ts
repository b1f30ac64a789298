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
import { describe, expect, it } from "vitest";
import { createPlaces, type Place } from "../plugins/places";
import type { Browser } from "../support/browser";
import { createDatabase } from "../support/database";
import { PASSWORD } from "../support/instance";
import { createMemory, type Row } from "./memory";
import { createStorage } from "./storages";

const SCOPED = [
  "organization",
  "member",
  "invitation",
  "team",
  "teamMember",
  "passkey",
  "apikey",
  "deviceCode",
  "walletAddress",
];

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

/** Where rows can be left: with foreign keys, and without them. */
const DATABASES = [
  [
    "the memory adapter",
    async () => {
      const { tables, database } = createMemory();
      return { database, migrate: false, rows: async (model: string) => tables[model] ?? [] };
    },
  ],
  [
    "SQLite",
    async () => {
      const database = await createDatabase("sqlite");
      const rows = async (model: string): Promise<Row[]> =>
        database.query(`select * from ${database.quote(model)}`);
      return { database, migrate: true, rows };
    },
  ],
] as const;

/** Models of which every place has rows of its own here. */
const MODELS = [
  "user",
  "session",
  "account",
  "verification",
  "twoFactor",
  "organization",
  "member",
  "invitation",
  "team",
  "teamMember",
  "apikey",
  "deviceCode",
  "walletAddress",
];

/** Does something with every plugin that keeps rows. */
async function fillUp(browser: Browser, place: Place) {
  const steps: [path: string, body: object][] = [
    ["/organization/create", { name: place, slug: place }],
    ["/organization/invite-member", { email: `invited@example.com`, role: "member" }],
    ["/organization/create-team", { name: `Team ${place}` }],
    ["/api-key/create", { name: "Robot" }],
    ["/device/code", { client_id: "tv" }],
    ["/email-otp/send-verification-otp", { email: "user@example.com", type: "sign-in" }],
    ["/two-factor/enable", { password: PASSWORD }],
  ];
  for (const [path, body] of steps) {
    const { status, data } = await browser.post(path, body);
    expect(status, `${path}: ${JSON.stringify(data)}`).toBe(200);
  }
}

const WALLET = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";

/** A wallet signs somebody in: one more user, of the same wallet at every place. */
async function signInByWallet(browser: Browser) {
  const { nonce } = (await browser.post<{ nonce: string }>("/siwe/nonce")).data;
  const message = [
    `localhost:3000 wants you to sign in with your Ethereum account:\n${WALLET}\n`,
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

describe.each(DATABASES)("R10: deletion of a tenant on %s", (_, open) => {
  async function createFull() {
    const { rows, ...options } = await open();
    const places = await createPlaces(plugins(), {
      ...options,
      tenant: { scopedModels: SCOPED },
    });
    const users: Partial<Record<Place, string>> = {};
    for (const place of ["a", "b", "platform"] as const) {
      const person = await places.signUp(place, "user@example.com");
      users[place] = person.user.id;
      await fillUp(person.browser, place);
      await signInByWallet(places.at(place));
    }
    return { ...places, stored: rows, users };
  }

  it("leaves no row of its people in any model, and all of the others'", async () => {
    const { instance, ids, stored, users } = await createFull();
    const count = async () => {
      const counts: Record<string, number> = {};
      for (const model of MODELS) counts[model] = (await stored(model)).length;
      return counts;
    };
    const before = await count();
    // Each place has as many as the others.
    for (const [model, n] of Object.entries(before))
      expect([model, n % 3, n > 0]).toEqual([model, 0, true]);
    await instance.api.deleteTenant({ body: { tenantId: ids.a ?? "" } });
    const expected = Object.fromEntries(
      Object.entries(before).map(([model, n]) => [model, (n / 3) * 2]),
    );
    expect(await count()).toEqual(expected);
    for (const model of MODELS) {
      const text = JSON.stringify(await stored(model));
      expect(text.includes(users.a ?? ""), model).toBe(false);
    }
  });

  it("leaves nothing of its people in secondary storage", async () => {
    const { rows: _rows, ...options } = await open();
    const entries = new Map<string, string>();
    const { instance, ids, signUp } = await createPlaces(
      [apiKey({ storage: "secondary-storage" }), emailOTP({ sendVerificationOTP: async () => {} })],
      {
        ...options,
        tenant: { scopedModels: ["apikey"] },
        auth: { secondaryStorage: createStorage({}, entries) },
      },
    );
    const doomed = await signUp("a", "doomed@example.com");
    const other = await signUp("b", "other@example.com");
    for (const { browser } of [doomed, other]) await browser.post("/api-key/create", {});
    await instance.api.deleteTenant({ body: { tenantId: ids.a ?? "" } });
    const mentions = (text: string) =>
      [...entries].filter((entry) => entry.some((part) => part.includes(text))).length;
    expect(mentions(other.user.id)).toBeGreaterThan(2);
    expect(mentions(doomed.token)).toBe(0);
    expect(mentions(doomed.user.id)).toBe(0);
  });

  it("leaves no member of it in organizations that all tenants share", async () => {
    const { rows, ...options } = await open();
    const models = ["organization", "member", "invitation"];
    const tenant = { scopedModels: [], sharedModels: models };
    const { instance, ids, signUp } = await createPlaces([organization()], { ...options, tenant });
    const doomed = await signUp("a", "doomed@example.com");
    const other = await signUp("b", "other@example.com");
    for (const [slug, { browser }] of Object.entries({ doomed, other })) {
      const made = await browser.post("/organization/create", { name: slug, slug });
      expect(made.status).toBe(200);
    }
    await instance.api.deleteTenant({ body: { tenantId: ids.a ?? "" } });
    const left = (await rows("member")).map(({ userId }) => userId);
    expect(left).toEqual([other.user.id]);
  });
});
