import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { betterAuth } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import { toNodeHandler } from "better-auth/node";
import { byDomain, tenantAuth } from "better-auth-tenant";
import { chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findChromium } from "./support/chromium";

/*
 * `redirectBaseURL`, as browsers see it: two subdomains and a custom domain, whose names lead to this
 * machine, and one client at the identity provider.
 */

const CLIENT = { clientId: "the-client", clientSecret: "the-secret" };
const HOSTS = [
  ["acme.app.test", "acme"],
  ["globex.app.test", "globex"],
  ["login.acme.test", "acme"],
] as const;

type Params = Record<string, string>;

async function listen(serve: (request: IncomingMessage, response: ServerResponse) => unknown) {
  const server = createServer(serve);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return { port: (server.address() as AddressInfo).port, stop };
}

/** It knows one client with one redirect URI, and everybody who comes is Kim. */
async function startIdentityProvider() {
  const rules = { redirectURI: "", formPost: false };
  const grants = new Map<string, Params>();

  function exchange({
    code = "",
    client_id,
    client_secret,
    redirect_uri,
    code_verifier = "",
  }: Params) {
    const grant = grants.get(code);
    grants.delete(code);
    const challenge = createHash("sha256").update(code_verifier).digest("base64url");
    const isGood =
      client_id === CLIENT.clientId &&
      client_secret === CLIENT.clientSecret &&
      grant?.redirect_uri === redirect_uri &&
      grant?.code_challenge === challenge;
    return isGood ? { access_token: "kim", token_type: "Bearer" } : { error: "invalid_grant" };
  }

  const { port, stop } = await listen(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
    let form = "";
    for await (const chunk of request) form += chunk;
    const params: Params = Object.fromEntries([...searchParams, ...new URLSearchParams(form)]);
    const json = (body: object) => response.end(JSON.stringify(body));
    if (pathname === "/oauth/token") return json(exchange(params));
    if (pathname === "/api/v4/user") {
      const kim = { id: 1, name: "Kim", username: "kim", email: "kim@example.com" };
      return json({ ...kim, email_verified: true, state: "active" });
    }
    const { redirect_uri, state = "" } = params;
    if (redirect_uri !== rules.redirectURI) return response.writeHead(400).end(redirect_uri);
    const code = randomUUID();
    grants.set(code, params);
    if (!rules.formPost) {
      const query = new URLSearchParams({ code, state });
      return response.writeHead(302, { location: `${redirect_uri}?${query}` }).end();
    }
    const fields = Object.entries({ code, state }).map(
      ([name, value]) => `<input type="hidden" name="${name}" value="${value}">`,
    );
    response.setHeader("content-type", "text/html");
    response.end(
      `<form method="post" action="${redirect_uri}">${fields.join("")}</form><script>document.forms[0].submit()</script>`,
    );
  });
  return { rules, issuer: `http://localhost:${port}`, stop };
}

async function startApplication(issuer: string) {
  const { port, stop } = await listen((request, response) => {
    if (request.url?.startsWith("/api/auth/")) return handle(request, response);
    response.setHeader("content-type", "text/html");
    response.end("<title>A page</title><main>A page</main>");
  });
  const base = `http://app.test:${port}`;
  const auth = betterAuth({
    baseURL: {
      allowedHosts: ["app.test:*", ...HOSTS.map(([host]) => `${host}:*`)],
      protocol: "http",
      fallback: base,
    },
    secret: "a secret of this test, which is long enough",
    database: memoryAdapter({
      ...{ user: [], session: [], account: [], verification: [] },
      ...{ tenant: [], tenantOauthConfig: [] },
    }),
    // As Apple's: a form is posted from there.
    trustedOrigins: [issuer],
    socialProviders: { gitlab: { ...CLIENT, issuer } },
    plugins: [
      tenantAuth({
        resolveTenantId: byDomain(
          Object.fromEntries(HOSTS.map(([host, slug]) => [host, { slug }])),
        ),
        redirectBaseURL: base,
      }),
    ],
  });
  const handle = toNodeHandler(auth);
  const ids: Params = {};
  for (const slug of ["acme", "globex"]) {
    ids[slug] = (await auth.api.createTenant({ body: { name: slug, slug } })).id;
  }
  return { port, base, ids, stop };
}

const launch = () =>
  chromium.launch({
    executablePath: findChromium(),
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--no-first-run",
      "--disable-background-networking",
      "--host-resolver-rules=MAP *.test 127.0.0.1",
    ],
  });

let idp: Awaited<ReturnType<typeof startIdentityProvider>>;
let app: Awaited<ReturnType<typeof startApplication>>;
let browser: Awaited<ReturnType<typeof launch>>;

beforeAll(async () => {
  idp = await startIdentityProvider();
  app = await startApplication(idp.issuer);
  idp.rules.redirectURI = `${app.base}/api/auth/tenant/callback/gitlab`;
  browser = await launch();
});

afterAll(async () => {
  await browser?.close();
  app?.stop();
  idp?.stop();
});

/** Goes to the provider from a page of a host; resolves where that ends. */
async function signIn(page: Page, host: string) {
  await page.goto(`http://${host}:${app.port}/`);
  const url: string = await page.evaluate(async () => {
    const body = { provider: "gitlab", callbackURL: "/welcome", errorCallbackURL: "/failed" };
    const response = await fetch("/api/auth/sign-in/social", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return (await response.json()).url;
  });
  return url;
}

const whoIs = (page: Page) =>
  page.evaluate(async () => (await fetch("/api/auth/get-session")).json());

test.each([
  ["a redirect", false],
  ["a form post", true],
])("one client signs people in at every host, by %s", async (_, formPost) => {
  idp.rules.formPost = formPost;
  const context = await browser.newContext();
  const page = await context.newPage();
  const seen: string[] = [];
  page.on("request", (request) => {
    if (request.isNavigationRequest()) seen.push(`${request.method()} ${request.url()}`);
  });
  const users = new Set<string>();
  for (const [host, slug] of HOSTS) {
    seen.length = 0;
    await page.goto(await signIn(page, host));
    await page.waitForURL(`http://${host}:${app.port}/welcome`);
    const { session, user } = await whoIs(page);
    expect([user.email, session.tenantId]).toEqual(["kim@example.com", app.ids[slug]]);
    users.add(user.id);
    // Home, the provider, the base host, and back at the host.
    const hosts = seen.map((line) => new URL(line.split(" ")[1] ?? "").hostname);
    const atBase = formPost ? ["app.test", "app.test"] : ["app.test"];
    expect(hosts).toEqual([host, "localhost", ...atBase, host, host]);
    expect(seen.filter((line) => line.startsWith("POST"))).toHaveLength(formPost ? 1 : 0);
  }
  // Acme has two hosts, and one Kim.
  expect(users.size).toBe(2);
  // Nobody is signed in at the base host.
  await page.goto(`${app.base}/`);
  expect(await whoIs(page)).toBeNull();
  await context.close();
});

test("in the browser of another person, and with a changed state, nobody is signed in", async () => {
  idp.rules.formPost = false;
  const [kim, other] = [await browser.newContext(), await browser.newContext()];
  const url = new URL(await signIn(await kim.newPage(), "acme.app.test"));
  const page = await other.newPage();
  await page.goto(url.href);
  expect(new URL(page.url()).searchParams.get("error")).toBe("state_mismatch");
  const state = url.searchParams.get("state") ?? "";
  const text = (host: string) => Buffer.from(`${app.ids.acme}@${host}`).toString("base64url");
  const [from, to] = [text(`acme.app.test:${app.port}`), text(`evil.app.test:${app.port}`)];
  expect(state).toContain(from);
  // As long as the one before.
  url.searchParams.set("state", state.replace(from, to));
  const visited: string[] = [];
  const own = await kim.newPage();
  own.on("request", (request) => visited.push(new URL(request.url()).hostname));
  await own.goto(url.href);
  expect(visited).not.toContain("evil.app.test");
  expect(new URL(own.url()).hostname).toBe("app.test");
  expect(new URL(own.url()).searchParams.get("error")).toBe("state_mismatch");
  await kim.close();
  await other.close();
});
