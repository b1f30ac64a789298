import { mcp, requireMcpAuth } from "@better-auth/mcp";
import { jwt } from "better-auth/plugins";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { BASE_URL } from "../support/instance";
import { codeIn, createAuthorizationServer } from "./authorization-server";
import { expectRefused } from "./places";

const RESOURCE = "http://localhost:3000/mcp";

/** The platform with an MCP server behind it, which takes tokens for itself only. */
async function createMcpServer() {
  const server = await createAuthorizationServer(() => [
    // As better-auth asks for it: the issuer is the authorization server.
    jwt({ jwt: { issuer: BASE_URL } }),
    mcp({ loginPage: "/login", consentPage: "/consent", resource: RESOURCE }),
  ]);
  const { auth } = server.instance;
  onTestFinished(() => void vi.unstubAllGlobals());
  // The MCP server reads the keys over the network.
  vi.stubGlobal("fetch", (input: string | URL | Request, init?: RequestInit) =>
    auth.handler(new Request(input, init)),
  );
  const handler = requireMcpAuth(
    auth as unknown as Parameters<typeof requireMcpAuth>[0],
    async (_request, claims) => Response.json({ sub: claims.sub }),
    { resource: RESOURCE, issuer: BASE_URL },
  );
  /** Calls a tool, with a token or without. */
  const call = (token?: string) =>
    handler(
      new Request(RESOURCE, {
        method: "POST",
        headers: token ? { authorization: `Bearer ${token}` } : {},
      }),
    );
  return { ...server, call };
}

describe("mcp on the platform", () => {
  it("lets an assistant in for somebody of the platform", async () => {
    const { register, send, redeem, signUp, call } = await createMcpServer();
    const client = await register();
    const { browser, user } = await signUp("platform");
    const { answer, verifier } = await send(browser, client.client_id, { resource: RESOURCE });
    const { data } = await redeem(client, codeIn(answer.location) ?? "", verifier, {}, RESOURCE);
    const answered = await call(data.access_token);
    expect([answered.status, await answered.json()]).toEqual([200, { sub: user.id }]);
    expect((await call()).status).toBe(401);
  });
});

describe("mcp inside a tenant", () => {
  it("threat: lets no assistant in for somebody of a tenant", async () => {
    const { register, send, signUp, naming, instance } = await createMcpServer();
    const client = await register();
    const { browser } = await signUp("a");
    const named = await send(browser, client.client_id, { resource: RESOURCE });
    expectRefused(named.answer, 403, "PLATFORM_ONLY");
    const bare = await send(browser.fork({}), client.client_id, { resource: RESOURCE });
    expect(bare.answer.location).toContain("/login");
    const assistant = instance.browser(naming("a"));
    const registration = { redirect_uris: ["https://assistant.example/back"] };
    const refused = await assistant.post("/oauth2/register", registration);
    expectRefused(refused, 403, "PLATFORM_ONLY");
  });

  it("threat: a token that jwt() makes inside a tenant opens nothing", async () => {
    const { signUp, call } = await createMcpServer();
    const { browser } = await signUp("a");
    const { data } = await browser.get<{ token: string }>("/token");
    expect(data.token).toMatch(/^ey/);
    expect((await call(data.token)).status).toBe(401);
  });
});
