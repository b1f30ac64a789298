import { expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
import { because, createWorld, type Ground } from "./store";

interface SignIn {
  user: { id: string };
  session: { userId: string };
}

/** Small races; the large ones are in races.test.ts. */
export function survivesRaces(ground: Ground) {
  const { noUniqueValues, crowd = 20 } = ground;
  const times = <T>(run: () => Promise<T>) => Promise.all(Array.from({ length: crowd }, run));
  const others = <T>(value: T): T[] => Array(crowd - 1).fill(value);
  const race = (name: string, run: () => Promise<void>) =>
    it.skipIf(noUniqueValues)(because(name, noUniqueValues), run);

  race(`of ${crowd} sign-ups with one e-mail at once, one gets it`, async () => {
    const { browser, a, b, signUp, count } = await createWorld(ground);
    const body = { tenantId: a.id, name: "Somebody", email: "x@example.com", password: PASSWORD };
    const answers = await times(() => browser().post("/tenant/sign-up/email", body));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...others(422)]);
    expect([await count("user"), await count("account"), await count("session")]).toEqual([
      1, 1, 1,
    ]);
    // It is free in other tenants all the same.
    await signUp(b.id, body.email);
  });

  race(`${crowd} registrations of one config at once leave one`, async () => {
    const { api, a, count } = await createWorld(ground);
    const body = { tenantId: a.id, providerId: "google", clientId: "id", clientSecret: "secret" };
    const configs = await times(() => api.registerTenantOAuthConfig({ body }));
    expect(new Set(configs.map(({ id }) => id)).size).toBe(1);
    expect(await count("tenantOauthConfig")).toBe(1);
  });

  it(`${crowd} tenants that register a config at once each get their own`, async () => {
    const { api } = await createWorld(ground);
    const tenants: string[] = [];
    for (let i = 0; i < crowd; i++) {
      const { id } = await api.createTenant({ body: { name: `T ${i}`, slug: `tenant-${i}` } });
      tenants.push(id);
    }
    const configs = tenants.map((tenantId) => {
      const credentials = { clientId: `client-of-${tenantId}`, clientSecret: "secret" };
      const body = { tenantId, providerId: "google", ...credentials };
      return api.registerTenantOAuthConfig({ body });
    });
    expect(await Promise.all(configs)).toMatchObject(
      tenants.map((tenantId) => ({ tenantId, clientId: `client-of-${tenantId}` })),
    );
  });

  race(`of ${crowd} tenants with one slug at once, one is created`, async () => {
    const { api, count } = await createWorld(ground);
    const create = () => api.createTenant({ body: { name: "Race", slug: "race" } });
    const answers = await times(() =>
      create().then(
        ({ slug }) => slug,
        ({ body }) => body?.code,
      ),
    );
    expect(answers.sort()).toEqual([...others("TENANT_ALREADY_EXISTS"), "race"]);
    expect(await count("tenant")).toBe(3);
  });

  it(`of ${crowd} people who sign in at once, everybody gets their own session`, async () => {
    const { a, b, browser, signUp, whoIs } = await createWorld(ground);
    const people: { tenantId: string; id: string; email: string }[] = [];
    for (const tenantId of Array(crowd / 2)
      .fill([a.id, b.id])
      .flat()) {
      const { user, email } = await signUp(tenantId);
      people.push({ tenantId, id: user.id, email });
    }
    const found = people.map(async ({ tenantId, email }) => {
      const person = browser();
      const body = { tenantId, email, password: PASSWORD };
      const { data } = await person.post<SignIn>("/tenant/sign-in/email", body);
      return [data.user.id, data.session.userId, (await whoIs(person, null))?.user.id];
    });
    expect(await Promise.all(found)).toEqual(people.map(({ id }) => [id, id, id]));
  });

  it(`a tenant that is deleted while ${crowd} people sign in and up leaves nobody behind`, async () => {
    const { api, a, browser, signUp, rowsOf } = await createWorld(ground);
    const person = { tenantId: a.id, name: "Somebody", password: PASSWORD };
    const email = "there@example.com";
    await signUp(a.id, email);
    let count = 0;
    const visits = times(async () => {
      const fresh = { ...person, email: `new-${++count}@example.com` };
      const answers = await Promise.all([
        browser().post("/tenant/sign-in/email", { ...person, email }),
        browser().post("/tenant/sign-up/email", fresh),
      ]);
      return answers.map(({ status }) => status);
    });
    await api.deleteTenant({ body: { tenantId: a.id } });
    expect(Math.max(...(await visits).flat())).toBeLessThanOrEqual(ground.deadlocks ? 500 : 499);
    for (const model of ["user", "account", "session"]) {
      expect(await rowsOf(model, a.id)).toEqual([]);
    }
  });
}
