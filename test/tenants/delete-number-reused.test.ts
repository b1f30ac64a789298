import { describe, expect, it } from "vitest";
import { createStorage, type Store } from "../support/stores";
import { createWorld, gate, type World } from "../support/world";

const advanced = { disableOriginCheck: false, database: { generateId: "serial" } } as const;
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** The last tenant, whose number goes to the next one once it is gone. */
const createLast = async ({ createTenant }: World) => (await createTenant("last")).id;

describe.each<Store>([
  { name: "the database" },
  { name: "a storage", storage: () => createStorage() },
])("a sign-in whose tenant's number is given again meanwhile, with $name", (store) => {
  it("R10: signs nobody in", async () => {
    const comparison = gate();
    const password = {
      hash: async (text: string) => text,
      verify: async ({ hash, password }: { hash: string; password: string }) => {
        await comparison.pass();
        return hash === password;
      },
    };
    const emailAndPassword = { enabled: true, password };
    const world = await createWorld({ store, auth: { advanced, emailAndPassword } });
    const id = await createLast(world);
    const mallory = await world.signUp(id, "mallory@example.com");
    const signIn = world.signIn(id, mallory.email);
    await comparison.reached;
    await world.api.deleteTenant({ body: { tenantId: id } });
    expect(await createLast(world)).toBe(id);
    const victim = await world.signUp(id, "victim@example.com");
    expect(victim.id).toBe(mallory.id);
    comparison.open();
    const { status, person } = await signIn;
    expect(status).not.toBe(200);
    expect(await world.whoIs(person)).toBe(null);
  });
});

it.each([0, 5, 40])(
  "R10: a storage that forgets the old tenant slowly keeps the people of a new one under its number, who come %d ms after its row is gone",
  async (gap) => {
    let delay = 0;
    // Every answer of it takes a while.
    const secondaryStorage = new Proxy(createStorage(), {
      get(target, name) {
        const method: unknown = Reflect.get(target, name);
        if (typeof method !== "function") return method;
        return async (...given: unknown[]) => {
          await wait(delay);
          return method(...given);
        };
      },
    });
    const world = await createWorld({ auth: { secondaryStorage, advanced } });
    const old = await createLast(world);
    const names = ["one", "two", "three"];
    for (const name of names) await world.signUp(old, `old-${name}@example.com`);
    delay = 150;
    const deletion = world.api.deleteTenant({ body: { tenantId: old } });
    while ((await world.rows("tenant")) > 2) await wait(1);
    await wait(gap);
    delay = 0;
    const id = await createLast(world);
    expect(id).toBe(old);
    const people = [];
    for (const name of names) people.push(await world.signUp(id, `${name}@example.com`));
    delay = 10;
    await deletion;
    for (const person of people) expect(await world.whoIs(person)).toMatchObject({ id: person.id });
    expect(await world.rows("user")).toBe(names.length);
  },
);
