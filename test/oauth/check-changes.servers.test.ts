import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { databases } from "../support/database";
import { providerAnswers } from "../support/provider-answers";
import { type OAuthTenant, outcome, shareWorld } from "../support/world";

const { clientSecret, ...ID } = { clientId: "acme-client", clientSecret: "acme-secret" };
const POOL = providerAnswers.cognito.options ?? {};
const HOME = { issuer: "https://gitlab.acme.example" };
const AWAY = { issuer: "https://evil.example" };
const SANDBOX = { environment: "sandbox" };
const HD = { hd: "acme.example" };

type Options = Record<string, unknown> | null;

describe.each(databases)("on %s: threat: a stored secret is sent to another host", (kind) => {
  const trustedProviderHosts = ["gitlab.acme.example", "evil.example"];
  const world = shareWorld({ tenant: { trustedProviderHosts } }, kind);
  let acme: OAuthTenant;

  beforeEach(async () => {
    acme = await world.oauthTenant();
  });

  const register = (providerId: string, options: Options, more: object = {}) =>
    acme.register({ providerId, ...ID, clientSecret, options, ...more });
  const refused = [400, "INVALID_PROVIDER_OPTIONS"];

  it.each<[string, Options, Options]>([
    ["gitlab", HOME, AWAY],
    ["gitlab", HOME, null],
    ["gitlab", HOME, {}],
    ["gitlab", HOME, { issuer: "https://gitlab.acme.example/git" }],
    ["gitlab", null, AWAY],
    ["gitlab", { prompt: "login" }, { prompt: "login", issuer: "https://gitlab.com" }],
    ["paybin", null, AWAY],
    ["microsoft", { tenantId: "acme" }, { tenantId: "evil" }],
    ["microsoft", null, { authority: "https://evil.ciamlogin.com" }],
    ["cognito", POOL, { ...POOL, domain: "evil.auth.eu-west-1.amazoncognito.com" }],
    ["cognito", POOL, { ...POOL, region: "eu-west-2" }],
    ["salesforce", SANDBOX, { loginUrl: "evil.my.salesforce.com" }],
    ["salesforce", SANDBOX, { environment: "production" }],
    ["paypal", SANDBOX, { environment: "live" }],
  ])("%s from %j to %j needs the secret", async (providerId, from, to) => {
    const { data: before } = await register(providerId, from);
    const without = await acme.update({ providerId, options: to, enabled: false });
    expect(outcome(without)).toEqual(refused);
    expect(without.data.message).toContain("clientSecret");
    expect(await acme.list()).toEqual([before]);
    const { status, data } = await acme.update({ providerId, options: to, clientSecret });
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
    ["google", HD, { options: { hd: "other.example" } }],
    ["google", HD, { options: null }],
  ])("control: %s at %j stays where it is with %j", async (providerId, options, changes) => {
    await register(providerId, options);
    expect((await acme.update({ providerId, ...changes })).status).toBe(200);
  });

  it.each(["clientId", "clientSecret", "options"])(
    "a config whose %s cannot be read needs it for any options that could move it",
    async (column) => {
      const providerId = "gitlab";
      await register(providerId, HOME);
      await acme.spoil(column, "broken");
      for (const options of [HOME, AWAY, {}, null]) {
        expect(outcome(await acme.update({ providerId, options }))).toEqual(refused);
      }
      expect((await acme.update({ providerId, enabled: false })).status).toBe(200);
      expect((await acme.update({ providerId, options: AWAY, clientSecret })).status).toBe(200);
    },
  );

  it("control: an unreadable config of a provider that lives in one place does not", async () => {
    await register("google", HD);
    await acme.spoil("options", "broken");
    const { status, data } = await acme.update({ providerId: "google", options: HD });
    expect([status, data.readable]).toEqual([200, true]);
  });

  /** Something happens after the first look at the config, and before anything is written. */
  function afterFirstLook(happens: () => Promise<unknown>) {
    const { adapter } = world.context;
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
    const options = { ...AWAY, prompt: "login" };
    expect(outcome(await acme.update({ providerId: "gitlab", options }))).toEqual(refused);
    expect(looks.mock.calls.length).toBeGreaterThan(1);
    expect(await acme.list()).toMatchObject([{ ...ID, options: HOME }]);
  });

  it("control: races: a new secret for the same place is no obstacle", async () => {
    await register("gitlab", HOME);
    const next = { providerId: "gitlab", clientSecret: "the-next-secret" };
    afterFirstLook(() => acme.update(next));
    const options = { ...HOME, prompt: "login" };
    expect((await acme.update({ providerId: "gitlab", options })).status).toBe(200);
    expect(await acme.list()).toMatchObject([{ options }]);
  });
});
