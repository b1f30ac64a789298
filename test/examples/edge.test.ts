import { AsyncLocalStorage } from "node:async_hooks";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EdgeVM } from "@edge-runtime/vm";
import { build } from "tsup";
import { afterAll, beforeAll, expect, test } from "vitest";
import { browse, close, expectTwoTenants, portOf } from "./http";

const root = join(import.meta.dirname, "../..");
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

type Example = typeof import("../../examples/edge/handler");

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
  for (const slug of ["acme", "globex"]) {
    await auth.api.createTenant({ body: { name: slug.toUpperCase(), slug } });
  }

  const handle: (url: string, init: object) => Promise<Response> = isolate.evaluate(
    "(url, init) => edge.default.fetch(new Request(url, init))",
  );
  const server = createServer(async (request, answer) => {
    const response = await handle(`https://${request.headers.host}${request.url}`, {
      method: request.method,
      headers: headersOf(request),
      body: await bodyOf(request),
    });
    answer.writeHead(response.status, [...response.headers].flat());
    answer.end(await response.text());
  }).listen(0, "127.0.0.1");
  const port = await portOf(server);
  const at = (host: string) => ({
    visit: () => browse(port, `https://${host}`),
    me: `https://${host}/me`,
  });
  await expectTwoTenants(at("login.acme.test"), at("login.globex.test"));
  const platform = at("example.test").visit();
  const answer = await platform.post("/tenant/sign-in/email", {
    email: "al@example.com",
    password: "any",
    tenantId: "any",
  });
  expect([answer.status, answer.code]).toEqual([400, "TENANT_ID_REQUIRED"]);
  await close(server);
  // Passwords are hashed in plain JavaScript there.
}, 60_000);

test("where requests cannot be kept apart, it does not start", async () => {
  const { auth }: Example = createIsolate({}).evaluate("edge");
  const creating = auth.api.createTenant({ body: { name: "Acme", slug: "acme" } });
  await expect(creating).rejects.toThrow("tenantAuth() requires AsyncLocalStorage");
});

function headersOf({ rawHeaders }: IncomingMessage): string[][] {
  return rawHeaders.flatMap((name, i) => (i % 2 ? [] : [[name, rawHeaders[i + 1] ?? ""]]));
}

async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  let body = "";
  for await (const chunk of request) body += chunk;
  return body || undefined;
}
