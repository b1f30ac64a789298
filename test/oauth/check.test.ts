import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { socialProviderList } from "better-auth/social-providers";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { OAuthConfigCheck } from "../../src/index";
import { createInstance } from "../support/instance";
import { fakeNetwork, type Sent, unreachable } from "../support/network";
import { shareInstance } from "../support/shared";
import { neededBy } from "./option-sights";

const trustedProviderHosts = ["gitlab.acme.example"];
const shared = shareInstance({ tenant: { trustedProviderHosts } });
const GOOGLE = {
  providerId: "google",
  clientId: "acme-client",
  clientSecret: "acme-client-secret",
};
const ADDRESSES = {
  authorization: "https://accounts.google.com/o/oauth2/v2/auth",
  token: "https://oauth2.googleapis.com/token",
  discovery: "https://accounts.google.com/.well-known/openid-configuration",
};
type Address = keyof typeof ADDRESSES;

let tenantId: string;

beforeEach(async () => {
  tenantId = (await shared.instance.createTenant()).id;
});

const check = (body: object = GOOGLE, options = {}) =>
  shared.operator.post<OAuthConfigCheck & { message?: string }>(
    "/tenant/oauth-config/check",
    { tenantId, ...body },
    options,
  );
const register = (body: object = GOOGLE) =>
  shared.operator.post("/tenant/oauth-config/register", { tenantId, ...body });

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

/** Which findings are not good. */
const badIn = ({ data }: { data: OAuthConfigCheck }) =>
  data.findings.flatMap(({ subject, ok }) => (ok === false ? [subject] : []));

const dump = async () => {
  const { query } = shared.instance.database;
  const tables = await query("select name from sqlite_master where type = 'table'");
  const names = tables.map(({ name }) => String(name));
  return Promise.all(names.map((name) => query(`select * from "${name}"`)));
};

describe("a good config", () => {
  it.each(["in the body", "stored", "stored and disabled"])("%s: all is well", async (where) => {
    if (where !== "in the body") await register({ ...GOOGLE, enabled: where === "stored" });
    const sent = google();
    const before = await dump();
    const answer = await check(where === "in the body" ? GOOGLE : { providerId: "google" });
    expect(answer.status).toBe(200);
    expect(answer.data).toEqual({
      providerId: "google",
      ok: true,
      redirectURI: "http://localhost:3000/api/auth/tenant/callback/google",
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
    expect(said(secretive[0])).toContain("grant_type=authorization_code");
    // It creates nothing.
    expect(await dump()).toEqual(before);
    await expectNothingTold(answer);
  });

  it("the stored one is the tenant's own, with its options, scopes and redirect URI", async () => {
    const issuer = "https://gitlab.acme.example";
    const redirectURI = `https://acme.example/back?tenant=${tenantId}`;
    await register({ ...GOOGLE, providerId: "gitlab", options: { issuer }, redirectURI });
    const sent = fakeNetwork(({ url }) =>
      url.endsWith("/oauth/token") ? GOOD.token() : Response.json({ issuer }),
    );
    const { data } = await check({ providerId: "gitlab" });
    expect(data).toMatchObject({ ok: true, redirectURI });
    expect(sent.map(({ url }) => withoutQuery(url)).sort()).toEqual([
      `${issuer}/.well-known/openid-configuration`,
      `${issuer}/oauth/authorize`,
      `${issuer}/oauth/token`,
    ]);
    const form = new URLSearchParams(sent.find(({ method }) => method === "POST")?.body);
    expect(Object.fromEntries(form)).toMatchObject({
      client_id: GOOGLE.clientId,
      client_secret: GOOGLE.clientSecret,
      redirect_uri: redirectURI,
    });
  });

  it.each(["query", "header"])("R1: the tenant can be named by the %s", async (by) => {
    await register();
    google();
    const naming =
      by === "query" ? { query: { tenantId } } : { headers: { "x-tenant-id": tenantId } };
    const { data } = await check({ tenantId: undefined, providerId: "google" }, naming);
    expect(data.ok).toBe(true);
  });
});

describe("what can be wrong", () => {
  it("nobody is there", async () => {
    fakeNetwork();
    const answer = await check();
    expect(answer.data.ok).toBe(false);
    expect(badIn(answer)).toEqual(["authorization", "token", "discovery"]);
    expect(answer.data.findings.map(({ message }) => message)).toEqual([
      "The options are complete",
      ...Array.from({ length: 4 }, () => "The provider cannot be reached"),
    ]);
  });

  it.each(Object.keys(ADDRESSES) as Address[])("only %s is out of order", async (address) => {
    for (const status of [500, 502, 503]) {
      google({ [address]: () => new Response("out of order", { status }) });
      expect(badIn(await check())).toEqual([address]);
    }
    google({ [address]: unreachable });
    expect(badIn(await check())).toEqual([address]);
  });

  it.each<[string, number, object]>([
    ["invalid_client", 401, { error: "invalid_client" }],
    ["invalid_client with another status", 400, { error: "invalid_client" }],
    ["unauthorized_client", 400, { error: "unauthorized_client" }],
    ["no word at all", 401, {}],
  ])("the provider does not know the client: %s", async (_, status, body) => {
    const told = { ...body, error_description: `no such secret: ${GOOGLE.clientSecret}` };
    google({ token: () => Response.json(told, { status }) });
    const answer = await check();
    expect(badIn(answer)).toEqual(["token"]);
    expect(answer.data.findings[2]?.message).toBe(
      "The provider does not know this client id and secret",
    );
    await expectNothingTold(answer);
  });

  it.each([404, 405, 410])("the token address is another: %d", async (status) => {
    google({ token: () => new Response("not here", { status }) });
    expect(badIn(await check())).toEqual(["token"]);
  });

  it.each<[string, () => Response]>([
    ["404", () => new Response("not here", { status: 404 })],
    ["a page", () => new Response("<html>welcome</html>")],
    ["no issuer", () => Response.json({ token_endpoint: ADDRESSES.token })],
    ["a number for an issuer", () => Response.json({ issuer: 1 })],
    ["null", () => Response.json(null)],
    ["nothing", () => new Response(null, { status: 204 })],
    ["elsewhere", () => Response.redirect("https://elsewhere.example")],
  ])("there is no discovery document: %s", async (_, discovery) => {
    google({ discovery });
    expect(badIn(await check())).toEqual(["discovery"]);
  });

  it("the provider takes its time", async () => {
    const signals: number[] = [];
    const timeout = vi.spyOn(AbortSignal, "timeout").mockImplementation((milliseconds) => {
      signals.push(milliseconds);
      return new AbortController().signal;
    });
    onTestFinished(() => timeout.mockRestore());
    const never = () => new Promise<Response>(() => {});
    const sent = google({ authorization: never, token: never, discovery: never });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const checking = check();
    await vi.waitUntil(() => sent.length === 3, { interval: 1 });
    await vi.advanceTimersByTimeAsync(5000);
    const answer = await checking;
    expect(badIn(answer)).toEqual(["authorization", "token", "discovery"]);
    for (const { message } of answer.data.findings.slice(1)) {
      expect(message).toBe("The provider does not answer in time");
    }
    // What nobody waits for any more is given up.
    expect(signals).toEqual([5000, 5000]);
  });

  it("an answer that never ends is given up as well", async () => {
    const controllers: AbortController[] = [];
    const timeout = vi.spyOn(AbortSignal, "timeout").mockImplementation(() => {
      const controller = new AbortController();
      controllers.push(controller);
      return controller.signal;
    });
    onTestFinished(() => timeout.mockRestore());
    let cancelled = 0;
    const endless = () =>
      new Response(
        new ReadableStream({
          pull: (stream) => stream.enqueue(new TextEncoder().encode("x".repeat(1024))),
          cancel: () => void cancelled++,
        }),
      );
    google({ authorization: endless });
    expect((await check()).data.ok).toBe(true);
    expect([controllers.length, cancelled]).toEqual([2, 1]);
  });
});

describe("the options", () => {
  it.each<[string, object, string]>([
    ["an unknown provider", { providerId: "nobody" }, "UNSUPPORTED_PROVIDER"],
    ["a bad redirect URI", { redirectURI: "javascript:alert(1)" }, "INVALID_REDIRECT_URI"],
    ["an unknown option", { options: { unheardOf: 1 } }, "INVALID_PROVIDER_OPTIONS"],
    ["a missing option", { providerId: "cognito" }, "INVALID_PROVIDER_OPTIONS"],
    [
      "a strange host",
      { providerId: "gitlab", options: { issuer: "http://169.254.169.254" } },
      "UNTRUSTED_PROVIDER_HOST",
    ],
  ])("%s is found before anything is asked", async (_, changes, code) => {
    const sent = fakeNetwork();
    const answer = await check({ ...GOOGLE, ...changes });
    expect([answer.status, answer.data.ok]).toEqual([200, false]);
    expect(answer.data.findings).toEqual([
      { subject: "options", ok: false, code, message: expect.any(String) },
    ]);
    expect(sent).toEqual([]);
    await expectNothingTold(answer);
  });

  it("that cannot be read any more are found as well", async () => {
    await register();
    const { query, quote } = shared.instance.database;
    await query(
      `update ${quote("tenantOauthConfig")} set ${quote("clientSecret")} = ? where ${quote("tenantId")} = ?`,
      ["00ff00ff-broken", tenantId],
    );
    const sent = fakeNetwork();
    const answer = await check({ providerId: "google" });
    expect(answer.data).toMatchObject({
      ok: false,
      findings: [{ subject: "options", ok: false, code: "OAUTH_CREDENTIAL_DECRYPT_FAILED" }],
    });
    expect(sent).toEqual([]);
    await expectNothingTold(answer);
  });

  it.each([
    { clientId: "id" },
    { clientSecret: "secret" },
    { providerId: "goog\u0000le" },
    { clientId: "id", options: { hd: "*" } },
    { clientId: "", clientSecret: "" },
    { clientId: "id", clientSecret: "secret", options: [] },
  ])("half a config is none: %j", async (part) => {
    await register();
    const sent = fakeNetwork();
    const answer = await check({ providerId: "google", ...part });
    expect([answer.status, answer.code]).toEqual([400, "VALIDATION_ERROR"]);
    expect(sent).toEqual([]);
  });

  it("another tenant's config is not this tenant's", async () => {
    await register();
    const { id } = await shared.instance.createTenant();
    const sent = fakeNetwork();
    const { data } = await check({ tenantId: id, providerId: "google" });
    expect(data.findings).toMatchObject([{}, { code: "OAUTH_CONFIG_NOT_FOUND" }]);
    expect((await check({ tenantId: "nobody", providerId: "google" })).status).toBe(404);
    expect((await check({ tenantId: undefined, providerId: "google" })).status).toBe(400);
    expect(sent).toEqual([]);
  });
});

describe("before there is a config", () => {
  const CALLBACK = "http://localhost:3000/api/auth/tenant/callback";

  it("it tells what to register, asks nobody and is not ok", async () => {
    await register({ ...GOOGLE, providerId: "github" });
    const sent = fakeNetwork();
    const answer = await check({ providerId: "google" });
    expect(answer.data).toEqual({
      providerId: "google",
      ok: false,
      redirectURI: `${CALLBACK}/google`,
      findings: [
        { subject: "options", ok: true, message: expect.any(String) },
        {
          subject: "token",
          ok: false,
          code: "OAUTH_CONFIG_NOT_FOUND",
          message: "There is no client id and secret yet",
        },
      ],
    });
    expect(sent).toEqual([]);
  });

  it("it says so by the options as well: a provider of the tenant's own has its own address", async () => {
    const options = { issuer: "https://gitlab.acme.example" };
    const { data } = await check({ providerId: "gitlab", options });
    expect(data.redirectURI).toBe(`${CALLBACK}/gitlab?tenant=${tenantId}`);
    await register({ ...GOOGLE, providerId: "gitlab", options });
    const sent = fakeNetwork();
    const other = await check({ providerId: "gitlab", options: {} });
    expect(other.data).toMatchObject({ ok: false, redirectURI: `${CALLBACK}/gitlab` });
    expect(sent).toEqual([]);
  });

  it.each<[object, string]>([
    [{ providerId: "nobody" }, "UNSUPPORTED_PROVIDER"],
    [{ providerId: "cognito" }, "INVALID_PROVIDER_OPTIONS"],
    [{ providerId: "google", redirectURI: "javascript:alert(1)" }, "INVALID_REDIRECT_URI"],
    [
      { providerId: "gitlab", options: { issuer: "http://169.254.169.254" } },
      "UNTRUSTED_PROVIDER_HOST",
    ],
  ])("mistakes are found then already: %j", async (body, code) => {
    const { data } = await check(body);
    expect(data).toMatchObject({ ok: false, findings: [{ subject: "options", code }] });
  });
});

describe("what could not be seen", () => {
  const finding = async (subject: string) =>
    (await check()).data.findings.find((found) => found.subject === subject);

  it("whether the credentials are accepted, unless the provider says so", async () => {
    google();
    expect(await finding("token")).toMatchObject({ ok: true, message: "Credentials accepted" });
    for (const body of [{ error: "invalid_request" }, {}]) {
      google({ token: () => Response.json(body, { status: 400 }) });
      expect(await finding("token")).toMatchObject({ ok: null });
      expect((await check()).data.ok).toBe(true);
    }
  });

  it("whether the redirect URI is registered, unless the provider leads back to it", async () => {
    const redirectURI = "http://localhost:3000/api/auth/tenant/callback/google";
    const leadTo = (location: string) => () => Response.redirect(location);
    const sent = google({ authorization: leadTo(`${redirectURI}?error=login_required`) });
    expect(await finding("redirectURI")).toEqual({
      subject: "redirectURI",
      ok: true,
      message: "The redirect URI is registered",
    });
    const asked = sent.find(({ url }) => url.startsWith(ADDRESSES.authorization));
    const { searchParams } = new URL(asked?.url ?? "");
    expect(searchParams.get("redirect_uri")).toBe(redirectURI);
    expect(searchParams.get("prompt")).toBe("none");
    google({ authorization: leadTo("https://accounts.google.com/signin/oauth/error") });
    expect(await finding("redirectURI")).toMatchObject({ ok: null });
  });
});

describe("threat: into the network", () => {
  it("a redirect is never followed", async () => {
    const visits: string[] = [];
    const listen = async (answer: (path: string) => string | undefined) => {
      const server = createServer(({ url = "/" }, response) => {
        const location = answer(url);
        response.writeHead(location ? 307 : 200, location ? { location } : {}).end("{}");
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      onTestFinished(async () => {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      });
      return `127.0.0.1:${(server.address() as AddressInfo).port}`;
    };
    const inside = await listen((path) => void visits.push(`inside ${path}`));
    const outside = await listen((path) => {
      visits.push(path);
      return `http://${inside}${path}`;
    });
    const instance = await createInstance({ tenant: { trustedProviderHosts: [outside] } });
    const { id } = await instance.createTenant();
    const options = { issuer: `http://${outside}` };
    const result = await instance.api.checkTenantOAuthConfig({
      body: { ...GOOGLE, tenantId: id, providerId: "gitlab", options },
    });
    expect(visits.map(withoutQuery).sort()).toEqual([
      "/.well-known/openid-configuration",
      "/oauth/authorize",
      "/oauth/token",
    ]);
    expect(badIn({ data: result })).toContain("discovery");
  });
});

describe("who may not manage", () => {
  it("learns nothing, and asks nobody", async () => {
    await register();
    const sent = google();
    const person = (await shared.instance.signUp(tenantId)).browser;
    for (const target of [tenantId, "nobody"]) {
      for (const body of [GOOGLE, { providerId: "google" }, { providerId: "github" }]) {
        const path = "/tenant/oauth-config/check";
        const anonymous = await shared.instance.browser().post(path, { ...body, tenantId: target });
        expect([anonymous.status, anonymous.code]).toEqual([401, "UNAUTHORIZED"]);
        const user = await person.post(path, { ...body, tenantId: target });
        expect([user.status, user.code]).toEqual([403, "TENANT_MANAGEMENT_NOT_ALLOWED"]);
      }
    }
    expect(sent).toEqual([]);
  });
});

describe.each([...socialProviderList])("%s", (providerId) => {
  const client = { ...GOOGLE, providerId, options: neededBy(providerId) };
  const network = (token: () => Response) =>
    fakeNetwork(({ method, url }) => {
      if (method === "POST" || url.includes("access_token")) return token();
      return Response.json({ issuer: "https://issuer.example" });
    });

  it("is good when it refuses the code alone", async () => {
    const sent = network(GOOD.token);
    const answer = await check(client);
    expect([answer.data.ok, badIn(answer)]).toEqual([true, []]);
    expect(sent.length).toBeGreaterThan(1);
    await expectNothingTold(answer);
  });

  it("is not good when it cannot be reached", async () => {
    fakeNetwork();
    const answer = await check(client);
    expect(badIn(answer)).toContain("authorization");
    await expectNothingTold(answer);
  });
});

const said = (sent: Sent | undefined) =>
  sent ? [sent.url, ...[...sent.headers].map(String), sent.body].join("\n") : "";

/** Neither the secret nor how it is stored. */
async function expectNothingTold(answer: { data: unknown; headers: Headers }) {
  const text = JSON.stringify([answer.data, ...answer.headers]);
  const { query, quote } = shared.instance.database;
  const rows = await query(`select * from ${quote("tenantOauthConfig")}`);
  const ciphers = rows.flatMap((row) => [row.clientId, row.clientSecret].map(String));
  for (const secret of [GOOGLE.clientSecret, ...ciphers]) {
    if (text.includes(secret)) expect.fail("a secret shows in the answer");
  }
}
