import type { BetterAuthPlugin } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { describe, expect, it } from "vitest";
import { createInstance, PASSWORD } from "../support/instance";

const PERSON = { name: "Al", email: "al@example.com", password: PASSWORD };

/** Notes the names of all headers that a plugin, hooks and a mail sender get to see. */
function createWitness() {
  const seen: Record<string, string[]> = {};
  const see = (who: string, headers: Headers | undefined) => {
    seen[who] = [...(seen[who] ?? []), ...(headers?.keys() ?? [])];
  };
  const plugin: BetterAuthPlugin = {
    id: "witness",
    onRequest: async ({ headers }) => see("onRequest", headers),
  };
  const auth = {
    emailVerification: {
      sendOnSignUp: true,
      sendVerificationEmail: async (_: unknown, request?: Request) =>
        see("sender", request?.headers),
    },
    hooks: {
      before: createAuthMiddleware(async ({ headers }) => see("before", headers)),
      after: createAuthMiddleware(async ({ headers }) => see("after", headers)),
    },
  };
  return { seen, plugin, auth };
}

/** An instance where the next request, once it is answered, sends another one from a hook. */
async function createNesting() {
  const inner: { status: number; text: string }[] = [];
  let nested: Request | undefined;
  const after = createAuthMiddleware(async () => {
    const request = nested;
    nested = undefined;
    if (!request) return;
    const answer = await app.auth.handler(request);
    inner.push({ status: answer.status, text: await answer.text() });
  });
  const app = await createInstance({ auth: { hooks: { after } } });
  const nest = (request: Request) => {
    nested = request;
  };
  return { app, inner, nest };
}

describe("a request that goes on at the endpoint that it stands for", () => {
  it("shows its mark in no header to onRequest, hooks and mail senders", async () => {
    const { seen, plugin, auth } = createWitness();
    const app = await createInstance({ plugins: [plugin], auth });
    const { id } = await app.createTenant();
    await app.signUp(id);
    await app.browser().get("/tenant/callback/google", { query: { code: "x", state: "y" } });
    expect(Object.keys(seen).sort()).toEqual(["after", "before", "onRequest", "sender"]);
    for (const [who, names] of Object.entries(seen)) {
      expect(names, who).toContain("origin");
      expect(names.filter((name) => name.includes("tenant-stand-in"))).toEqual([]);
    }
  });

  it("is in its tenant when a plugin lets known headers through only", async () => {
    const known = ["content-type", "origin", "cookie", "host", "x-tenant-id"];
    const plugin: BetterAuthPlugin = {
      id: "known-headers",
      onRequest: async (request) => {
        const headers = [...request.headers].filter(([name]) => known.includes(name));
        return { request: new Request(request, { headers }) };
      },
    };
    const app = await createInstance({ plugins: [plugin] });
    const { id: tenantId } = await app.createTenant();
    await app.api.signUpEmailTenant({ body: { ...PERSON, tenantId } });
    await app.api.signUpEmail({ body: PERSON });
    const answer = await app.browser().post("/tenant/sign-in/email", { ...PERSON, tenantId });
    expect(answer).toMatchObject({ status: 200, data: { user: { tenantId } } });
  });

  it.each(["query", "body"])(
    "R7: is a conflict inside a request of another tenant than its %s names",
    async (place) => {
      const { app, inner, nest } = await createNesting();
      const { id: a } = await app.createTenant();
      const { id: b } = await app.createTenant();
      for (const tenantId of [a, b]) {
        await app.api.signUpEmailTenant({ body: { ...PERSON, tenantId } });
      }
      const url = "http://localhost:3000/api/auth/tenant/sign-in/email";
      const request = new Request(place === "query" ? `${url}?tenantId=${b}` : url, {
        method: "POST",
        headers: { "content-type": "application/json", origin: "http://localhost:3000" },
        body: JSON.stringify({ ...PERSON, ...(place === "body" && { tenantId: b }) }),
      });
      nest(request);
      await app.browser().post("/tenant/sign-in/email", { ...PERSON, tenantId: a });
      expect(inner).toEqual([{ status: 409, text: expect.not.stringContaining(a) }]);
    },
  );
});

it.each(["/tenant/sign-up/email", "/tenant/sign-up/*", "/sign-up/email"])(
  "R12: a middleware on %s that answers itself ends the request",
  async (path) => {
    const middleware = createAuthMiddleware(async () => new Response("not now", { status: 418 }));
    const plugin = { id: "guard", middlewares: [{ path, middleware }] };
    const app = await createInstance({ plugins: [plugin as unknown as BetterAuthPlugin] });
    const { id: tenantId } = await app.createTenant();
    const answer = await app.browser().post("/tenant/sign-up/email", { ...PERSON, tenantId });
    expect(answer.status).toBe(418);
    expect(await app.rows("user")).toBe(0);
  },
);
