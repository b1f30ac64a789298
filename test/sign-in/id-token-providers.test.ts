import { createHash } from "node:crypto";
import { socialProviderList, socialProviders } from "better-auth/social-providers";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import {
  accountIdOf,
  checkRequest,
  createPerson,
  playProvider,
  profileRequests,
  tokensOf,
} from "../support/fake-providers";
import { signToken } from "../support/jwt";
import { type ProviderId, providerAnswers } from "../support/provider-answers";
import {
  clientOf,
  createProviderInstance,
  defaultRows,
  type ProviderInstance,
  type ProviderRow,
  variantRows,
} from "../support/provider-instance";

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

type Owner = "a" | "b" | "global";

interface Attempt {
  /** Where somebody signs in: A and B have clients of their own, C shares the application's. */
  at: "a" | "b" | "c" | "platform";
  /** Whose client the provider issued the token to. */
  tokenOf: Owner;
  /** The nonce in the token, and the one that is sent along. */
  nonce?: string;
  sent?: string;
  /** What else the token says. */
  claims?: Record<string, unknown> | undefined;
}

/** Signs in with a token, and tells what came of it. */
async function attempt(row: ProviderRow, { at, tokenOf, nonce, sent, claims }: Attempt) {
  const { provider } = row;
  const answersFor = (who: Owner) => (who === "global" ? providerAnswers[provider] : row.answers);
  const [a, b, c] = [await app.createTenant(), await app.createTenant(), await app.createTenant()];
  await app.configure(a.id, row, clientOf("a", provider));
  await app.configure(b.id, row, clientOf("b", provider));
  const tenants = { a: a.id, b: b.id, c: c.id, platform: "" };

  const person = createPerson();
  const token = signToken({
    aud: clientOf(tokenOf, provider).clientId,
    ...answersFor(tokenOf).idTokenSignIn?.claims(person),
    ...(nonce && { nonce }),
    ...claims,
  });
  const here = at === "a" || at === "b" ? at : "global";
  const visit = { answers: answersFor(here), person, client: clientOf(here, provider) };
  const { requests } = playProvider(visit);
  const browser = app.browser();
  const tenantId = tenants[at];
  const path = tenantId ? "/tenant/sign-in/social" : "/sign-in/social";
  const answer = await browser.post(path, {
    ...(tenantId && { tenantId }),
    provider,
    idToken: { token, ...(sent && { nonce: sent }) },
  });
  // Nobody is asked but the place where the client of this tenant lives.
  const asked = [checkRequest(visit, token, sent)];
  const remembers = here === "global" && visit.answers.idTokenSignIn?.remembersKeys;
  expect(remembers ? [[], asked] : [asked]).toContainEqual(requests);
  const user = {
    ...visit.answers.user(person),
    ...visit.answers.idTokenSignIn?.user?.(person),
    accountId: accountIdOf(visit),
  };
  return { answer, browser, tenants, tenantId, user };
}

type Outcome = Awaited<ReturnType<typeof attempt>>;

async function expectSignedIn({ answer, browser, tenants, tenantId, user }: Outcome) {
  expect([answer.status, answer.code]).toEqual([200, undefined]);
  const { accountId, ...profile } = user;
  expect(answer.data).toMatchObject({ redirect: false, user: { ...profile, tenantId } });
  const session = await browser.get("/get-session", { headers: { "x-tenant-id": tenantId } });
  expect(session.data).toMatchObject({ session: { tenantId }, user: { ...profile, tenantId } });
  for (const place of Object.values(tenants)) {
    const here = place === tenantId;
    expect(await app.rowsOf("user", place)).toMatchObject(here ? [{ email: profile.email }] : []);
    expect(await app.rowsOf("account", place)).toMatchObject(here ? [{ accountId }] : []);
    expect(await app.rowsOf("session", place)).toHaveLength(here ? 1 : 0);
  }
}

async function expectRefused({ answer, browser, tenants }: Outcome) {
  expect([answer.status, answer.code]).toEqual([401, "INVALID_TOKEN"]);
  expect(browser.cookies.size).toBe(0);
  for (const place of Object.values(tenants)) {
    for (const table of ["user", "account", "session"]) {
      expect(await app.rowsOf(table, place)).toEqual([]);
    }
  }
}

describe.each([...usual, ...special])("id tokens: $name", (row) => {
  const { elsewhere, hashesNonce } = row.answers.idTokenSignIn ?? {};

  it.each<Attempt>([
    { at: "a", tokenOf: "a" },
    { at: "b", tokenOf: "b" },
    { at: "c", tokenOf: "global" },
  ])("signs in at $at with a token of $tokenOf", async (visit) => {
    await expectSignedIn(await attempt(row, visit));
  });

  it.each<Attempt>([
    { at: "a", tokenOf: "b" },
    { at: "b", tokenOf: "a" },
    { at: "a", tokenOf: "global" },
    { at: "c", tokenOf: "a" },
    { at: "platform", tokenOf: "a" },
  ])("threat: audience confusion: refuses at $at a token of $tokenOf", async (visit) => {
    await expectRefused(await attempt(row, visit));
  });

  if (elsewhere) {
    it("refuses what another place issued to the same client id", async () => {
      await expectRefused(await attempt(row, { at: "a", tokenOf: "a", claims: elsewhere }));
    });
  }

  it("looks at the nonce", async () => {
    const visit: Attempt = { at: "a", tokenOf: "a", nonce: "mine" };
    await expectSignedIn(await attempt(row, { ...visit, sent: "mine" }));
    await expectRefused(await attempt(row, { ...visit, sent: "another" }));
    const hash = createHash("sha256").update("mine").digest("hex");
    const hashed = await attempt(row, { ...visit, nonce: hash, sent: "mine" });
    await (hashesNonce ? expectSignedIn(hashed) : expectRefused(hashed));
  });
});

describe("id tokens: other audiences of a tenant", () => {
  const rowOf = (id: ProviderId, options: object): ProviderRow => ({
    name: id,
    provider: id,
    answers: { ...providerAnswers[id], options: { ...providerAnswers[id].options, ...options } },
    round: 0,
  });
  const mobile: Attempt = { at: "a", tokenOf: "a", claims: { aud: "com.acme.mobile" } };

  it.each([
    rowOf("apple", { audience: "com.acme.mobile" }),
    rowOf("apple", { audience: ["com.acme.desktop", "com.acme.mobile"] }),
    rowOf("apple", { appBundleIdentifier: "com.acme.mobile" }),
    ...usual
      .filter(({ provider }) => provider !== "line")
      .map(({ provider }) => rowOf(provider, { additionalClientIds: ["com.acme.mobile"] })),
  ])("$name with $answers.options", async (row) => {
    await expectSignedIn(await attempt(row, mobile));
    await expectRefused(await attempt(row, { ...mobile, at: "c" }));
    await expectRefused(await attempt(row, { ...mobile, claims: { aud: "com.other.mobile" } }));
  });

  it.each([
    { audience: ["com.application"] },
    { appBundleIdentifier: "com.application" },
    { clientId: ["global-id-at-apple", "com.application"] },
    { verifyIdToken: async () => true },
  ])(
    "threat: audience confusion: the application's %o opens no tenant with a client",
    async (options) => {
      const apple = rowOf("apple", {});
      const strict = await createProviderInstance([rowOf("apple", options)]);
      onTestFinished(() => strict.database.close());
      const [own, sharing] = [await strict.createTenant(), await strict.createTenant()];
      const client = clientOf("a", "apple");
      await strict.configure(own.id, apple, client);
      const person = createPerson();
      playProvider({ answers: apple.answers, person, client });
      const token = signToken({
        aud: "com.application",
        ...apple.answers.idTokenSignIn?.claims(person),
      });
      const signIn = (tenantId: string) =>
        strict
          .browser()
          .post("/tenant/sign-in/social", { tenantId, provider: "apple", idToken: { token } });
      const refused = await signIn(own.id);
      expect([refused.status, refused.code]).toEqual([401, "INVALID_TOKEN"]);
      expect(await strict.rows("user")).toBe(0);
      expect((await signIn(sharing.id)).data).toMatchObject({ user: { tenantId: sharing.id } });
    },
  );
});

describe("Facebook's access tokens in place of id tokens", () => {
  const { provider, answers, ...rest } = usual.find(
    (row) => row.provider === "facebook",
  ) as ProviderRow;

  /** Signs in at A with an access token that Facebook has issued to somebody's application. */
  async function signIn(tokenOf: Owner) {
    const tenant = await app.createTenant();
    const client = clientOf("a", provider);
    await app.configure(tenant.id, { provider, answers, ...rest }, client);
    const person = createPerson();
    const { accessToken } = tokensOf(person);
    // Facebook tells whose token it is, whoever asks.
    const { requests } = playProvider({ answers, person, client: clientOf(tokenOf, provider) });
    const answer = await app.browser().post("/tenant/sign-in/social", {
      tenantId: tenant.id,
      provider,
      idToken: { token: accessToken, accessToken },
    });
    return { answer, requests, tenant, asked: profileRequests({ answers, person, client }) };
  }

  it("signs in when the token is of the tenant's application", async () => {
    const { answer, requests, tenant, asked } = await signIn("a");
    expect(requests).toEqual(asked);
    expect(answer.data).toMatchObject({ user: { tenantId: tenant.id } });
    expect(await app.rowsOf("user", tenant.id)).toHaveLength(1);
  });

  it.each<Owner>(["b", "global"])(
    "threat: audience confusion: refuses a token of %s",
    async (who) => {
      const { answer, requests, tenant, asked } = await signIn(who);
      expect(requests).toEqual(asked.slice(0, 1));
      expect([answer.status, answer.code]).toEqual([401, "FAILED_TO_GET_USER_INFO"]);
      expect(await app.rowsOf("user", tenant.id)).toEqual([]);
    },
  );
});

it("the table holds every provider whose id tokens better-auth takes, and no other", () => {
  const taking = socialProviderList.filter((id) => {
    const build = socialProviders[id] as unknown as (options: object) => object;
    return "idToken" in build({ ...clientOf("global", id), ...providerAnswers[id].options });
  });
  expect(usual.map(({ provider }) => provider)).toEqual(taking);
});
