import { AsyncLocalStorage } from "node:async_hooks";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request as send } from "node:http";
import type { AddressInfo, Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EdgeVM } from "@edge-runtime/vm";
import { build } from "tsup";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { checkIsolation } from "../src/testing/index";
import { Browser } from "./support/browser";
import { PASSWORD } from "./support/instance";

// Hono's server puts its own classes into the global scope: they go again with this file.
vi.stubGlobal("Request", Request);
vi.stubGlobal("Response", Response);
afterAll(() => {
  vi.unstubAllGlobals();
});

/** Starts an example on a free port, until the test is over. */
async function start(example: () => Promise<{ server: unknown }>) {
  vi.stubEnv("PORT", "0");
  vi.stubEnv("BETTER_AUTH_SECRET", "a test secret that is long enough for everybody");
  onTestFinished(() => void vi.unstubAllEnvs());
  const server = (await example()).server as Server;
  onTestFinished(() => void server.close());
  if (!server.listening) await new Promise((resolve) => server.once("listening", resolve));
  return (server.address() as AddressInfo).port;
}

/**
 * A browser that talks to a server on this machine over real HTTP, whatever host it asks for: names
 * below localhost are not known everywhere.
 */
function browse(port: number, origin: string, headers?: Record<string, string>) {
  const handler = async (request: Request) => {
    const body = Buffer.from(await request.arrayBuffer());
    return new Promise<Response>((resolve, reject) => {
      const { method, url } = request;
      const { host, pathname, search } = new URL(url);
      const outgoing = send(
        {
          host: "127.0.0.1",
          port,
          method,
          path: pathname + search,
          headers: { ...Object.fromEntries(request.headers), host, "content-length": body.length },
        },
        async (answer) => {
          const chunks: Buffer[] = [];
          for await (const chunk of answer) chunks.push(chunk);
          const { rawHeaders, statusCode = 0 } = answer;
          const received = new Headers();
          for (let i = 0; i < rawHeaders.length; i += 2) {
            received.append(rawHeaders[i] ?? "", rawHeaders[i + 1] ?? "");
          }
          resolve(new Response(Buffer.concat(chunks), { status: statusCode, headers: received }));
        },
      );
      outgoing.once("error", reject).end(body);
    });
  };
  return new Browser(handler, `${origin}/api/auth`, headers);
}

interface Place {
  /** A browser that has not been here before. */
  visit(): Browser;
  /** Where the example says who is signed in. */
  me: string;
}

type Signed = { user: { id: string; tenantId: string | null } };

/** The same person signs up and in at two tenants, and is somebody else at each of them. */
async function expectTwoTenants(acme: Place, globex: Place) {
  const person = { name: "Al", email: "al@example.com", password: PASSWORD };
  const seen = new Set<unknown>();
  for (const [here, there] of [
    [acme, globex],
    [globex, acme],
  ] as const) {
    const newcomer = await here.visit().post<Signed>("/sign-up/email", person);
    expect(newcomer.status, JSON.stringify(newcomer.data)).toBe(200);
    const browser = here.visit();
    const { data } = await browser.post<Signed>("/sign-in/email", person);
    const { id, tenantId } = data.user;
    expect([id, tenantId]).toEqual([newcomer.data.user.id, expect.any(String)]);
    expect((await browser.get(here.me)).data).toEqual({ email: person.email, tenantId });
    expect((await browser.get(there.me)).data).toEqual({});
    seen.add(id).add(tenantId);
  }
  expect(seen.size).toBe(4);
}

const NOT_FOUND = [404, "TENANT_NOT_FOUND"];

/** Where no tenant is, on better-auth's endpoints and on those of the example. */
async function expectNotFound({ visit, me }: Place) {
  for (const path of ["/get-session", me]) {
    const { status, code } = await visit().get(path);
    expect([path, status, code]).toEqual([path, ...NOT_FOUND]);
  }
}

test("Hono: each subdomain is a tenant, and the isolation test of the docs passes", async () => {
  const port = await start(() => import("../examples/hono/server"));
  const at = (host: string) => {
    const origin = `http://${host}:${port}`;
    return { visit: () => browse(port, origin), me: `${origin}/me` };
  };
  await expectTwoTenants(at("acme.localhost"), at("globex.localhost"));
  await expectNotFound(at("nobody.localhost"));
  const { auth } = await import("../examples/hono/server");
  (await checkIsolation(auth, { allowExistingTenants: true, progress: false })).assert();
}, 120_000);

test("Express: each path is a tenant, and one browser has a session at several", async () => {
  const port = await start(() => import("../examples/express/server"));
  const origin = `http://localhost:${port}`;
  const visit = (slug: string) => browse(port, origin, { "x-tenant-slug": slug });
  const at = (slug: string) => ({ visit: () => visit(slug), me: `${origin}/t/${slug}/me` });
  await expectTwoTenants(at("acme"), at("globex"));
  await expectNotFound(at("nobody"));

  const person = { email: "al@example.com", password: PASSWORD };
  const window = visit("acme");
  await window.post("/sign-in/email", person);
  const other = window.fork({ "x-tenant-slug": "globex" });
  await other.post("/sign-in/email", person);
  for (const { me } of [at("acme"), at("globex")]) {
    expect((await other.get(me)).data.email).toBe(person.email);
  }
});

const root = join(import.meta.dirname, "..");
const out = mkdtempSync(join(tmpdir(), "better-auth-tenant-edge-"));
let bundle: string;

beforeAll(async () => {
  await build({
    entry: { handler: join(root, "examples/edge/handler.ts") },
    outDir: out,
    format: "iife",
    globalName: "edge",
    platform: "neutral",
    noExternal: [/.*/],
    // What better-auth itself loads only where it is there.
    external: ["node:async_hooks", "@opentelemetry/api"],
    outExtension: () => ({ js: ".js" }),
    esbuildOptions(options) {
      options.mainFields = ["module", "main"];
      // Here better-auth has a stand-in for AsyncLocalStorage, which it takes where there is none.
      options.conditions = ["edge", "import"];
      options.alias = { "better-auth-tenant": join(root, "src/index.ts") };
      // esbuild forgets to start a module that is both imported and loaded late.
      options.ignoreAnnotations = true;
    },
    config: false,
    silent: true,
    clean: false,
    treeshake: false,
  });
  bundle = readFileSync(join(out, "handler.js"), "utf8");
}, 120_000);

afterAll(() => rmSync(out, { recursive: true }));

type Example = typeof import("../examples/edge/handler");

/** A context with the web's globals, the storage for requests, and nothing of Node. */
function createIsolate(globals: object = { AsyncLocalStorage }) {
  const isolate = new EdgeVM({ extend: (context) => Object.assign(context, globals) });
  isolate.evaluate(bundle);
  return isolate;
}

test("the edge: nothing of Node is there, and each domain is a tenant", async () => {
  const isolate = createIsolate();
  const missing = "[typeof process, typeof require, typeof Buffer, typeof module]";
  expect([...isolate.evaluate(missing)]).toEqual(Array(4).fill("undefined"));
  const { auth }: Example = isolate.evaluate("edge");
  const createTenants = async () => {
    for (const slug of ["acme", "globex"]) {
      await auth.api.createTenant({ body: { name: slug.toUpperCase(), slug } });
    }
  };

  const fetch: (url: string, init: object) => Promise<Response> = isolate.evaluate(
    "(url, init) => edge.default.fetch(new Request(url, init))",
  );
  // Requests and answers are made of texts: the isolate has classes of its own.
  const handler = async (request: Request) => {
    const { method, url, headers } = request;
    const body = (await request.text()) || undefined;
    const host = new URL(url).host;
    const answer = await fetch(url, { method, headers: [...headers, ["host", host]], body });
    const { status } = answer;
    return new Response(await answer.text(), { status, headers: [...answer.headers] });
  };
  const at = (host: string) => ({
    visit: () => new Browser(handler, `https://${host}/api/auth`),
    me: `https://${host}/me`,
  });
  await expectNotFound(at("login.acme.test"));
  await createTenants();
  await expectTwoTenants(at("login.acme.test"), at("login.globex.test"));
  const body = { email: "al@example.com", password: "any", tenantId: "any" };
  const answer = await at("example.test").visit().post("/tenant/sign-in/email", body);
  expect([answer.status, answer.code]).toEqual([400, "TENANT_ID_REQUIRED"]);
  // Passwords are hashed in plain JavaScript there.
}, 60_000);

test("where requests cannot be kept apart, it does not start", async () => {
  const { auth }: Example = createIsolate({}).evaluate("edge");
  const creating = auth.api.createTenant({ body: { name: "Acme", slug: "acme" } });
  await expect(creating).rejects.toThrow("tenantAuth() requires AsyncLocalStorage");
});
