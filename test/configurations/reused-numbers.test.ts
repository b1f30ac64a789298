import { apiKey } from "@better-auth/api-key";
import type { BetterAuthOptions } from "better-auth";
import { bearer, emailOTP } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { EMAIL, type SessionAnswer } from "../plugins/places";
import { createMailbox } from "../scope/mailbox";
import type { Browser } from "../support/browser";
import { createDatabase } from "../support/database";
import { createInstance, type Instance, PASSWORD } from "../support/instance";
import { CACHES } from "./checks";
import { cleanUpCopies, secondCopy } from "./second-copy";
import { afterTenSeconds, createStorage, STORAGE_KINDS } from "./storages";

cleanUpCopies();

type Entries = Map<string, string>;

/** Where sessions live. On SQLite the number of a deleted row is given to the next one. */
const STORES: [name: string, options: (entries: Entries) => Partial<BetterAuthOptions>][] = [
  ["the database", () => ({})],
  ...STORAGE_KINDS.map((kind): (typeof STORES)[number] => [
    `a storage that ${kind.name}`,
    (entries) => ({ secondaryStorage: createStorage(kind, entries) }),
  ]),
  ...CACHES.map(([name, session]): (typeof STORES)[number] => [name, () => ({ session })]),
];

/** Two processes, and a tenant whose number goes to another one. */
async function createReuse(options: (entries: Entries) => Partial<BetterAuthOptions>) {
  const database = await createDatabase("sqlite");
  const entries: Entries = new Map();
  const { mails, auth: senders } = createMailbox();
  const codes: string[] = [];
  const plugins = () => [
    bearer(),
    apiKey({ enableSessionForAPIKeys: true }),
    emailOTP({ sendVerificationOTP: async ({ otp }) => void codes.push(otp) }),
  ];
  // What a process remembers is its own, so each has a copy of the package.
  const start = async (migrate: boolean) =>
    createInstance({
      database,
      migrate,
      tenantAuth: (await secondCopy()).tenantAuth,
      plugins: plugins(),
      tenant: { scopedModels: ["apikey"] },
      auth: {
        ...senders,
        ...options(entries),
        advanced: { database: { generateId: "serial" } },
      },
    });
  const here = await start(true);
  const there = await start(false);
  const old = (await here.createTenant("old")).id;
  const reuse = async () => {
    await here.api.deleteTenant({ body: { tenantId: old } });
    const { id } = await here.createTenant("new");
    expect(id).toBe(old);
    return id;
  };
  return { here, there, old, reuse, mails, codes };
}

/** Whether somebody is signed in, with their tenant named and without. */
async function isSomebody(process: Instance, browser: Browser, tenantId: string) {
  const answers = [];
  for (const headers of [{}, { "x-tenant-id": tenantId }] as Record<string, string>[]) {
    const window = process.browser(headers);
    for (const [name, value] of browser.cookies) window.cookies.set(name, value);
    answers.push((await window.get("/get-session")).data !== null);
    answers.push((await window.post("/update-user", { name: "Here" })).status === 200);
  }
  return answers;
}
const SOMEBODY = [true, true, true, true];
const NOBODY = [false, false, false, false];

describe.each(STORES)("R10: a new tenant under a reused number, sessions in %s", (_, options) => {
  it("can be used: people sign up and in, and stay signed in", async () => {
    const { here, there, old, reuse } = await createReuse(options);
    await here.signUp(old, EMAIL);
    const id = await reuse();
    const { browser } = await here.signUp(id, EMAIL);
    expect(await isSomebody(here, browser, id)).toEqual(SOMEBODY);
    const again = here.browser({ "x-tenant-id": id });
    await again.post("/sign-in/email", { email: EMAIL, password: PASSWORD });
    expect(await isSomebody(here, again, id)).toEqual(SOMEBODY);
    await afterTenSeconds(async () => {
      expect(await isSomebody(there, browser, id)).toEqual(SOMEBODY);
    });
  });

  it("no session of the old tenant is good in it", async () => {
    const { here, old, reuse } = await createReuse(options);
    const { browser } = await here.signUp(old, EMAIL);
    expect(await isSomebody(here, browser, old)).toEqual(SOMEBODY);
    const id = await reuse();
    expect(await isSomebody(here, browser, id)).toEqual(NOBODY);
    // Users are numbered as well: this one may get the number of the one before.
    await here.signUp(id, EMAIL);
    expect(await isSomebody(here, browser, id)).toEqual(NOBODY);
  });

  it("nor in another process, ten seconds later", async () => {
    const { here, there, old, reuse } = await createReuse(options);
    const { browser } = await here.signUp(old, EMAIL);
    expect(await isSomebody(there, browser, old)).toEqual(SOMEBODY);
    const id = await reuse();
    await here.signUp(id, EMAIL);
    await afterTenSeconds(async () => {
      expect(await isSomebody(there, browser, id)).toEqual(NOBODY);
    });
  });

  it("nor by bearer token", async () => {
    const { here, old, reuse } = await createReuse(options);
    const { token } = await here.signUp(old, EMAIL);
    const id = await reuse();
    await here.signUp(id, EMAIL);
    const authorization = `Bearer ${token}`;
    for (const naming of [{}, { "x-tenant-id": id }] as Record<string, string>[]) {
      const window = here.browser({ ...naming, authorization });
      expect((await window.get("/get-session")).data).toBe(null);
    }
  });
});

// Where nothing but their keys tells tenants apart.
describe.each(STORES.slice(0, 2))("R6: what was sent by the old tenant, with %s", (_, options) => {
  it("a verification link verifies nobody in the new one", async () => {
    const { here, old, reuse, mails } = await createReuse(options);
    await here.signUp(old, EMAIL);
    await here.browser({ "x-tenant-id": old }).post("/send-verification-email", { email: EMAIL });
    const url = mails.at(-1)?.url ?? "";
    const id = await reuse();
    await here.signUp(id, EMAIL);
    await here.browser().get(url);
    await here.browser({ "x-tenant-id": id }).get(url);
    expect(await here.rows("user", '"emailVerified" = 1')).toBe(0);
  });

  it("the new tenant's own verification link works", async () => {
    const { here, reuse, mails } = await createReuse(options);
    const id = await reuse();
    await here.signUp(id, EMAIL);
    await here.browser({ "x-tenant-id": id }).post("/send-verification-email", { email: EMAIL });
    await here.browser().get(mails.at(-1)?.url ?? "");
    expect(await here.rows("user", '"emailVerified" = 1')).toBe(1);
  });

  it("a one-time code signs nobody in", async () => {
    const { here, old, reuse, codes } = await createReuse(options);
    const at = (tenantId: string) => here.browser({ "x-tenant-id": tenantId });
    await here.signUp(old, EMAIL);
    const body = { email: EMAIL, type: "sign-in" };
    await at(old).post("/email-otp/send-verification-otp", body);
    const otp = codes.at(-1);
    const id = await reuse();
    await here.signUp(id, EMAIL);
    const answer = await at(id).post("/sign-in/email-otp", { email: EMAIL, otp });
    expect(answer.status).toBe(400);
    await at(id).post("/email-otp/send-verification-otp", body);
    const own = await at(id).post("/sign-in/email-otp", { email: EMAIL, otp: codes.at(-1) });
    expect(own.status).toBe(200);
  });

  it("an API key is none", async () => {
    const { here, old, reuse } = await createReuse(options);
    const { browser } = await here.signUp(old, EMAIL);
    const { data } = await browser.post<{ key: string }>("/api-key/create", { name: "Robot" });
    const id = await reuse();
    await here.signUp(id, EMAIL);
    const headers = { "x-api-key": data.key };
    const window = here.browser({ "x-tenant-id": id });
    const answer = await window.get<Partial<SessionAnswer> | null>("/get-session", { headers });
    expect(answer.data?.user).toBe(undefined);
  });
});
