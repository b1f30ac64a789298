import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { toNodeHandler } from "better-auth/node";
import { describe, expect, it, onTestFinished } from "vitest";
import { createInstance } from "../support/instance";
import { createSocialInstance, STATE_STRATEGIES } from "../support/social";

const CALLBACK = "/tenant/callback/google";

/** A state of the form of ours, which nobody has made. */
function stateNaming(tenantId: string): string {
  const text = Buffer.from(tenantId).toString("base64url");
  return `${"A".repeat(43)}${String(text.length).padStart(3, "0")}${text}${"s".repeat(32)}`;
}

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://localhost:${(server.address() as AddressInfo).port}`;
}

/** Rejections that nobody handles: they end a process that is no test. */
function watchRejections(): unknown[] {
  const seen: unknown[] = [];
  const see = (reason: unknown) => void seen.push(reason);
  process.on("unhandledRejection", see);
  onTestFinished(() => void process.off("unhandledRejection", see));
  return seen;
}

describe("a callback that names what fits into no header", () => {
  it.each(["a", "\u00e9", "\u65e5\u672c"])("is answered, with ?tenant=%s", async (tenant) => {
    const app = await createInstance();
    const query = { code: "x", state: "y", tenant };
    expect((await app.browser().get(CALLBACK, { query })).status).toBe(302);
  });

  it.each(["a", "\u00e9", "\u65e5\u672c"])("is answered, with a state of %s", async (tenantId) => {
    const app = await createInstance();
    const query = { code: "x", state: stateNaming(tenantId) };
    expect((await app.browser().get(CALLBACK, { query })).status).toBe(302);
  });

  it("leaves an instance behind node's http server alive", async () => {
    const app = await createInstance();
    const rejections = watchRejections();
    const origin = await listen(toNodeHandler(app.auth));
    const query = new URLSearchParams({ code: "x", state: "y", tenant: "\u65e5\u672c" });
    const url = `${origin}/api/auth${CALLBACK}?${query}`;
    const signal = AbortSignal.timeout(3000);
    expect((await fetch(url, { redirect: "manual", signal })).status).toBe(302);
    expect((await fetch(`${origin}/api/auth/ok`, { signal })).status).toBe(200);
    expect(rejections).toEqual([]);
  });
});

describe.each(STATE_STRATEGIES)("a tenant with an id beyond latin-1, state in %s", (strategy) => {
  it("R4: finishes a callback", async () => {
    const generateId = ({ model }: { model: string }) =>
      `${model === "tenant" ? "\u65e5\u672c-" : ""}${crypto.randomUUID()}`;
    const app = await createSocialInstance({
      stateStrategy: strategy,
      auth: { advanced: { disableOriginCheck: false, database: { generateId } } },
    });
    const { id: tenantId } = await app.createTenant();
    expect(tenantId).toContain("\u65e5\u672c");
    const browser = app.browser();
    expect((await app.signIn(browser, tenantId)).location).toBe("/welcome");
    const { data } = await browser.get("/get-session", { query: { tenantId } });
    expect(data).toMatchObject({ user: { email: "alice@example.com", tenantId } });
  });
});
