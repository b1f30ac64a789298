import type { BetterAuthPlugin } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { bearer } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { bySlug, bySubdomain, runInTenant } from "../../src/index";
import { createInstance, type InstanceOptions, PASSWORD } from "../support/instance";
import { createSocialInstance } from "../support/social";

const person = (email = "somebody@example.com") => ({ name: "S", email, password: PASSWORD });

/** What one request writes, of ours. */
async function linesOf(logs: string[], run: () => Promise<unknown>): Promise<string[]> {
  logs.length = 0;
  await run();
  return logs.filter((line) => / (runs (in|on) |is refused, )/.test(line));
}

describe("at log level debug a request writes one line", () => {
  async function world(options?: InstanceOptions) {
    const instance = await createInstance(options);
    const { id } = await instance.createTenant("acme");
    const tell = (run: () => Promise<unknown>) => linesOf(instance.logs, run);
    return { ...instance, id, tell };
  }

  it.each([
    ["the header", "the header x-tenant-id", "/sign-up/email", true],
    ["the query", "the query", "/sign-up/email?tenantId=", false],
  ] as const)("that says that %s named the tenant", async (_, by, path, inHeader) => {
    const { browser, id, tell } = await world();
    const person1 = browser(inHeader ? { "x-tenant-id": id } : {});
    const url = inHeader ? path : path + id;
    expect(await tell(() => person1.post(url, person()))).toEqual([
      `debug POST /sign-up/email runs in tenant "${id}", named by ${by} ("${id}")`,
    ]);
  });

  it("that says that the body did, at the path that the request came to", async () => {
    const { browser, id, tell } = await world();
    const body = { ...person(), tenantId: id };
    expect(await tell(() => browser().post("/tenant/sign-up/email", body))).toEqual([
      `debug POST /tenant/sign-up/email runs in tenant "${id}", named by the body ("${id}")`,
    ]);
  });

  it("that says that the slug or the resolver did", async () => {
    const slugs = await world({ tenant: { resolveTenantId: bySlug() } });
    const session = () => slugs.browser({ "x-tenant-slug": "Acme" }).get("/get-session");
    expect(await slugs.tell(session)).toEqual([
      `debug GET /get-session runs in tenant "${slugs.id}", named by the header x-tenant-slug ("Acme")`,
    ]);
    const hosts = await world({
      tenant: { resolveTenantId: bySubdomain({ baseDomain: "localhost" }) },
      auth: { baseURL: { allowedHosts: ["*.localhost:3000"], fallback: "http://localhost:3000" } },
    });
    const at = (host: string) => () =>
      hosts.browser().get(`http://${host}:3000/api/auth/get-session`);
    expect(await hosts.tell(at("acme.localhost"))).toEqual([
      `debug GET /get-session runs in tenant "${hosts.id}", named by resolveTenantId`,
    ]);
    expect(await hosts.tell(at("www.localhost"))).toEqual([
      "debug GET /get-session runs on the platform, named by resolveTenantId",
    ]);
  });

  it("that says that the session did, or that nothing did", async () => {
    const { signUp, browser, id, tell } = await world({ plugins: [bearer()] });
    const member = await signUp(id);
    const own = `debug GET /get-session runs in tenant "${id}", named by its session`;
    expect(await tell(() => member.browser.get("/get-session"))).toEqual([own]);
    const headers = { authorization: `Bearer ${member.token}` };
    expect(await tell(() => browser(headers).get("/get-session"))).toEqual([own]);
    const nobodys = "runs on the platform, nothing names a tenant";
    expect(await tell(() => browser().get("/get-session"))).toEqual([
      `debug GET /get-session ${nobodys}`,
    ]);
    const operator = await signUp(null);
    expect(await tell(() => operator.browser.get("/tenant/list"))).toEqual([
      `debug GET /tenant/list ${nobodys}`,
    ]);
    const session = { cookie: operator.browser.cookieHeader() };
    expect(await tell(() => browser(session).post("/update-user", { name: "N" }))).toEqual([
      `debug POST /update-user ${nobodys}`,
    ]);
  });

  it("that says so of what is refused, also by a hook of the application", async () => {
    const refuse = createAuthMiddleware(async ({ json, path }) =>
      path === "/sign-up/email" ? json({ refused: true }) : undefined,
    );
    const { browser, tell } = await world({ auth: { hooks: { before: refuse } } });
    const wrong = browser({ "x-tenant-id": 'ac"me' });
    expect(await tell(() => wrong.post("/sign-in/email", person()))).toEqual([
      'debug POST /sign-in/email is refused, TENANT_NOT_FOUND: named by the header x-tenant-id ("ac\\"me")',
    ]);
    expect(await tell(() => browser().post("/tenant/sign-in/email", person()))).toEqual([
      "debug POST /tenant/sign-in/email is refused, TENANT_ID_REQUIRED: nothing in the request names a tenant",
    ]);
    expect(await tell(() => browser().post("/sign-up/email", person()))).toEqual([
      "debug POST /sign-up/email runs on the platform, nothing names a tenant",
    ]);
  });

  it("for a call of auth.api, also from inside a tenant, and not for those inside a request", async () => {
    let calls = 0;
    const nested = createAuthMiddleware(async ({ headers, path }) => {
      if (path !== "/update-user" || !headers) return;
      calls++;
      await inner.api.getSession({ headers });
    });
    const inner = await world({ auth: { hooks: { before: nested } } });
    const { api, id, tell, signUp } = inner;
    expect(
      await tell(() => runInTenant(id, () => api.getSession({ headers: new Headers() }))),
    ).toEqual([`debug auth.api /get-session runs in tenant "${id}", named by runInTenant()`]);
    const { browser } = await signUp(id);
    expect(await tell(() => browser.post("/update-user", { name: "N" }))).toEqual([
      `debug POST /update-user runs in tenant "${id}", named by its session`,
    ]);
    expect(calls).toBe(1);
  });

  it("for a link in a mail, and for a provider's callback", async () => {
    const sent: string[] = [];
    const sendResetPassword = async ({ url }: { url: string }) => void sent.push(url);
    const mails = await world({ auth: { emailAndPassword: { enabled: true, sendResetPassword } } });
    const { email } = await mails.signUp(mails.id);
    const named = mails.browser({ "x-tenant-id": mails.id });
    await named.post("/request-password-reset", { email, redirectTo: "/reset" });
    expect(await mails.tell(() => mails.browser().get(sent[0] ?? ""))).toEqual([
      `debug GET /reset-password/:token runs in tenant "${mails.id}", named by the token of a link`,
    ]);
    const social = await createSocialInstance();
    const { id } = await social.createTenant();
    await social.configure(id);
    const browser = social.browser();
    const back = await social.authorize(browser, id);
    expect(await linesOf(social.logs, () => browser.get(back))).toEqual([
      `debug GET /tenant/callback/:id runs in tenant "${id}", named by the state of the OAuth flow`,
    ]);
  });
});

it("at every other level nothing is written, and no hook is there for it", async () => {
  const hooksAt = async (level: "debug" | "info") => {
    const { context, browser, createTenant, logs } = await createInstance({
      auth: { logger: { level } },
    });
    const { id } = await createTenant();
    await browser({ "x-tenant-id": id }).post("/sign-up/email", person());
    const plugins: BetterAuthPlugin[] = context.options.plugins ?? [];
    const hooks = plugins.flatMap(({ hooks }) => [
      ...(hooks?.before ?? []),
      ...(hooks?.after ?? []),
    ]);
    return { lines: logs.filter((line) => line.includes(" runs ")).length, hooks: hooks.length };
  };
  const quiet = await hooksAt("info");
  expect(quiet.lines).toBe(0);
  expect(await hooksAt("debug")).toEqual({ lines: 2, hooks: quiet.hooks + 2 });
});
