import type { BetterAuthOptions } from "better-auth";
import { describe, expect, it } from "vitest";
import { createStorage } from "../configurations/storages";
import type { Browser } from "../support/browser";
import { gate } from "../support/gate";
import { createInstance, PASSWORD } from "../support/instance";

type SecondaryStorage = NonNullable<BetterAuthOptions["secondaryStorage"]>;

const advanced = { database: { generateId: "serial" } } as const;
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A tenant under a number, and a sign-in that waits while its password is compared. */
async function createWaitingSignIn(auth: Partial<BetterAuthOptions>) {
  const comparison = gate();
  const app = await createInstance({
    auth: {
      ...auth,
      advanced,
      emailAndPassword: {
        enabled: true,
        password: {
          hash: async (password) => password,
          verify: async ({ hash, password }) => {
            await comparison.pass();
            return hash === password;
          },
        },
      },
    },
  });
  const { id } = await app.createTenant("old");
  const mallory = await app.signUp(id, "mallory@example.com");
  const browser = app.browser({ "x-tenant-id": id });
  const { email } = mallory;
  const signIn = browser.post("/sign-in/email", { email, password: PASSWORD });
  await comparison.reached;
  return { app, id, mallory, browser, signIn, goOn: comparison.open };
}

describe.each<[string, () => Partial<BetterAuthOptions>]>([
  ["the database", () => ({})],
  ["a storage", () => ({ secondaryStorage: createStorage({}) })],
])("a sign-in whose tenant's number is given again meanwhile, with %s", (_, auth) => {
  it("R10: signs nobody in", async () => {
    const { app, id, mallory, browser, signIn, goOn } = await createWaitingSignIn(auth());
    await app.api.deleteTenant({ body: { tenantId: id } });
    expect((await app.createTenant("new")).id).toBe(id);
    const victim = await app.signUp(id, "victim@example.com");
    expect(victim.user.id).toBe(mallory.user.id);
    goOn();
    expect((await signIn).status).not.toBe(200);
    expect((await browser.get("/get-session")).data).toBe(null);
  });
});

/** A storage whose every answer takes a while. */
function slow(storage: SecondaryStorage, delay: () => number): SecondaryStorage {
  return new Proxy(storage, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== "function") return method;
      return async (...given: unknown[]) => {
        await wait(delay());
        return method(...given);
      };
    },
  });
}

const EMAILS = ["one@example.com", "two@example.com", "three@example.com"];

async function isSignedIn(browser: Browser): Promise<boolean> {
  return (await browser.get("/get-session")).data !== null;
}

describe("a storage that forgets the old tenant slowly", () => {
  it.each([0, 5, 40])(
    "R10: keeps the people of a new one under its number, who come %d ms after its row is gone",
    async (gap) => {
      let delay = 0;
      const secondaryStorage = slow(createStorage({}), () => delay);
      const session = { storeSessionInDatabase: false };
      const app = await createInstance({ auth: { secondaryStorage, session, advanced } });
      const { id: old } = await app.createTenant("old");
      for (const email of EMAILS) await app.signUp(old, `old-${email}`);
      delay = 150;
      const deletion = app.api.deleteTenant({ body: { tenantId: old } });
      while ((await app.rows("tenant")) > 0) await wait(1);
      await wait(gap);
      delay = 0;
      const { id } = await app.createTenant("new");
      expect(id).toBe(old);
      const people = [];
      for (const email of EMAILS) people.push(await app.signUp(id, email));
      delay = 10;
      await deletion;
      for (const { browser } of people) expect(await isSignedIn(browser)).toBe(true);
      expect(await app.rows("user")).toBe(EMAILS.length);
    },
  );
});
