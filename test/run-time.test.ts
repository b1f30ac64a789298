import type { BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint } from "better-auth/api";
import { expect, it, onTestFinished, vi } from "vitest";
import { BASE_URL } from "./support/instance";
import { createWorld } from "./support/world";

/** A plugin with an endpoint that answers this. */
const answering = (answer: () => Response) => ({
  id: "answering",
  endpoints: { answer: createAuthEndpoint("/answer", { method: "GET" }, async () => answer()) },
});

it("what nobody expected is answered with a code, unless a plugin makes its own answer of it", async () => {
  vi.spyOn(console, "error").mockImplementation(() => {});
  onTestFinished(() => void vi.restoreAllMocks());
  const failing = answering(() => {
    throw new Error("the database is away");
  });
  const onResponse: BetterAuthPlugin["onResponse"] = async ({ status, body }) => ({
    response: Response.json({ status, body }, { status }),
  });
  const known = { code: "INTERNAL_SERVER_ERROR", message: "Internal Server Error" };
  for (const [plugins, data] of [
    [[failing], known],
    [[failing, { id: "own", onResponse }], { status: 500, body: null }],
  ] as const) {
    const { at } = await createWorld({ plugins: [...plugins] });
    expect(await at("acme").get("/answer")).toMatchObject({ status: 500, data });
  }
});

it.each<[string, BodyInit | null, ResponseInit]>([
  // A body behind this length would be read as the next answer of the connection.
  ["an empty 503", null, { status: 503, headers: { "content-length": "0", "retry-after": "5" } }],
  ["an empty 500", null, { status: 500, headers: { "x-mine": "yes" } }],
  ["a picture", "<svg/>", { statusText: "Mine", headers: { "content-type": "image/svg+xml" } }],
  ["a feed", "<rss/>", { headers: { "content-type": "application/rss+xml" } }],
])("%s that an endpoint answers on purpose stays as it is", async (_, body, init) => {
  const { auth } = await createWorld({ plugins: [answering(() => new Response(body, init))] });
  const answer = await auth.handler(new Request(`${BASE_URL}/answer`));
  const { status = 200, statusText = "", headers } = init;
  expect([answer.status, answer.statusText]).toEqual([status, statusText]);
  expect(Object.fromEntries(answer.headers)).toEqual(headers);
  expect(await answer.text()).toBe(body ?? "");
});
