import { apiKey } from "@better-auth/api-key";
import { mcp } from "@better-auth/mcp";
import { oauthProvider } from "@better-auth/oauth-provider";
import { generateRandomString } from "better-auth/crypto";
import { generateCodeChallenge } from "better-auth/oauth2";
import { bearer, jwt, oneTimeToken } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { tenantInvitations } from "../../../src/features/invitations/index";
import { runInTenant } from "../../../src/index";
import type { Answer, Browser } from "../../support/browser";
import { databases } from "../../support/database";
import { BASE_URL, createInstance, PASSWORD } from "../../support/instance";
import {
  createWorld,
  EMAIL,
  expectRefused,
  queryOf,
  shareWorld,
  type Where,
  type World,
} from "../../support/world";

const BACK = "https://client.example/back";
const FORM = { headers: { "content-type": "application/x-www-form-urlencoded" } };
const form = (fields: Record<string, string>) => new URLSearchParams(fields).toString();

interface Client {
  client_id: string;
  client_secret: string;
}

const provider = () =>
  oauthProvider({
    loginPage: "/login",
    consentPage: "/consent",
    allowDynamicClientRegistration: true,
    allowUnauthenticatedClientRegistration: true,
  });

/** A world that signs people in at other people's applications, and what these do. */
function serverOf(world: World) {
  const authorization = (client_id: string, code_challenge: string) => ({
    client_id,
    response_type: "code",
    redirect_uri: BACK,
    scope: "openid email profile",
    state: "a-state",
    code_challenge,
    code_challenge_method: "S256",
  });

  return {
    /** An application of a developer's, who is a user of the platform. */
    async register(): Promise<Client> {
      const developer = await world.as("developer", "platform");
      const headers = new Headers({ cookie: developer.cookieHeader() });
      const secret = { token_endpoint_auth_method: "client_secret_post" };
      const scope = "openid email profile";
      const body = { redirect_uris: [BACK], skip_consent: true, scope, ...secret };
      const api = world.api as unknown as Record<string, (input: object) => Promise<Client>>;
      return api.adminCreateOAuthClient?.({ body, headers }) as Promise<Client>;
    },

    /** Sends somebody to the authorization server, as an application does. */
    async send(browser: Browser, { client_id }: Client, more: Record<string, string> = {}) {
      const verifier = generateRandomString(64);
      const challenge = await generateCodeChallenge(verifier);
      const query = { ...authorization(client_id, challenge), ...more };
      const answer = await browser.get("/oauth2/authorize", { query });
      return { answer, verifier };
    },

    /** What the application does with the code: no cookies, and no word about a tenant. */
    redeem: (
      client: Client,
      code: string,
      code_verifier: string,
      { where = "platform", ...more }: { where?: string; resource?: string } = {},
    ) => {
      const { client_id, client_secret } = client;
      const grant = { grant_type: "authorization_code", code, code_verifier, redirect_uri: BACK };
      const body = form({ ...grant, client_id, client_secret, ...more });
      return world.at(where).post<Record<string, string>>("/oauth2/token", body, FORM);
    },

    userInfo: (token: string | undefined, where: Where = "platform") => {
      const headers = { authorization: `Bearer ${token}` };
      return world.at(where).get<{ sub: string; email: string }>("/oauth2/userinfo", { headers });
    },

    /** Signs in with the query that the authorization server has signed for its login page. */
    signInFor: (browser: Browser, login: Answer, email: string) =>
      browser.post<Record<string, string>>("/sign-in/email", {
        email,
        password: PASSWORD,
        oauth_query: login.location?.split("?")[1],
      }),

    /** A public application that anybody registers, and the query signed for its login page. */
    async registerPublic() {
      const browser = world.at("platform");
      const body = { redirect_uris: [BACK], token_endpoint_auth_method: "none" };
      const { data } = await browser.post<Client>("/oauth2/register", body);
      const query = { ...authorization(data.client_id, "x".repeat(43)), scope: "openid email" };
      const login = await browser.get("/oauth2/authorize", { query });
      expect(login.location).toMatch(/^\/login\?/);
      return { query, oauth_query: login.location?.split("?")[1] ?? "" };
    },
  };
}

/** The code that an answer leads back to the application with. */
function codeIn(location: string | null | undefined): string | undefined {
  if (!location?.startsWith(BACK)) return undefined;
  const { code, state } = queryOf(location);
  expect(state).toBe("a-state");
  return code;
}

describe.each(databases)("oauth-provider on the platform, %s", (database) => {
  const world = shareWorld({ plugins: [jwt(), provider()] }, database);
  const { register, send, redeem, userInfo, signInFor } = serverOf(world);

  it("signs platform users in at an application, and no users of tenants", async () => {
    const client = await register();
    const jane = await world.as("jane", "platform");
    const { answer, verifier } = await send(jane, client);
    const code = codeIn(answer.location) ?? "";
    const elsewhere = await redeem(client, code, verifier, { where: "acme" });
    expectRefused(elsewhere, 403, "PLATFORM_ONLY");
    const { data, status } = await redeem(client, code, verifier);
    expect(status, JSON.stringify(data)).toBe(200);
    expectRefused(await userInfo(data.access_token, "acme"), 403, "PLATFORM_ONLY");
    const info = await userInfo(data.access_token);
    expect(info.data).toMatchObject({ sub: jane.id, email: EMAIL });
  });

  it("goes on from the login page, also in the browser of a tenant's user", async () => {
    const client = await register();
    const { id } = await world.as("jane", "platform");
    const browser = world.at("platform", await world.as("jane", "acme"));
    const { answer, verifier } = await send(browser, client);
    const { data } = await signInFor(browser, answer, EMAIL);
    const tokens = await redeem(client, codeIn(data.url) ?? "", verifier);
    expect((await userInfo(tokens.data.access_token)).data.sub).toBe(id);
  });

  it("threat: no user of a tenant is authorized at an application, at any endpoint", async () => {
    const client = await register();
    const jane = await world.as("jane", "acme");
    const login = await send(world.at("platform"), client);
    const tenantId = String(world.ids.acme);
    await world.unchanged(async () => {
      for (const { answer } of [
        await send(jane, client),
        await send(world.at("platform"), client, { tenantId }),
        { answer: await signInFor(jane, login.answer, EMAIL) },
        { answer: await signInFor(world.at("acme"), login.answer, EMAIL) },
      ]) {
        expectRefused(answer, 403, "PLATFORM_ONLY");
      }
    });
  });

  it("threat: users of a tenant register no clients, and see none", async () => {
    const { client_id } = await register();
    const jane = await world.as("jane", "acme");
    const client = { redirect_uris: ["https://evil.example/back"] };
    for (const call of [
      () => jane.post("/oauth2/register", client),
      () => jane.post("/oauth2/delete-client", { client_id }),
      () => jane.get("/oauth2/public-client", { query: { client_id } }),
    ]) {
      expectRefused(await world.unchanged(call), 403, "PLATFORM_ONLY");
    }
  });

  it("server code inside a tenant meets an empty table, and makes nothing", async () => {
    await register();
    const { adapter } = world.context;
    const model = "oauthClient";
    const refused = { body: { code: "PLATFORM_ONLY" } };
    await world.unchanged(() =>
      runInTenant(String(world.ids.acme), async () => {
        expect(await adapter.findMany({ model })).toEqual([]);
        expect(await adapter.count({ model })).toBe(0);
        expect(await adapter.deleteMany({ model, where: [] })).toBe(0);
        await expect(register()).rejects.toMatchObject(refused);
        await expect(adapter.create({ model, data: {} })).rejects.toMatchObject(refused);
      }),
    );
  });

  it("users of a tenant can sign out", async () => {
    const jane = await world.signUp("acme", "leaving@example.com");
    const before = world.logs.length;
    expect((await jane.post("/sign-out")).status).toBe(200);
    expect(await world.whoIs(jane)).toBe(null);
    const errors = world.logs.slice(before).filter((line) => line.startsWith("error"));
    expect(errors).toEqual([]);
  });
});

describe.each(["shared", "per-tenant"] as const)("oauth-provider, %s cookies", (sessionCookies) => {
  const keys = apiKey({ enableSessionForAPIKeys: true, rateLimit: { enabled: false } });
  const world = shareWorld({
    plugins: [jwt(), provider(), bearer(), oneTimeToken(), keys],
    tenant: { scopedModels: ["apikey"], sessionCookies },
  });
  const { registerPublic } = serverOf(world);

  type Authorization = Awaited<ReturnType<typeof registerPublic>>;

  const callsWith = (browser: Browser, { query, oauth_query }: Authorization) => [
    () => browser.get("/oauth2/authorize", { query }),
    () => browser.post("/oauth2/authorize", form(query), FORM),
    () => browser.post("/oauth2/consent", { accept: true, oauth_query }),
    () => browser.post("/oauth2/continue", { selected: true, oauth_query }),
    () => browser.get("/oauth2/get-consents"),
    () => browser.post("/update-user", { name: "Changed", oauth_query }),
  ];

  it("R5: no credential of a tenant works there, at any endpoint", async () => {
    const client = await registerPublic();
    const jane = await world.as("jane", "acme");
    const { data } = await jane.post<{ key: string }>("/api-key/create", { name: "a key" });
    const renamed = world.at("platform");
    for (const [name, value] of jane.cookies) {
      renamed.cookies.set(name.replace(/(session_token).*/, "$1"), value);
    }
    for (const browser of [
      world.at("platform", jane),
      renamed,
      world.browser({ authorization: `Bearer ${jane.token}` }),
      world.browser({ "x-api-key": data.key }),
    ]) {
      for (const call of callsWith(browser, client)) {
        const { status, location } = await world.unchanged(call);
        if (status === 302) expect(location).toMatch(/^\/login\?/);
        else expect(status).toBe(401);
      }
    }
  });

  it("control: those of the platform are", async () => {
    const client = await registerPublic();
    for (const call of callsWith(await world.as("jane", "platform"), client)) {
      const { status, location } = await call();
      expect(location ?? "/consent").toMatch(/^\/consent/);
      expect(status).toBeLessThan(400);
    }
  });

  it("threat: no way into a tenant goes on to an application", async () => {
    const { oauth_query } = await registerPublic();
    const jane = await world.as("jane", "acme");
    const { data } = await jane.get<{ token: string }>("/one-time-token/generate");
    const person = { email: EMAIL, password: PASSWORD, tenantId: world.ids.acme, oauth_query };
    const unnamed = world.at("platform");
    const refused = await unnamed.post("/tenant/sign-in/email", person);
    expectRefused(refused, 403, "PLATFORM_ONLY");
    const token = { token: data.token, oauth_query };
    const verify = (browser: Browser) => browser.post("/one-time-token/verify", token);
    expectRefused(await verify(world.at("acme")), 403, "PLATFORM_ONLY");
    expectRefused(await verify(unnamed), 400);
    expect(await world.rowsIn("acme", "oauthConsent")).toEqual([]);
  });
});

it("threat: an invitation to a tenant leads to no application", async () => {
  const links: string[] = [];
  const invitations = tenantInvitations({ sendInvitationEmail: ({ url }) => void links.push(url) });
  const world = await createWorld({ plugins: [invitations, jwt(), provider()] });
  const { oauth_query } = await serverOf(world).registerPublic();
  const operator = await world.operator();
  const invitation = { tenantId: world.ids.acme, email: EMAIL };
  expect((await operator.post("/tenant/invitation/create", invitation)).status).toBe(200);
  const { token } = queryOf(links[0] ?? "");
  const body = { token, name: "Ada", password: PASSWORD };
  const accept = (more: object) =>
    world.at("platform").post("/tenant/invitation/accept", { ...body, ...more });
  expectRefused(await accept({ oauth_query }), 403, "PLATFORM_ONLY");
  expect(await world.rowsIn("acme", "user")).toEqual([]);
  expect((await accept({})).status).toBe(200);
});

it("threat: mcp() lets an assistant in for users of the platform, and for no user of a tenant", async () => {
  const resource = "http://localhost:3000/mcp";
  const plugin = mcp({ loginPage: "/login", consentPage: "/consent", resource });
  // As better-auth asks for it: the issuer is the authorization server.
  const world = await createWorld({ plugins: [jwt({ jwt: { issuer: BASE_URL } }), plugin] });
  const { register, send, redeem } = serverOf(world);
  const client = await register();
  const allowed = await send(await world.as("jane", "platform"), client, { resource });
  const code = codeIn(allowed.answer.location) ?? "";
  expect((await redeem(client, code, allowed.verifier, { resource })).status).toBe(200);
  const jane = await world.as("jane", "acme");
  expectRefused((await send(jane, client, { resource })).answer, 403, "PLATFORM_ONLY");
  const bare = await send(world.at("platform", jane), client, { resource });
  expect(bare.answer.location).toContain("/login");
});

it("R11: oauth-provider needs no decision, and takes none", async () => {
  const plugins = [jwt(), provider()];
  await createInstance({ plugins });
  for (const option of ["scopedModels", "sharedModels"] as const) {
    const tenant = { [option]: ["oauthClient"] };
    await expect(createInstance({ plugins, tenant })).rejects.toThrow(
      `tenantAuth(): ${option}: "oauthClient" needs no decision. Leave it out.`,
    );
  }
});
