import { apiKey } from "@better-auth/api-key";
import type { BetterAuthOptions } from "better-auth";
import { bearer, emailOTP } from "better-auth/plugins";
import { beforeAll, describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { cleanUpCopies, createInstance, type Instance, secondCopy } from "../support/instance";
import { combine, sample } from "../support/matrix";
import { afterTenSeconds, CACHES, createStorage, STORAGE_KINDS } from "../support/stores";
import { EMAIL, type SessionAnswer, shareWorld, type World } from "../support/world";

cleanUpCopies();

type Options = (entries: Map<string, string>) => Partial<BetterAuthOptions>;

/** Where a session can outlive its tenant. On SQLite a deleted number is given to the next row. */
const STORES: [name: string, options: Options][] = [
  ["the database", () => ({})],
  ...combine(STORAGE_KINDS, [false, true]).map(([kind, inDatabase]): (typeof STORES)[number] => [
    `a storage that ${kind.name}${inDatabase ? ", and the database" : ""}`,
    (entries) => ({
      secondaryStorage: createStorage(kind, entries),
      session: { storeSessionInDatabase: inDatabase },
    }),
  ]),
  ...combine(CACHES, [false, true]).map(
    ([{ name, session = {} }, stored]): (typeof STORES)[number] => [
      `${name}${stored ? " and a storage" : ""}`,
      (entries) => ({
        session,
        ...(stored && { secondaryStorage: createStorage({}, entries) }),
      }),
    ],
  ),
];

/** Two processes with one database and one storage behind them, and numbers for ids. */
function shareProcesses(options: Options) {
  const entries = new Map<string, string>();
  const both = () => ({
    tenant: { scopedModels: ["apikey"] },
    auth: { ...options(entries), advanced: { database: { generateId: "serial" } } } as const,
  });
  const plugins = (sendVerificationOTP: (data: object) => Promise<void>) => [
    bearer(),
    apiKey({ enableSessionForAPIKeys: true }),
    emailOTP({ sendVerificationOTP }),
  ];
  const here = shareWorld({ ...both(), plugins: (send) => plugins(send("code")) });
  const there = {} as Instance;
  beforeAll(async () => {
    // What a process remembers is its own, so the other one has a copy of the package.
    const { tenantAuth } = await secondCopy();
    const { database } = here;
    const more = { database, tenantAuth, migrate: false, plugins: plugins(async () => {}) };
    Object.assign(there, await createInstance({ ...both(), ...more }));
  });
  return { here, there };
}

const deleteTenant = ({ api }: World, tenantId: string) => api.deleteTenant({ body: { tenantId } });

/** A tenant with a new number: the one before may have left its own behind. */
async function createTenant(world: World) {
  await world.createTenant();
  return (await world.createTenant()).id;
}

/** Deletes a tenant, and makes another one, which gets its number. */
async function reuse(world: World, id: string) {
  await deleteTenant(world, id);
  expect((await world.createTenant()).id).toBe(id);
}

const namings = (id: string): Record<string, string>[] => [{}, { "x-tenant-id": id }];

/** Whether somebody is signed in in a process, with their tenant named and without. */
async function lives(process: Pick<Instance, "browser">, { cookies }: Browser, id: string) {
  const answers = [];
  for (const headers of namings(id)) {
    const window = process.browser(headers);
    for (const [name, value] of cookies) window.cookies.set(name, value);
    answers.push((await window.get("/get-session")).data !== null);
    answers.push((await window.post("/update-user", { name: "Here" })).status === 200);
  }
  return answers;
}
const ALIVE = [true, true, true, true];
const DEAD = [false, false, false, false];

describe.each(sample(STORES, 4))("R10: when a tenant is deleted, sessions in %s", (_, options) => {
  const { here, there } = shareProcesses(options);

  it("end at once, and within ten seconds in every other process", async () => {
    const [other, doomed] = [await createTenant(here), await createTenant(here)];
    const [victim, survivor] = [await here.signUp(doomed), await here.signUp(other)];
    // The other process has just seen the tenant.
    for (const process of [here, there]) {
      expect(await lives(process, victim, doomed)).toEqual(ALIVE);
    }
    await deleteTenant(here, doomed);
    expect(await lives(here, victim, doomed)).toEqual(DEAD);
    await afterTenSeconds(async () => {
      expect(await lives(there, victim, doomed)).toEqual(DEAD);
      for (const process of [here, there]) {
        expect(await lives(process, survivor, other)).toEqual(ALIVE);
      }
    });
  });

  it("are no sessions of a new tenant under its number, which can be used", async () => {
    const id = await createTenant(here);
    const old = await here.signUp(id);
    for (const process of [here, there]) expect(await lives(process, old, id)).toEqual(ALIVE);
    await reuse(here, id);
    // Users are numbered as well: this one may get the number of the one before.
    const person = await here.signUp(id);
    expect(await lives(here, old, id)).toEqual(DEAD);
    for (const headers of namings(id)) {
      const byToken = here.browser({ ...headers, authorization: `Bearer ${old.token}` });
      expect((await byToken.get("/get-session")).data).toBe(null);
    }
    expect(await lives(here, person, id)).toEqual(ALIVE);
    await afterTenSeconds(async () => {
      expect(await lives(there, old, id)).toEqual(DEAD);
      expect(await lives(there, person, id)).toEqual(ALIVE);
    });
  });
});

// Where nothing but their keys tells tenants apart.
describe.each(STORES.slice(0, 2))("R6: what was sent by the old tenant, with %s", (_, options) => {
  const { here } = shareProcesses(options);
  const verified = async (id: string) =>
    (await here.rowsIn(id, "user")).filter((user) => user.emailVerified).length;

  it("a verification link verifies nobody in the new one, whose own link does", async () => {
    const id = await createTenant(here);
    const send = async () => {
      await here.signUp(id);
      await here.at(id).post("/send-verification-email", { email: EMAIL });
      return here.lastMail("verification").url;
    };
    const old = await send();
    await reuse(here, id);
    const own = await send();
    await here.at("platform").get(old);
    await here.at(id).get(old);
    expect(await verified(id)).toBe(0);
    await here.at("platform").get(own);
    expect(await verified(id)).toBe(1);
  });

  it("a one-time code signs nobody in", async () => {
    const id = await createTenant(here);
    const send = async () => {
      const body = { email: EMAIL, type: "sign-in" };
      await here.at(id).post("/email-otp/send-verification-otp", body);
      return here.lastMail("code").code;
    };
    const signIn = async (otp: string) =>
      (await here.at(id).post("/sign-in/email-otp", { email: EMAIL, otp })).status;
    await here.signUp(id);
    const old = await send();
    await reuse(here, id);
    await here.signUp(id);
    expect(await signIn(old)).toBe(400);
    expect(await signIn(await send())).toBe(200);
  });

  it("an API key is none", async () => {
    const id = await createTenant(here);
    const person = await here.signUp(id);
    const { data } = await person.post<{ key: string }>("/api-key/create", { name: "Robot" });
    const headers = { "x-api-key": data.key };
    const ask = () => here.at(id).get<Partial<SessionAnswer> | null>("/get-session", { headers });
    expect((await ask()).data?.user?.id).toBe(person.id);
    await reuse(here, id);
    await here.signUp(id);
    expect((await ask()).data?.user).toBe(undefined);
  });
});
