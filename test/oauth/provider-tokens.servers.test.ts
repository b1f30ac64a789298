import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { everyCase } from "../support/matrix";
import {
  defaultRows,
  type ProviderAnswers,
  type ProviderRow,
  providerAnswers,
  variantRows,
} from "../support/provider-answers";
import {
  accountIdOf,
  agreeAndComeBack,
  clientOf,
  createPerson,
  createProviderInstance,
  expectNoneOf,
  type ProviderInstance,
  playProvider,
  refreshRequest,
  tokensOf,
  type Visit,
} from "../support/provider-flow";
import { outcome } from "../support/world";

/** What there is to tell apart: how credentials travel, at the exchange and at the refresh. */
const wayOf = ({ answers: { exchange, refresh, formPost } }: ProviderRow) =>
  JSON.stringify([exchange.credentials, refresh?.credentials, refresh?.extra, formPost]);

const addressesOf = ({ exchange, refresh }: ProviderAnswers) => JSON.stringify([exchange, refresh]);

const rows = [
  // The first provider of each way.
  ...defaultRows.filter(
    (row, index) => defaultRows.findIndex((other) => wayOf(other) === wayOf(row)) === index,
  ),
  // Those where an option changes the way or the address.
  ...variantRows.filter(
    ({ provider, answers }) => addressesOf(answers) !== addressesOf(providerAnswers[provider]),
  ),
];

let app: ProviderInstance;

beforeAll(async () => {
  app = await createProviderInstance(defaultRows, {
    // Not every provider knows an address, or has checked it.
    account: {
      accountLinking: {
        trustedProviders: defaultRows.map(({ provider }) => provider),
        allowDifferentEmails: true,
      },
    },
  });
});

afterAll(() => app.database.close());

type Owner = "own" | "global";

/** Each has credentials of the tenant's, and every third those of the application as well. */
const ownersOf = (row: ProviderRow): Owner[] =>
  everyCase || rows.indexOf(row) % 3 === 0 ? ["own", "global"] : ["own"];

/** Somebody with a password in a tenant, who links an account at the provider. */
async function link(row: ProviderRow, who: Owner) {
  const { provider } = row;
  const tenant = await app.createTenant();
  if (who === "own") await app.configure(tenant.id, row, clientOf("own", provider));
  const person = createPerson();
  const { browser, user } = await app.signUp(tenant.id, person.email);
  const visit: Visit = {
    answers: who === "own" ? row.answers : providerAnswers[provider],
    person,
    client: clientOf(who, provider),
  };
  const network = playProvider(visit);
  // The session alone says which tenant this is.
  const started = await browser.post<{ url: string }>("/link-social", {
    provider,
    callbackURL: "/linked",
    errorCallbackURL: "/failed",
  });
  expect(outcome(started)).toEqual([200, undefined]);
  const trip = { ...visit, provider, tenantId: tenant.id, network };
  const back = await agreeAndComeBack(browser, started.data.url, trip);
  expect(back.location).toBe("/linked");
  const stranger = clientOf(who === "own" ? "global" : "own", provider);
  expectNoneOf([stranger], [started.data.url, ...network.raw]);
  network.requests.length = 0;

  const account = async () => {
    const accounts = await app.rowsOf("account", tenant.id);
    return accounts.find(({ providerId }) => providerId === provider);
  };
  const accountId = accountIdOf(visit);
  expect(await account()).toMatchObject({ userId: user.id, accountId, ...tokensOf(person) });
  expect(await app.rows("account", `${app.database.quote("accountId")} = ?`, [accountId])).toBe(1);
  expect(await app.rowsOf("user", tenant.id)).toMatchObject([{ email: person.email }]);
  return { tenant, browser, visit, network, stranger, account };
}

describe.each(rows)("an account at $name", (row) => {
  const { provider } = row;

  it.each(ownersOf(row))("is linked and refreshed with %s credentials", async (who) => {
    const { tenant, browser, visit, network, stranger, account } = await link(row, who);
    const accountId = String((await account())?.id);
    const post = async (path: string) => {
      network.requests.length = 0;
      const { data, status } = await browser.post(path, { accountId });
      expectNoneOf([stranger], network.raw);
      return { status, ...data };
    };
    const [first, second] = [tokensOf(visit.person), tokensOf(visit.person, true)];

    const current = await post("/get-access-token");
    expect(current).toMatchObject({ status: 200, accessToken: first.accessToken });
    expect(network.requests).toEqual([]);

    if (!row.answers.refresh) {
      const refused = { status: 400, code: "TOKEN_REFRESH_NOT_SUPPORTED" };
      expect(await post("/refresh-token")).toMatchObject(refused);
      expect(network.requests).toEqual([]);
      return;
    }
    expect(await post("/refresh-token")).toMatchObject({ status: 200, ...second });
    expect(network.requests).toEqual([refreshRequest(visit, first.refreshToken)]);
    expect(await account()).toMatchObject(second);

    const { quote, query } = app.database;
    const [token, expiry] = [quote("accessToken"), quote("accessTokenExpiresAt")];
    const yesterday = new Date(Date.now() - 86_400_000).toISOString();
    const values = ["an old one", yesterday, accountId];
    await query(`update account set ${token} = ?, ${expiry} = ? where id = ?`, values);
    const renewed = await post("/get-access-token");
    expect(renewed).toMatchObject({ status: 200, accessToken: second.accessToken });
    expect(network.requests).toEqual([refreshRequest(visit, second.refreshToken)]);
    expect(await account()).toMatchObject(second);

    if (who === "global") return;
    // New credentials are used from the next request on.
    const client = clientOf("renewed", provider);
    await app.configure(tenant.id, row, client);
    expect(await post("/refresh-token")).toMatchObject({ status: 200 });
    expect(network.requests).toEqual([refreshRequest({ ...visit, client }, second.refreshToken)]);
    expectNoneOf([clientOf("own", provider)], network.raw.slice(-1));
  });
});

it("the table holds every way that credentials travel", () => {
  const ways = rows.map(({ answers: { exchange, refresh } }) =>
    [exchange.credentials, refresh?.credentials ?? "none"].join(" -> "),
  );
  expect([...new Set(ways)].sort()).toEqual([
    "basic -> basic",
    "basic -> form",
    "form -> form",
    "form -> none",
    "form, as client_key -> form, as client_key",
    "query -> query, id alone",
  ]);
});
