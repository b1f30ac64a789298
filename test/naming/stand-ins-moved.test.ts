import type { BetterAuthPlugin } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { expect, it } from "vitest";
import { BASE_URL, createInstance, PASSWORD } from "../support/instance";

/*
 * A request to an endpoint of ours goes on as a request to better-auth's own. Whoever gets it there,
 * a hook or a mail sender, finds all of the first one in it.
 */

const ANN = { name: "Ann", email: "ann@example.com", password: PASSWORD };

/** Signs Ann in at a tenant, and returns the request that better-auth's endpoint had. */
async function move(init: (body: string) => RequestInit & { duplex?: "half" }) {
  let seen: Request | undefined;
  const witness: BetterAuthPlugin = {
    id: "witness",
    hooks: {
      before: [
        {
          matcher: ({ path }) => path === "/sign-in/email",
          handler: createAuthMiddleware(async ({ request }) => {
            seen = request;
          }),
        },
      ],
    },
  };
  const instance = await createInstance({ plugins: [witness] });
  const { id: tenantId } = await instance.createTenant();
  await instance.api.signUpEmailTenant({ body: { ...ANN, tenantId } });
  const body = JSON.stringify({ email: ANN.email, password: ANN.password, tenantId });
  const headers = { "content-type": "application/json", "x-custom": "kept" };
  const url = `${BASE_URL}/tenant/sign-in/email?a=b`;
  const sent = new Request(url, { method: "POST", headers, ...init(body) });
  const { status } = await instance.auth.handler(sent);
  expect(status).toBe(200);
  if (!seen) throw new Error("nobody has seen the request");
  return { sent, seen, body };
}

it("method, headers, query, body and redirect mode go along", async () => {
  const { seen, body } = await move((body) => ({ body, redirect: "manual" }));
  expect(seen).toBeInstanceOf(Request);
  expect(seen.url).toBe(`${BASE_URL}/sign-in/email?a=b`);
  expect([seen.method, seen.headers.get("x-custom"), seen.redirect]).toEqual([
    "POST",
    "kept",
    "manual",
  ]);
  expect(await seen.clone().text()).toBe(body);
  expect(await seen.text()).toBe(body);
});

it("a body that is still being sent goes along", async () => {
  const { seen, body } = await move((body) => ({
    duplex: "half",
    body: new ReadableStream({
      start(controller) {
        for (const letter of body) controller.enqueue(new TextEncoder().encode(letter));
        controller.close();
      },
    }),
  }));
  expect(await seen.text()).toBe(body);
});

it("whoever listens hears that the client has gone, also on a clone", async () => {
  const client = new AbortController();
  const { sent, seen } = await move((body) => ({ body, signal: client.signal }));
  const clone = seen.clone();
  const reasons: unknown[] = [];
  for (const { signal } of [seen, clone]) {
    expect(signal.aborted).toBe(false);
    signal.addEventListener("abort", () => reasons.push(signal.reason));
  }
  client.abort("gone");
  expect(seen.signal).toBe(sent.signal);
  expect([seen.signal.aborted, clone.signal.aborted]).toEqual([true, true]);
  expect(reasons).toEqual(["gone", "gone"]);
});
