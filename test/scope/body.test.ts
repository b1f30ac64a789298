// Bodies that are made while they are read, when the request is over.
import type { BetterAuthPlugin, GenericEndpointContext } from "better-auth";
import { createAuthEndpoint, createAuthMiddleware } from "better-auth/api";
import { describe, expect, it } from "vitest";
import { getTenantId, runInTenant } from "../../src/index";
import { createWorld, PLACES, type Place, shareWorld } from "../support/world";

const bytes = (text: string) => new TextEncoder().encode(text);

/** Where the source of a body runs, and whom it finds there, in two chunks. */
async function* look({ context }: GenericEndpointContext) {
  for (let chunk = 0; chunk < 2; chunk++) {
    const users = await context.adapter.findMany<{ tenantId: string }>({ model: "user" });
    const found = new Set(users.map(({ tenantId }) => tenantId));
    yield bytes(`${JSON.stringify([getTenantId(), ...found])}\n`);
  }
}

async function pullFrom(
  chunks: AsyncGenerator<Uint8Array<ArrayBuffer>>,
  controller: { enqueue(chunk: Uint8Array<ArrayBuffer>): void; close(): void },
) {
  const { done, value } = await chunks.next();
  if (done) controller.close();
  else controller.enqueue(value);
}

type From = { from(chunks: AsyncIterable<Uint8Array>): ReadableStream };

const SOURCES: Record<string, (ctx: GenericEndpointContext) => ReadableStream> = {
  generator: (ctx) => (ReadableStream as unknown as From).from(look(ctx)),
  stream: (ctx) => {
    const chunks = look(ctx);
    return new ReadableStream({ pull: (controller) => pullFrom(chunks, controller) });
  },
  "stream-without-a-buffer": (ctx) => {
    const chunks = look(ctx);
    const pull = (controller: ReadableStreamDefaultController) => pullFrom(chunks, controller);
    return new ReadableStream({ pull }, { highWaterMark: 0 });
  },
  bytes: (ctx) => {
    const chunks = look(ctx);
    return new ReadableStream({
      type: "bytes",
      pull: (controller) => pullFrom(chunks, controller),
    });
  },
};

const streams = {
  id: "streams",
  endpoints: {
    stream: createAuthEndpoint("/stream/:source", { method: "GET" }, async (ctx) => {
      const source = SOURCES[ctx.params.source]?.(ctx);
      const headers = { "x-own": "yes", "content-type": "text/plain" };
      return new Response(source, { status: 203, statusText: "Streaming", headers });
    }),
    bare: createAuthEndpoint("/bare/:source", { method: "GET" }, async (ctx) =>
      SOURCES[ctx.params.source]?.(ctx),
    ),
    empty: createAuthEndpoint(
      "/empty",
      { method: "GET" },
      async () => new Response(null, { status: 204 }),
    ),
    never: createAuthEndpoint("/before/:source", { method: "GET" }, async () => null),
  },
  hooks: {
    before: [
      {
        matcher: ({ path }) => path === "/before/:source",
        handler: createAuthMiddleware(
          async (ctx) => new Response(SOURCES[ctx.params?.source ?? ""]?.(ctx)),
        ),
      },
    ],
  },
} satisfies BetterAuthPlugin;

type Streams = Record<"stream" | "bare", (call: object) => Promise<Response>>;

describe.each(Object.keys(SOURCES))("R3: the body of an answer is made by %s", (source) => {
  const world = shareWorld({ plugins: [streams] });
  const lines = (place: Place) =>
    `${JSON.stringify([world.ids[place], world.ids[place]])}\n`.repeat(2);
  const get = (path: string, headers: Record<string, string>) =>
    world.auth.handler(new Request(`http://localhost:3000/api/auth${path}/${source}`, { headers }));

  it.each(["/stream", "/bare", "/before"])("over HTTP, at %s", async (path) => {
    await world.janes();
    for (const place of PLACES) {
      const answer = await get(path, world.naming(place));
      expect(await answer.text()).toBe(lines(place));
    }
  });

  it("where the session names the tenant, and nobody has asked for it yet", async () => {
    const jane = await world.as("jane", "acme");
    const answer = await get("/stream", { cookie: jane.cookieHeader() });
    // What it says before it has asked for anything is not known yet.
    expect((await answer.text()).slice(-40)).toBe(lines("acme").slice(-40));
  });

  it("through auth.api, and out of runInTenant", async () => {
    await world.janes();
    const { stream, bare } = world.api as unknown as Streams;
    const call = { params: { source }, asResponse: true };
    const named = await stream({ ...call, headers: new Headers(world.naming("acme")) });
    expect(await named.text()).toBe(lines("acme"));
    const inTenant = await runInTenant(world.ids.globex, () => stream(call));
    expect(await inTenant.text()).toBe(lines("globex"));
    const plain = await runInTenant(world.ids.globex, () => bare({ params: { source } }));
    expect(plain).toBeInstanceOf(ReadableStream);
    expect(await new Response(plain as unknown as ReadableStream).text()).toBe(lines("globex"));
  });

  it("stays as it is otherwise: status, headers, and bytes for those who bring a buffer", async () => {
    const answer = await get("/stream", world.naming("acme"));
    expect([answer.status, answer.statusText]).toEqual([203, "Streaming"]);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "x-own": "yes",
      "content-type": "text/plain",
    });
    if (source !== "bytes") return;
    const reader = answer.body?.getReader({ mode: "byob" });
    let text = "";
    for (;;) {
      const { done, value } = (await reader?.read(new Uint8Array(7))) ?? {};
      if (done !== false) break;
      text += new TextDecoder().decode(value);
    }
    expect(text).toBe(lines("acme"));
  });
});

it("an answer without a body has none", async () => {
  const world = await createWorld({ plugins: [streams] });
  for (const place of PLACES) expect((await world.at(place).get("/empty")).status).toBe(204);
});

it("a body that is made in the request is read no faster than it is asked for, cancelled, and fails as it would", async () => {
  const seen: unknown[] = [];
  const source = {
    pull(controller: ReadableStreamDefaultController) {
      seen.push("pull");
      if (seen.length > 2) throw new Error("the source has failed");
      controller.enqueue(bytes("x"));
    },
    cancel: (reason: unknown) => void seen.push([reason, getTenantId()]),
  };
  const plugin = {
    id: "slow",
    endpoints: {
      slow: createAuthEndpoint(
        "/slow",
        { method: "GET" },
        async () => new Response(new ReadableStream(source, { highWaterMark: 0 })),
      ),
    },
  };
  const world = await createWorld({ plugins: [plugin] });
  const open = async () => {
    seen.length = 0;
    const url = "http://localhost:3000/api/auth/slow";
    const answer = await world.auth.handler(new Request(url, { headers: world.naming("acme") }));
    return answer.body as ReadableStream;
  };
  const reader = (await open()).getReader();
  expect(seen).toEqual([]);
  await reader.read();
  expect(seen).toEqual(["pull"]);
  await reader.cancel("enough");
  expect(seen).toEqual(["pull", ["enough", world.ids.acme]]);
  await expect(new Response(await open()).text()).rejects.toThrow("the source has failed");
});
