import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { everyCase } from "../support/matrix";
import {
  defaultRows,
  type ProviderClient,
  type ProviderRow,
  providerAnswers,
  variantRows,
} from "../support/provider-answers";
import {
  clientOf,
  createPerson,
  createProviderInstance,
  type ProviderInstance,
  playProvider,
  signIn,
  start,
} from "../support/provider-flow";
import { outcome } from "../support/world";

/*
 * Whose credentials a tenant's people sign in with, at every provider that the installed better-auth
 * has, as it is without options, and where an option says that it lives elsewhere or is asked in
 * another way. Each has the first case, every third one of the others, and with the servers all.
 */
const rows = [...defaultRows, ...variantRows];
const NOT_FOUND = [404, "PROVIDER_NOT_FOUND"];

/** Applications without credentials of their own, with all of them, and one for each round. */
let alone: ProviderInstance;
let shared: ProviderInstance;
const sharing = new Map<number, ProviderInstance>();
const all = () => [alone, shared, ...sharing.values()];

/** The application's own redirect URI is for the platform's people: no tenant's are sent there. */
const withURI = ({ answers, ...row }: ProviderRow): ProviderRow => {
  const options = { ...answers.options, redirectURI: "https://application.example/back" };
  return { ...row, answers: { ...answers, options } };
};

async function appOf({ round }: ProviderRow): Promise<ProviderInstance> {
  const configured = rows.filter((row) => row.round === round).map(withURI);
  const app = sharing.get(round) ?? (await createProviderInstance(configured));
  sharing.set(round, app);
  return app;
}

beforeAll(async () => {
  alone = await createProviderInstance([]);
  shared = await createProviderInstance(defaultRows);
}, 60_000);

afterAll(() => Promise.all(all().map(({ database }) => database.close())));

describe.each(rows)("$name", (row) => {
  const { provider, answers } = row;
  const usual: ProviderRow = { ...row, answers: providerAnswers[provider] };
  const [own, other, global] = ["own", "other", "global"].map((who) => clientOf(who, provider)) as [
    ProviderClient,
    ProviderClient,
    ProviderClient,
  ];
  const isTurn = (turn: number) => everyCase || rows.indexOf(row) % 9 === turn * 3;

  it("own: the tenant's credentials, and nobody else has any", async () => {
    const [tenant, neighbour] = [await alone.createTenant(), await alone.createTenant()];
    const scopes = ["one.more", "and.another"];
    await alone.configure(tenant.id, row, own, { scopes });
    await signIn(alone, row, tenant.id, { client: own, scopes, strangers: [global, other] });
    const refused = await start(alone.browser(), provider, neighbour.id);
    expect(outcome(refused)).toEqual(NOT_FOUND);
    const platform = await alone.browser().post("/sign-in/social", { provider });
    expect(outcome(platform)).toEqual(NOT_FOUND);
  });

  if (isTurn(0))
    it("global: its credentials, with our callback", async () => {
      const app = await appOf(row);
      const tenant = await app.createTenant();
      await signIn(app, row, tenant.id, { client: global, strangers: [own, other] });
    });

  if (isTurn(1))
    it("both: each tenant's own, or the application's", async () => {
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
      const elsewhere = { client: other, person, redirectURI, strangers: [own, global] };
      await signIn(shared, usual, b.id, elsewhere);
      await signIn(shared, usual, c.id, { client: global, person, strangers: [own, other] });
      const owners = await Promise.all([a, b, c].map(({ id }) => shared.rowsOf("user", id)));
      expect(new Set(owners.flat().map(({ id }) => id)).size).toBe(3);
    });

  if (isTurn(2))
    it("disabled: the application's, or none at all", async () => {
      const tenant = await shared.createTenant();
      await shared.configure(tenant.id, row, own, { enabled: false });
      await signIn(shared, usual, tenant.id, { client: global, strangers: [own, other] });

      const lonely = await alone.createTenant();
      await alone.configure(lonely.id, row, own, { enabled: false });
      const { requests } = playProvider({ answers, person: createPerson(), client: own });
      const answer = await start(alone.browser(), provider, lonely.id);
      expect([...outcome(answer), answer.location]).toEqual([...NOT_FOUND, null]);
      expect(requests).toEqual([]);
      expect(await alone.rowsOf("verification", lonely.id)).toEqual([]);
    });
});

it("no secret is in any log", () => {
  const logs = all().flatMap((app) => app.logs);
  expect(logs).not.toEqual([]);
  for (const { provider } of rows) {
    for (const who of ["own", "other", "global"]) {
      expect(logs.join("\n")).not.toContain(clientOf(who, provider).clientSecret);
    }
  }
});
