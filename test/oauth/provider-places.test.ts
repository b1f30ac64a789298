import { describe, expect, it, onTestFinished } from "vitest";
import {
  DIRECTORY,
  gitlabAt,
  microsoftAt,
  type ProviderAnswers,
  type ProviderId,
  type ProviderRow,
  providerAnswers,
  salesforceAt,
  variantRows,
} from "../support/provider-answers";
import {
  agreeAndComeBack,
  clientOf,
  createPerson,
  createProviderInstance,
  playProvider,
  signIn,
  start,
} from "../support/provider-flow";

type Options = Record<string, unknown>;

const rowOf = (provider: ProviderId, answers: ProviderAnswers, options: Options): ProviderRow => ({
  name: provider,
  provider,
  answers: { ...answers, options },
  round: 0,
});

/** An application with the given providers of its own, and a tenant. */
async function createApp(...globals: ProviderRow[]) {
  const app = await createProviderInstance(globals);
  onTestFinished(() => app.database.close());
  return { app, tenant: await app.createTenant() };
}

describe("options of a tenant's config", () => {
  const variant = (name: string) => variantRows.find((row) => row.name === name) as ProviderRow;

  /** What the application says, what the tenant says, and where the tenant's secret goes. */
  const places: [provider: ProviderId, global: Options, own: Options, ProviderAnswers][] = [
    [
      "gitlab",
      {
        issuer: "https://gitlab.application.example",
        authorizationEndpoint: "https://gitlab.application.example/start",
      },
      { issuer: "https://gitlab.com" },
      // Plain ids are those of the application's own server.
      { ...gitlabAt("https://gitlab.com"), server: "gitlab" },
    ],
    [
      "gitlab",
      { issuer: "https://gitlab.application.example" },
      {},
      gitlabAt("https://gitlab.application.example"),
    ],
    [
      "microsoft",
      { authority: "https://application.ciamlogin.com", tenantId: DIRECTORY },
      { tenantId: "organizations" },
      microsoftAt("https://login.microsoftonline.com/organizations"),
    ],
    [
      "microsoft",
      { tenantId: DIRECTORY },
      { authority: "https://login.microsoftonline.us" },
      microsoftAt("https://login.microsoftonline.us/common"),
    ],
    [
      "salesforce",
      { loginUrl: "application.my.salesforce.com" },
      { environment: "sandbox" },
      salesforceAt("test.salesforce.com"),
    ],
    [
      "salesforce",
      { environment: "sandbox" },
      { loginUrl: "acme.my.salesforce.com" },
      salesforceAt("acme.my.salesforce.com"),
    ],
  ];

  it.each(places)("threat: mix-up: %s: the application has %o, the tenant %o", async (...place) => {
    const [provider, global, own, answers] = place;
    const row = rowOf(provider, answers, own);
    const { app, tenant } = await createApp(rowOf(provider, answers, global));
    const client = clientOf("own", provider);
    await app.configure(tenant.id, row, client);
    await signIn(app, row, tenant.id, { client, strangers: [clientOf("global", provider)] });
  });

  it.each([
    ["deleted", []],
    ["moved", [rowOf("gitlab", providerAnswers.gitlab, {})]],
  ])(
    "threat: issuer confusion: a namesake's number opens nothing after a config was %s",
    async (_, moved) => {
      const row = variant("gitlab, self-hosted");
      const usual = rowOf("gitlab", providerAnswers.gitlab, {});
      const client = clientOf("own", "gitlab");
      const { app, tenant } = await createApp(usual);
      await app.configure(tenant.id, row, client);
      const alice = createPerson();
      await signIn(app, row, tenant.id, { client, person: alice, strangers: [] });
      const [atHome] = await app.rowsOf("account", tenant.id);

      for (const place of moved) await app.configure(tenant.id, place, client);
      if (!moved.length) {
        const body = { tenantId: tenant.id, providerId: "gitlab" };
        await app.api.deleteTenantOAuthConfig({ body });
      }
      // Somebody else, who happens to have the same number at gitlab.com.
      const namesake = { ...createPerson(), number: alice.number, id: alice.id };
      const sender = moved.length ? client : clientOf("global", "gitlab");
      const visit = { answers: usual.answers, person: namesake, client: sender };
      const network = playProvider(visit);
      const browser = app.browser();
      const { data } = await start(browser, "gitlab", tenant.id);
      const trip = { ...visit, provider: "gitlab", tenantId: tenant.id, network };
      expect((await agreeAndComeBack(browser, data.url, trip)).location).toBe("/welcome");
      const session = await browser.get("/get-session", { headers: { "x-tenant-id": tenant.id } });
      expect(session.data).toMatchObject({ user: { email: namesake.email } });
      const accounts = await app.rowsOf("account", tenant.id);
      expect(accounts).toHaveLength(2);
      expect(accounts.find(({ id }) => id === atHome?.id)?.userId).toBe(atHome?.userId);
    },
  );

  it("an account of another hosted domain does not get in", async () => {
    const row = variant("google, hosted domain");
    const client = clientOf("own", "google");
    const { app, tenant } = await createApp();
    await app.configure(tenant.id, row, client);
    for (const hd of [undefined, "other.example"]) {
      const person = createPerson();
      const idToken = () => ({ ...providerAnswers.google.idToken?.(person), hd });
      const visit = { answers: { ...row.answers, idToken }, person, client };
      const network = playProvider(visit);
      const browser = app.browser();
      const { data } = await start(browser, "google", tenant.id);
      const trip = { ...visit, provider: "google", tenantId: tenant.id, network };
      const back = await agreeAndComeBack(browser, data.url, trip);
      expect(back.location).toBe("/failed?error=unable_to_get_user_info");
    }
    expect(await app.rowsOf("user", tenant.id)).toEqual([]);
    expect(await app.rowsOf("session", tenant.id)).toEqual([]);
  });

  it("threat: mix-up: a flow that was started at one place does not end at another", async () => {
    const row = variant("gitlab, self-hosted");
    const client = clientOf("own", "gitlab");
    const { app, tenant } = await createApp();
    await app.configure(tenant.id, row, client);
    const browser = app.browser();
    const { data } = await start(browser, "gitlab", tenant.id);
    const state = new URL(data.url).searchParams.get("state") ?? "";
    const usual = { ...row, answers: providerAnswers.gitlab };
    await app.configure(tenant.id, usual, client);
    const { requests } = playProvider({ ...usual, person: createPerson(), client });
    const back = await browser.get("/tenant/callback/gitlab", { query: { code: "code", state } });
    expect(back.location).toBe("/failed?error=state_mismatch");
    expect(requests).toEqual([]);
    expect(await app.rowsOf("session", tenant.id)).toEqual([]);
  });
});
