import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createPerson, playProvider } from "../support/fake-providers";
import { type ProviderClient, providerAnswers } from "../support/provider-answers";
import { signIn, start } from "../support/provider-flow";
import {
  clientOf,
  createProviderInstance,
  defaultRows,
  type ProviderInstance,
  type ProviderRow,
} from "../support/provider-instance";

const CASES = ["own", "global", "both", "disabled"];

/** Whose credentials a tenant's people sign in with: four cases for each row, and a table of them. */
export function describeCases(rows: ProviderRow[]) {
  /** An application without credentials of its own, one with all of them, and one for each round. */
  let alone: ProviderInstance;
  let shared: ProviderInstance;
  const sharing = new Map<number, ProviderInstance>();
  const all = () => [alone, shared, ...sharing.values()];
  const results = new Map<string, string>();

  beforeAll(async () => {
    alone = await createProviderInstance([]);
    shared = await createProviderInstance(defaultRows);
    for (const round of new Set(rows.map((row) => row.round))) {
      const configured = rows.filter((row) => row.round === round);
      if (round > 0) sharing.set(round, await createProviderInstance(configured));
    }
  }, 60_000);

  afterAll(() => Promise.all(all().map(({ database }) => database.close())));

  describe.each(rows)("$name", (row) => {
    const { provider, answers } = row;
    const usual: ProviderRow = { ...row, answers: providerAnswers[provider] };
    const [own, other, global] = ["own", "other", "global"].map((who) =>
      clientOf(who, provider),
    ) as [ProviderClient, ProviderClient, ProviderClient];

    afterEach(({ task }) => {
      const [column] = task.name.split(":");
      const state = task.result?.state === "fail" ? "FAIL" : "pass";
      results.set(`${row.name} ${column}`, state);
    });

    it("own: the tenant's credentials, and nobody else has any", async () => {
      const [tenant, neighbour] = [await alone.createTenant(), await alone.createTenant()];
      const scopes = ["one.more", "and.another"];
      await alone.configure(tenant.id, row, own, { scopes });
      await signIn(alone, row, tenant.id, { client: own, scopes, strangers: [global, other] });
      const answers = [
        await start(alone.browser(), provider, neighbour.id),
        await alone.browser().post("/sign-in/social", { provider }),
      ];
      for (const { status, code } of answers) {
        expect([status, code]).toEqual([404, "PROVIDER_NOT_FOUND"]);
      }
    });

    it("global: the application's credentials, with the tenants' callback", async () => {
      const app = sharing.get(row.round) ?? shared;
      const tenant = await app.createTenant();
      await signIn(app, row, tenant.id, { client: global, strangers: [own, other] });
    });

    it("both: each tenant's own credentials, and the application's where there are none", async () => {
      const [a, b, c] = [
        await shared.createTenant(),
        await shared.createTenant(),
        await shared.createTenant(),
      ];
      await shared.configure(a.id, row, own);
      // A redirect URI of its own goes to both addresses of the provider.
      const redirectURI = `https://login.b.example/${provider}`;
      await shared.configure(b.id, usual, other, { redirectURI });
      const person = createPerson();
      await signIn(shared, row, a.id, { client: own, person, strangers: [other, global] });
      await signIn(shared, usual, b.id, {
        client: other,
        person,
        redirectURI,
        strangers: [own, global],
      });
      await signIn(shared, usual, c.id, { client: global, person, strangers: [own, other] });
      const owners = await Promise.all([a, b, c].map(({ id }) => shared.rowsOf("user", id)));
      expect(new Set(owners.flat().map(({ id }) => id)).size).toBe(3);
    });

    it("disabled: the application's credentials, or none at all", async () => {
      const tenant = await shared.createTenant();
      await shared.configure(tenant.id, row, own, { enabled: false });
      await signIn(shared, usual, tenant.id, { client: global, strangers: [own, other] });

      const lonely = await alone.createTenant();
      await alone.configure(lonely.id, row, own, { enabled: false });
      const { requests } = playProvider({
        answers,
        person: createPerson(),
        client: own,
      });
      const answer = await start(alone.browser(), provider, lonely.id);
      expect([answer.status, answer.code]).toEqual([404, "PROVIDER_NOT_FOUND"]);
      expect(answer.location).toBeNull();
      expect(requests).toEqual([]);
      expect(await alone.rowsOf("verification", lonely.id)).toEqual([]);
    });
  });

  it("no secret is in any log", () => {
    const logs = all()
      .flatMap((app) => app.logs)
      .join("\n");
    for (const { provider } of rows) {
      for (const who of ["own", "other", "global"]) {
        expect(logs).not.toContain(clientOf(who, provider).clientSecret);
      }
    }
  });

  afterAll(() => {
    const width = Math.max(...rows.map(({ name }) => name.length)) + 2;
    const line = (name: string, cells: string[]) =>
      [name.padEnd(width), ...cells.map((cell) => cell.padEnd(9))].join("").trimEnd();
    const lines = rows.map(({ name }) =>
      line(
        name,
        CASES.map((column) => results.get(`${name} ${column}`) ?? "-"),
      ),
    );
    console.log([line("", CASES), ...lines].join("\n"));
  });
}
