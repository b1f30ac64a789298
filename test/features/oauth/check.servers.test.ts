import { socialProviderList } from "better-auth/social-providers";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { OAuthConfigCheck } from "../../../src/index";
import { databases } from "../../support/database";
import { BASE_URL } from "../../support/instance";
import { sample } from "../../support/matrix";
import { fakeNetwork, type Sent, unreachable } from "../../support/providers";
import { outcome, shareWorld } from "../../support/world";
import { createOAuthTenant, tenantOfEachTest } from "./tenant";

const GITLAB = "https://gitlab.acme.example";
const GOOGLE = { providerId: "google", clientId: "acme-client", clientSecret: "acme-secret" };
const CALLBACK = `${BASE_URL}/tenant/callback`;
const ADDRESSES = {
  authorization: "https://accounts.google.com/o/oauth2/v2/auth",
  token: "https://oauth2.googleapis.com/token",
  discovery: "https://accounts.google.com/.well-known/openid-configuration",
};
type Address = keyof typeof ADDRESSES;
const COGNITO = { domain: "a.amazoncognito.com", region: "eu-west-1", userPoolId: "eu-west-1_App" };

const world = shareWorld({ tenant: { trustedProviderHosts: ["gitlab.acme.example"] } });
const acme = tenantOfEachTest(world);

/** A provider that is as it should be: it knows the client, and does not know the code. */
const GOOD: Record<Address, () => Response> = {
  authorization: () => new Response("Sign in", { status: 400 }),
  token: () => Response.json({ error: "invalid_grant" }, { status: 400 }),
  discovery: () => Response.json({ issuer: "https://accounts.google.com" }),
};

const withoutQuery = (url: string) => url.replace(/\?.*/, "");

/** Google, good but for what is given. */
const google = (bad: Partial<Record<Address, () => Response | Promise<Response>>> = {}) => {
  const answers = { ...GOOD, ...bad };
  return fakeNetwork(({ url }) => {
    const found = Object.entries(ADDRESSES).find(([, address]) => address === withoutQuery(url));
    return found ? answers[found[0] as Address]() : unreachable();
  });
};

const badIn = ({ findings }: OAuthConfigCheck) =>
  findings.flatMap(({ subject, ok }) => (ok === false ? [subject] : []));
const check = async (body: object = GOOGLE) => (await acme.check(body)).data;
const findingOf = async (wanted: string) =>
  (await check()).findings.find(({ subject }) => subject === wanted);
const said = ({ url, headers, body }: Sent) => [url, ...[...headers].map(String), body].join("\n");

describe("a good config", () => {
  it.each(["in the body", "stored", "stored and disabled"])("%s: all is well", async (where) => {
    if (where !== "in the body") await acme.register({ ...GOOGLE, enabled: where === "stored" });
    const sent = google();
    const { status, data } = await world.unchanged(() =>
      acme.check(where === "in the body" ? GOOGLE : { providerId: "google" }),
    );
    expect(status).toBe(200);
    expect(data).toEqual({
      providerId: "google",
      ok: true,
      redirectURI: `${CALLBACK}/google`,
      findings: [
        { subject: "options", ok: true, message: expect.any(String) },
        { subject: "authorization", ok: true, message: expect.any(String) },
        { subject: "token", ok: true, message: "Credentials accepted" },
        { subject: "discovery", ok: true, message: expect.any(String) },
        // Google's page says nothing about it.
        { subject: "redirectURI", ok: null, message: expect.stringContaining("cannot be seen") },
      ],
    });
    // It asks three times, and hands the secret to the token address alone.
    const asked = sent.map(({ url }) => withoutQuery(url));
    expect(asked.sort()).toEqual(Object.values(ADDRESSES).sort());
    const secretive = sent.filter((request) => said(request).includes(GOOGLE.clientSecret));
    expect(secretive.map(({ url }) => url)).toEqual([ADDRESSES.token]);
    expect(secretive.map(({ body }) => body).join()).toContain("grant_type=authorization_code");
    // Threat: into the network: a redirect is never followed.
    expect(sent.map(({ redirect }) => redirect)).not.toContain("follow");
  });

  it("the stored one is the tenant's own, with its options and redirect URI", async () => {
    const redirectURI = `https://acme.example/back?tenant=${acme.id}`;
    const options = { issuer: GITLAB };
    await acme.register({ ...GOOGLE, providerId: "gitlab", options, redirectURI });
    const sent = fakeNetwork(({ url }) =>
      url.endsWith("/oauth/token") ? GOOD.token() : Response.json({ issuer: GITLAB }),
    );
    expect(await check({ providerId: "gitlab" })).toMatchObject({ ok: true, redirectURI });
    const paths = ["/.well-known/openid-configuration", "/oauth/authorize", "/oauth/token"];
    expect(sent.map(({ url }) => withoutQuery(url)).sort()).toEqual(
      paths.map((path) => GITLAB + path),
    );
    const form = new URLSearchParams(sent.find(({ method }) => method === "POST")?.body);
    expect(Object.fromEntries(form)).toMatchObject({
      client_id: GOOGLE.clientId,
      client_secret: GOOGLE.clientSecret,
      redirect_uri: redirectURI,
    });
  });
});

describe("what can be wrong", () => {
  const CLIENT_UNKNOWN = "The provider does not know this client id and secret";
  const tokenSays = (status: number, error?: string) => ({
    token: () => {
      const told = { error, error_description: `no such secret: ${GOOGLE.clientSecret}` };
      return Response.json(told, { status });
    },
  });
  const broken = () => new Response("out of order", { status: 500 });

  it.each<[string, Parameters<typeof google>[0], bad: Address, message?: string]>([
    ["invalid_client", tokenSays(401, "invalid_client"), "token", CLIENT_UNKNOWN],
    ["it with another status", tokenSays(400, "invalid_client"), "token", CLIENT_UNKNOWN],
    ["unauthorized_client", tokenSays(400, "unauthorized_client"), "token", CLIENT_UNKNOWN],
    ["401 without a word", tokenSays(401), "token", CLIENT_UNKNOWN],
    ["another address", tokenSays(404), "token", "The address answers with 404"],
    ["no tokens today", { token: broken }, "token"],
    ["nobody to give tokens", { token: unreachable }, "token"],
    ["a broken page", { authorization: broken }, "authorization"],
    ["no page", { authorization: unreachable }, "authorization"],
    ["a broken discovery", { discovery: broken }, "discovery"],
    ["a page for a discovery", { discovery: () => new Response("<html></html>") }, "discovery"],
    ["no issuer in it", { discovery: () => Response.json({ issuer: 1 }) }, "discovery"],
    ["nothing in it", { discovery: () => Response.json(null) }, "discovery"],
    ["one elsewhere", { discovery: () => Response.redirect("https://else.example") }, "discovery"],
  ])("%s", async (_, answers, bad, message) => {
    google(answers);
    const data = await check();
    expect([data.ok, badIn(data)]).toEqual([false, [bad]]);
    if (message) expect(data.findings[2]?.message).toBe(message);
  });

  it("no endpoint can be reached", async () => {
    fakeNetwork();
    expect((await check()).findings.map(({ message }) => message)).toEqual([
      "The options are complete",
      ...Array.from({ length: 4 }, () => "The provider cannot be reached"),
    ]);
  });

  /** What is given up, and a clock that the test moves. */
  function spyOnTimeouts() {
    const timeouts: number[] = [];
    const spy = vi.spyOn(AbortSignal, "timeout").mockImplementation((milliseconds) => {
      timeouts.push(milliseconds);
      return new AbortController().signal;
    });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => {
      spy.mockRestore();
      vi.useRealTimers();
    });
    return timeouts;
  }

  it("the provider takes its time", async () => {
    const timeouts = spyOnTimeouts();
    const never = () => new Promise<Response>(() => {});
    const sent = google({ authorization: never, token: never, discovery: never });
    const checking = check();
    await vi.waitUntil(() => sent.length === 3, { interval: 1 });
    await vi.advanceTimersByTimeAsync(5000);
    const data = await checking;
    expect(badIn(data)).toEqual(["authorization", "token", "discovery"]);
    for (const { message } of data.findings.slice(1)) {
      expect(message).toBe("The provider does not answer in time");
    }
    // What nobody waits for any more is given up.
    expect(timeouts).toEqual([5000, 5000]);
  });

  it("an answer that never ends is given up as well", async () => {
    const timeouts = spyOnTimeouts();
    const cancel = vi.fn();
    const pull = (stream: ReadableStreamDefaultController) =>
      stream.enqueue(new TextEncoder().encode("x".repeat(1024)));
    google({ authorization: () => new Response(new ReadableStream({ pull, cancel })) });
    expect((await check()).ok).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
    expect([timeouts.length, cancel.mock.calls.length]).toEqual([2, 1]);
  });

  it("credentials that cannot be read any more", async () => {
    await acme.register(GOOGLE);
    await acme.spoil("clientSecret", "00ff00ff-broken");
    const sent = fakeNetwork();
    expect(await check({ providerId: "google" })).toMatchObject({
      ok: false,
      findings: [{ subject: "options", ok: false, code: "OAUTH_CREDENTIAL_DECRYPT_FAILED" }],
    });
    expect(sent).toEqual([]);
  });
});

it.each<[string, object, string]>([
  ["an unknown provider", { providerId: "nobody" }, "UNSUPPORTED_PROVIDER"],
  ["a bad redirect URI", { redirectURI: "javascript:alert(1)" }, "INVALID_REDIRECT_URI"],
  ["an unknown option", { options: { unheardOf: 1 } }, "INVALID_PROVIDER_OPTIONS"],
  [
    "a strange host",
    { providerId: "gitlab", options: { issuer: "http://169.254.169.254" } },
    "UNTRUSTED_PROVIDER_HOST",
  ],
])("%s is found before anything is asked, with or without credentials", async (...row) => {
  const [, changes, code] = row;
  const sent = fakeNetwork();
  for (const client of [GOOGLE, { providerId: "google" }]) {
    const { status, data } = await acme.check({ ...client, ...changes });
    expect([status, data.ok]).toEqual([200, false]);
    expect(data.findings).toEqual([
      { subject: "options", ok: false, code, message: expect.any(String) },
    ]);
  }
  expect(sent).toEqual([]);
});

describe("before there is a config", () => {
  it("it tells what to register, calls no provider and is not ok", async () => {
    await acme.register({ ...GOOGLE, providerId: "github" });
    await (await createOAuthTenant(world)).register(GOOGLE);
    const sent = fakeNetwork();
    const message = "There is no client id and secret yet";
    expect(await check({ providerId: "google" })).toEqual({
      providerId: "google",
      ok: false,
      redirectURI: `${CALLBACK}/google`,
      findings: [
        { subject: "options", ok: true, message: expect.any(String) },
        { subject: "token", ok: false, code: "OAUTH_CONFIG_NOT_FOUND", message },
      ],
    });
    expect(sent).toEqual([]);
  });

  it("it says so by the options as well: a provider of the tenant's own has its own address", async () => {
    const options = { issuer: GITLAB };
    const own = await check({ providerId: "gitlab", options });
    expect(own.redirectURI).toBe(`${CALLBACK}/gitlab?tenant=${acme.id}`);
    await acme.register({ ...GOOGLE, providerId: "gitlab", options });
    const sent = fakeNetwork();
    const usual = { ok: false, redirectURI: `${CALLBACK}/gitlab` };
    expect(await check({ providerId: "gitlab", options: {} })).toMatchObject(usual);
    expect(sent).toEqual([]);
  });
});

describe("what could not be seen", () => {
  it("whether the credentials are accepted, unless the provider says so", async () => {
    for (const body of [{ error: "invalid_request" }, {}]) {
      google({ token: () => Response.json(body, { status: 400 }) });
      expect(await findingOf("token")).toMatchObject({ ok: null });
      expect((await check()).ok).toBe(true);
    }
  });

  it("whether the redirect URI is registered, unless the provider leads back to it", async () => {
    const redirectURI = `${CALLBACK}/google`;
    const leadTo = (location: string) => () => Response.redirect(location);
    const sent = google({ authorization: leadTo(`${redirectURI}?error=login_required`) });
    expect(await findingOf("redirectURI")).toEqual({
      subject: "redirectURI",
      ok: true,
      message: "The redirect URI is registered",
    });
    const asked = sent.find(({ url }) => url.startsWith(ADDRESSES.authorization));
    const query = Object.fromEntries(new URL(asked?.url ?? "").searchParams);
    expect(query).toMatchObject({ redirect_uri: redirectURI, prompt: "none" });
    google({ authorization: leadTo("https://accounts.google.com/signin/oauth/error") });
    expect(await findingOf("redirectURI")).toMatchObject({ ok: null });
  });
});

it("every provider is good when it refuses the code alone, and not when no server answers", async () => {
  for (const providerId of sample(socialProviderList, 9)) {
    const options = providerId === "cognito" ? COGNITO : undefined;
    const client = { ...GOOGLE, providerId, options };
    const sent = fakeNetwork(({ method, url }) =>
      method === "POST" || url.includes("access_token")
        ? GOOD.token()
        : Response.json({ issuer: "https://issuer.example" }),
    );
    const good = await check(client);
    expect([providerId, good.ok, badIn(good)]).toEqual([providerId, true, []]);
    expect(sent.length).toBeGreaterThan(1);
    fakeNetwork();
    expect(badIn(await check(client))).toContain("authorization");
  }
});

describe.each(databases)("on %s: threat: a stored secret is sent to another host", (kind) => {
  const trustedProviderHosts = ["gitlab.acme.example", "evil.example"];
  const world = shareWorld({ tenant: { trustedProviderHosts } }, kind);
  const acme = tenantOfEachTest(world);
  const HOME = { issuer: GITLAB };
  const AWAY = { issuer: "https://evil.example" };
  const HD = { hd: "acme.example" };
  const { clientId, clientSecret } = GOOGLE;
  const register = (providerId: string, options: object | null, more: object = {}) =>
    acme.register({ providerId, clientId, clientSecret, options, ...more });
  const refused = [400, "INVALID_PROVIDER_OPTIONS"];

  it.each<[string, object | null, object | null]>([
    ["gitlab", HOME, AWAY],
    ["gitlab", HOME, null],
    ["gitlab", null, AWAY],
    ["gitlab", {}, { issuer: "https://gitlab.com" }],
    ["paybin", {}, AWAY],
    ["microsoft", { tenantId: "acme" }, { tenantId: "evil" }],
    ["microsoft", {}, { authority: "https://evil.ciamlogin.com" }],
    ["cognito", COGNITO, { ...COGNITO, domain: "evil.amazoncognito.com" }],
    ["cognito", COGNITO, { ...COGNITO, region: "eu-west-2" }],
    ["cognito", COGNITO, { ...COGNITO, userPoolId: "eu-west-1_Evil" }],
    ["salesforce", { environment: "sandbox" }, { environment: "production" }],
    ["salesforce", {}, { loginUrl: "evil.my.salesforce.com" }],
    ["paypal", { environment: "sandbox" }, { environment: "live" }],
  ])("%s from %j to %j needs the secret", async (providerId, from, to) => {
    const { data: before } = await register(providerId, from);
    const without = await acme.update({ providerId, options: to, enabled: false });
    expect(outcome(without)).toEqual(refused);
    expect(without.data.message).toContain("clientSecret");
    expect(await acme.list()).toEqual([before]);
    const staying = { ...from, prompt: "login" };
    expect((await acme.update({ providerId, options: staying })).status).toBe(200);
    const { status, data } = await acme.update({ providerId, options: to, clientSecret });
    expect([status, data.options]).toEqual([200, to]);
  });

  it("control: where it stays at its host, it does not", async () => {
    await register("gitlab", HOME);
    const moreOf = { options: { issuer: `${HOME.issuer}/`, prompt: "login" } };
    for (const changes of [{ scopes: ["api"] }, { redirectURI: null }, { options: HOME }, moreOf]) {
      expect((await acme.update({ providerId: "gitlab", ...changes })).status).toBe(200);
    }
    await register("google", HD);
    expect((await acme.update({ providerId: "google", options: null })).status).toBe(200);
  });

  it.each(["clientId", "clientSecret", "options"])(
    "a config whose %s cannot be read needs it for any options that could move it",
    async (column) => {
      await register("gitlab", HOME);
      await acme.spoil(column, "broken");
      const update = (changes: object) => acme.update({ providerId: "gitlab", ...changes });
      for (const options of [HOME, null]) {
        expect(outcome(await update({ options }))).toEqual(refused);
      }
      expect((await update({ enabled: false })).status).toBe(200);
      expect((await update({ options: AWAY, clientSecret })).status).toBe(200);
      // Control: one of a provider that lives in one place does not.
      await register("google", HD);
      await acme.spoil("options", "broken");
      const { status, data } = await acme.update({ providerId: "google", options: HD });
      expect([status, data.readable]).toEqual([200, true]);
    },
  );

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

  it("races: a secret that is stored in between is not sent to the old host", async () => {
    await register("gitlab", AWAY, { clientId: "evil-client", clientSecret: "evil-secret" });
    const looks = afterFirstLook(() => register("gitlab", HOME));
    const options = { ...AWAY, prompt: "login" };
    expect(outcome(await acme.update({ providerId: "gitlab", options }))).toEqual(refused);
    expect(looks.mock.calls.length).toBeGreaterThan(1);
    expect(await acme.list()).toMatchObject([{ clientId, options: HOME }]);
  });

  it("control: races: a new secret for the same host is no obstacle", async () => {
    await register("gitlab", HOME);
    afterFirstLook(() => acme.update({ providerId: "gitlab", clientSecret: "the-next-secret" }));
    const options = { ...HOME, prompt: "login" };
    expect((await acme.update({ providerId: "gitlab", options })).status).toBe(200);
    expect(await acme.list()).toMatchObject([{ options }]);
  });
});
