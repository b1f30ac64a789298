import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { TenantOAuthConfig } from "../../src/index";
import { databases } from "../support/servers";
import { shareInstance } from "../support/shared";

const CLIENT = { clientId: "acme-client", clientSecret: "acme-client-secret" };
const trustedProviderHosts = ["gitlab.acme.example", "evil.example"];
const POOL = {
  domain: "acme.auth.eu-west-1.amazoncognito.com",
  region: "eu-west-1",
  userPoolId: "eu-west-1_Acme",
};
const HOME = { issuer: "https://gitlab.acme.example" };
const AWAY = { issuer: "https://evil.example" };

type Options = Record<string, unknown> | null;
type Body = { message?: string } & TenantOAuthConfig;

describe.each(databases)("on %s: threat: a stored secret is sent to another host", (kind) => {
  const shared = shareInstance({ tenant: { trustedProviderHosts } }, kind);
  let tenantId: string;

  beforeEach(async () => {
    tenantId = (await shared.instance.createTenant()).id;
  });

  const register = (providerId: string, options: Options, client: object = CLIENT) =>
    shared.operator.post<Body>("/tenant/oauth-config/register", {
      tenantId,
      providerId,
      ...client,
      options,
    });
  const update = (providerId: string, changes: object) =>
    shared.operator.post<Body>("/tenant/oauth-config/update", { tenantId, providerId, ...changes });
  const list = async () =>
    (await shared.operator.get<Body[]>("/tenant/oauth-config/list", { query: { tenantId } })).data;
  const breakColumn = (column: string) => {
    const { query, quote } = shared.instance.database;
    return query(
      `update ${quote("tenantOauthConfig")} set ${quote(column)} = 'broken' where ${quote("tenantId")} = ?`,
      [tenantId],
    );
  };

  const MOVES: [string, Options, Options][] = [
    ["gitlab", HOME, AWAY],
    ["gitlab", HOME, null],
    ["gitlab", HOME, {}],
    ["gitlab", HOME, { issuer: "https://gitlab.acme.example/git" }],
    ["gitlab", null, AWAY],
    ["gitlab", { prompt: "login" }, { prompt: "login", issuer: "https://gitlab.com" }],
    ["paybin", null, { issuer: "https://evil.example" }],
    ["microsoft", { tenantId: "acme" }, { tenantId: "evil" }],
    ["microsoft", null, { authority: "https://evil.ciamlogin.com" }],
    ["cognito", POOL, { ...POOL, domain: "evil.auth.eu-west-1.amazoncognito.com" }],
    ["cognito", POOL, { ...POOL, region: "eu-west-2" }],
    ["salesforce", { environment: "sandbox" }, { loginUrl: "evil.my.salesforce.com" }],
    ["salesforce", { environment: "sandbox" }, { environment: "production" }],
    ["paypal", { environment: "sandbox" }, { environment: "live" }],
  ];

  it.each(MOVES)("%s from %j to %j needs the secret", async (providerId, from, to) => {
    const { data: before } = await register(providerId, from);
    const refused = await update(providerId, { options: to, enabled: false });
    expect([refused.status, refused.code]).toEqual([400, "INVALID_PROVIDER_OPTIONS"]);
    expect(refused.data.message).toContain("clientSecret");
    expect(await list()).toEqual([before]);
  });

  it.each(MOVES)("control: %s from %j to %j is fine with it", async (providerId, from, to) => {
    await register(providerId, from);
    const { clientSecret } = CLIENT;
    const { status, data } = await update(providerId, { options: to, clientSecret });
    expect([status, data.options]).toEqual([200, to]);
  });

  it.each<[string, Options, object]>([
    ["gitlab", HOME, { scopes: ["api"] }],
    ["gitlab", HOME, { enabled: false }],
    ["gitlab", HOME, { redirectURI: null }],
    ["gitlab", HOME, { options: HOME }],
    ["gitlab", HOME, { options: { issuer: `${HOME.issuer}/`, prompt: "login" } }],
    ["gitlab", null, { options: { disableSignUp: true } }],
    ["gitlab", { prompt: "login" }, { options: null }],
    ["cognito", POOL, { options: { ...POOL, prompt: "login" } }],
    ["google", { hd: "acme.example" }, { options: { hd: "other.example" } }],
    ["google", { hd: "acme.example" }, { options: null }],
  ])("control: %s at %j stays where it is with %j", async (providerId, options, changes) => {
    await register(providerId, options);
    const { status, code } = await update(providerId, changes);
    expect([status, code]).toEqual([200, undefined]);
  });

  it.each(["clientId", "clientSecret", "options"])(
    "a config whose %s cannot be read needs it for any options that could move it",
    async (column) => {
      await register("gitlab", HOME);
      await breakColumn(column);
      for (const options of [HOME, AWAY, {}, null]) {
        const { status, code } = await update("gitlab", { options });
        expect([options, status, code]).toEqual([options, 400, "INVALID_PROVIDER_OPTIONS"]);
      }
      expect((await update("gitlab", { enabled: false })).status).toBe(200);
      const { clientSecret } = CLIENT;
      expect((await update("gitlab", { options: AWAY, clientSecret })).status).toBe(200);
    },
  );

  it("control: an unreadable config of a provider that lives in one place does not", async () => {
    await register("google", { hd: "acme.example" });
    await breakColumn("options");
    const { status, data } = await update("google", { options: { hd: "acme.example" } });
    expect([status, data.readable]).toEqual([200, true]);
  });

  /** Something happens after the first look at the config, and before anything is written. */
  function afterFirstLook(happens: () => Promise<unknown>) {
    const { adapter } = shared.instance.context;
    const findOne = adapter.findOne.bind(adapter);
    const looks = vi.fn();
    const spy = vi.spyOn(adapter, "findOne").mockImplementation(async (call) => {
      const row = await findOne(call);
      if (call.model === "tenantOauthConfig") looks();
      if (call.model === "tenantOauthConfig" && looks.mock.calls.length === 1) await happens();
      return row as never;
    });
    onTestFinished(() => spy.mockRestore());
    return looks;
  }

  it("races: a secret that is stored in between is not sent to the old place", async () => {
    await register("gitlab", AWAY, { clientId: "evil-client", clientSecret: "evil-secret" });
    const looks = afterFirstLook(() => register("gitlab", HOME));
    const refused = await update("gitlab", { options: { ...AWAY, prompt: "login" } });
    expect([refused.status, refused.code]).toEqual([400, "INVALID_PROVIDER_OPTIONS"]);
    expect(looks.mock.calls.length).toBeGreaterThan(1);
    expect(await list()).toMatchObject([{ clientId: CLIENT.clientId, options: HOME }]);
  });

  it("control: races: a new secret for the same place is no obstacle", async () => {
    await register("gitlab", HOME);
    afterFirstLook(() => update("gitlab", { clientSecret: "the-next-secret" }));
    const { status } = await update("gitlab", { options: { ...HOME, prompt: "login" } });
    expect(status).toBe(200);
    expect(await list()).toMatchObject([{ options: { ...HOME, prompt: "login" } }]);
  });
});
