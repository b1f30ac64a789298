import { createHash } from "node:crypto";
import { socialProviderList, socialProviders } from "better-auth/social-providers";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { turnOf } from "../support/matrix";
import {
  defaultRows,
  type ProviderId,
  type ProviderRow,
  providerAnswers,
  variantRows,
} from "../support/provider-answers";
import {
  accountIdOf,
  checkRequest,
  clientOf,
  createPerson,
  createProviderInstance,
  type ProviderInstance,
  playProvider,
  profileRequests,
  tokensOf,
} from "../support/provider-flow";
import { signToken } from "../support/providers";
import { outcome } from "../support/world";

const usual = defaultRows.filter(({ answers }) => answers.idTokenSignIn);
/** Those whose option changes what a token has to be. */
const special = variantRows.filter(
  ({ provider, answers }) => answers.idTokenSignIn !== providerAnswers[provider].idTokenSignIn,
);

let app: ProviderInstance;
beforeAll(async () => {
  app = await createProviderInstance(usual);
});
afterAll(() => app.database.close());

type Owner = "acme" | "globex" | "global";
/** Acme and Globex have clients of their own; the tenant that shares has the application's. */
type Place = "acme" | "globex" | "sharing" | "platform";

interface Attempt {
  at: Place;
  /** Whose client the provider issued the token to. */
  tokenOf: Owner;
  /** The nonce in the token, and the one that is sent along. */
  nonce?: string;
  sent?: string;
  /** What else the token says. */
  claims?: Record<string, unknown> | undefined;
}

/** Whose provider has asked for the keys before, and may remember them. */
const askers = new Set<string>();
const places = new Map<ProviderRow, Promise<Record<Place, string>>>();

async function settle(row: ProviderRow): Promise<Record<Place, string>> {
  const [acme, globex] = [await app.createTenant(), await app.createTenant()];
  await app.configure(acme.id, row, clientOf("acme", row.provider));
  await app.configure(globex.id, row, clientOf("globex", row.provider));
  const sharing = await app.createTenant();
  return { acme: acme.id, globex: globex.id, sharing: sharing.id, platform: "" };
}

/** Signs in with a token, and tells what came of it. */
async function attempt(row: ProviderRow, { at, tokenOf, nonce, sent, claims }: Attempt) {
  const { provider } = row;
  places.set(row, places.get(row) ?? settle(row));
  const tenants = await places.get(row);
  const tenantId = tenants?.[at] ?? "";
  const answersFor = (who: Owner) => (who === "global" ? providerAnswers[provider] : row.answers);
  const person = createPerson();
  const token = signToken({
    aud: clientOf(tokenOf, provider).clientId,
    ...answersFor(tokenOf).idTokenSignIn?.claims(person),
    ...(nonce && { nonce }),
    ...claims,
  });
  const here = at === "acme" || at === "globex" ? at : "global";
  const visit = { answers: answersFor(here), person, client: clientOf(here, provider) };
  const { requests } = playProvider(visit);
  const browser = app.browser();
  const path = tenantId ? "/tenant/sign-in/social" : "/sign-in/social";
  const answer = await browser.post(path, {
    ...(tenantId && { tenantId }),
    provider,
    idToken: { token, ...(sent && { nonce: sent }) },
  });
  // Nobody is asked but the place where the client of this tenant lives.
  const asked = [checkRequest(visit, token, sent)];
  const hasAsked = here === "global" || askers.has(`${row.name} ${here}`);
  askers.add(`${row.name} ${here}`);
  const remembers = hasAsked && visit.answers.idTokenSignIn?.remembersKeys;
  expect(remembers ? [[], asked] : [asked]).toContainEqual(requests);
  const { accountId: _, ...profile } = visit.answers.user(person);
  const user = { ...profile, ...visit.answers.idTokenSignIn?.user?.(person) };
  return { answer, browser, tenantId, user, accountId: accountIdOf(visit) };
}

type Outcome = Awaited<ReturnType<typeof attempt>>;

/** Where there is somebody of that address now, and an account of that number. */
async function traces({ user, accountId }: Outcome) {
  const { quote, query } = app.database;
  const tenant = `select ${quote("tenantId")} as place from`;
  const found = [
    ...(await query(`${tenant} ${quote("user")} where email = ?`, [user.email])),
    ...(await query(`${tenant} account where ${quote("accountId")} = ?`, [accountId])),
  ];
  return found.map(({ place }) => place);
}

async function expectSignedIn(result: Outcome) {
  const { answer, browser, tenantId, user } = result;
  expect(outcome(answer)).toEqual([200, undefined]);
  expect(answer.data).toMatchObject({ redirect: false, user: { ...user, tenantId } });
  const session = await browser.get("/get-session", { headers: { "x-tenant-id": tenantId } });
  expect(session.data).toMatchObject({ session: { tenantId }, user: { ...user, tenantId } });
  expect(await traces(result)).toEqual([tenantId, tenantId]);
}

async function expectRefused(result: Outcome) {
  expect(outcome(result.answer)).toEqual([401, "INVALID_TOKEN"]);
  expect(result.browser.cookies.size).toBe(0);
  expect(await traces(result)).toEqual([]);
}

const GOOD: Attempt[] = [
  { at: "acme", tokenOf: "acme" },
  { at: "globex", tokenOf: "globex" },
  { at: "sharing", tokenOf: "global" },
];
const BAD: Attempt[] = [
  { at: "acme", tokenOf: "globex" },
  { at: "globex", tokenOf: "acme" },
  { at: "acme", tokenOf: "global" },
  { at: "sharing", tokenOf: "acme" },
  { at: "platform", tokenOf: "acme" },
];

// Two or three attempts with each, and with the servers all of them.
const rows = [...usual, ...special];
describe.each(rows)("id tokens: $name", (row) => {
  const { elsewhere, hashesNonce } = row.answers.idTokenSignIn ?? {};
  const turn = rows.indexOf(row);

  it.each(turnOf(GOOD, 1, turn))("signs in at $at with a token of $tokenOf", async (visit) => {
    await expectSignedIn(await attempt(row, visit));
  });

  it.each(turnOf(BAD, 2, turn))(
    "threat: audience confusion: refuses at $at a token of $tokenOf",
    async (visit) => {
      await expectRefused(await attempt(row, visit));
    },
  );

  if (elsewhere) {
    it("refuses what another place issued to the same client id", async () => {
      await expectRefused(await attempt(row, { at: "acme", tokenOf: "acme", claims: elsewhere }));
    });
  }

  it("looks at the nonce", async () => {
    const visit: Attempt = { at: "acme", tokenOf: "acme", nonce: "mine" };
    await expectSignedIn(await attempt(row, { ...visit, sent: "mine" }));
    await expectRefused(await attempt(row, { ...visit, sent: "another" }));
    const hash = createHash("sha256").update("mine").digest("hex");
    const hashed = await attempt(row, { ...visit, nonce: hash, sent: "mine" });
    await (hashesNonce ? expectSignedIn(hashed) : expectRefused(hashed));
  });
});

describe("id tokens: other audiences of a tenant", () => {
  const rowOf = (id: ProviderId, options: object): ProviderRow => ({
    name: `${id} ${JSON.stringify(options)}`,
    provider: id,
    answers: { ...providerAnswers[id], options: { ...providerAnswers[id].options, ...options } },
    round: 0,
  });
  const mobile: Attempt = { at: "acme", tokenOf: "acme", claims: { aud: "com.acme.mobile" } };

  it.each([
    rowOf("apple", { audience: "com.acme.mobile" }),
    rowOf("apple", { audience: ["com.acme.desktop", "com.acme.mobile"] }),
    rowOf("apple", { appBundleIdentifier: "com.acme.mobile" }),
    ...usual
      .filter(({ provider }) => provider !== "line")
      .map(({ provider }) => rowOf(provider, { additionalClientIds: ["com.acme.mobile"] })),
  ])("$name", async (row) => {
    await expectSignedIn(await attempt(row, mobile));
    await expectRefused(await attempt(row, { ...mobile, at: "sharing" }));
    await expectRefused(await attempt(row, { ...mobile, claims: { aud: "com.other.mobile" } }));
  });

  it.each([
    { audience: ["com.application"] },
    { appBundleIdentifier: "com.application" },
    { clientId: ["global-id-at-apple", "com.application"] },
    { verifyIdToken: async () => true },
  ])(
    "threat: audience confusion: the application's %o opens no tenant with a client",
    async (o) => {
      const { answers } = rowOf("apple", {});
      const strict = await createProviderInstance([rowOf("apple", o)]);
      onTestFinished(() => strict.database.close());
      const [own, sharing] = [await strict.createTenant(), await strict.createTenant()];
      const client = clientOf("acme", "apple");
      await strict.configure(own.id, rowOf("apple", {}), client);
      const person = createPerson();
      playProvider({ answers, person, client });
      const token = signToken({ aud: "com.application", ...answers.idTokenSignIn?.claims(person) });
      const signIn = (tenantId: string) =>
        strict
          .browser()
          .post("/tenant/sign-in/social", { tenantId, provider: "apple", idToken: { token } });
      expect(outcome(await signIn(own.id))).toEqual([401, "INVALID_TOKEN"]);
      expect(await strict.rows("user")).toBe(0);
      expect((await signIn(sharing.id)).data).toMatchObject({ user: { tenantId: sharing.id } });
    },
  );
});

describe("Facebook's access tokens in place of id tokens", () => {
  const row = usual.find(({ provider }) => provider === "facebook") as ProviderRow;
  const { provider, answers } = row;

  it.each<[Owner, status: number, code?: string]>([
    ["acme", 200],
    ["globex", 401, "FAILED_TO_GET_USER_INFO"],
    ["global", 401, "FAILED_TO_GET_USER_INFO"],
  ])("threat: audience confusion: at Acme a token of %s is %i", async (tokenOf, ...expected) => {
    const tenant = await app.createTenant();
    const client = clientOf("acme", provider);
    await app.configure(tenant.id, row, client);
    const person = createPerson();
    const { accessToken } = tokensOf(person);
    // Facebook tells whose token it is, whoever asks.
    const { requests } = playProvider({ answers, person, client: clientOf(tokenOf, provider) });
    const answer = await app.browser().post("/tenant/sign-in/social", {
      tenantId: tenant.id,
      provider,
      idToken: { token: accessToken, accessToken },
    });
    expect(outcome(answer)).toEqual([expected[0], expected[1]]);
    const asked = profileRequests({ answers, person, client });
    const isOwn = tokenOf === "acme";
    expect(requests).toEqual(isOwn ? asked : asked.slice(0, 1));
    expect(await app.rowsOf("user", tenant.id)).toHaveLength(isOwn ? 1 : 0);
  });
});

it("the table holds every provider whose id tokens better-auth takes, and no other", () => {
  const taking = socialProviderList.filter((id) => {
    const build = socialProviders[id] as unknown as (options: object) => object;
    return "idToken" in build({ ...clientOf("global", id), ...providerAnswers[id].options });
  });
  expect(usual.map(({ provider }) => provider)).toEqual(taking);
});
