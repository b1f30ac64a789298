import { runWithTransaction } from "@better-auth/core/context";
import { beforeAll, describe, expect, it } from "vitest";
import { bySlug, type ResolveTenantContext, runInTenant, tenantAuth } from "../../src/index";
import { gate } from "../support/gate";
import { createInstance, PASSWORD } from "../support/instance";
import { servers } from "../support/servers";
import { shareInstance } from "../support/shared";

const HEADER = "x-tenant-slug";
const person = (email: string) => ({ name: "Somebody", email, password: PASSWORD });
type Signed = { user: { id: string; email: string; tenantId: string | null } };

describe("bySlug", () => {
  const asked = (headers: Record<string, string>) =>
    ({ headers: new Headers(headers) }) as ResolveTenantContext;

  it("answers the slug in its header, in lower case, or nothing", () => {
    const resolve = bySlug();
    expect(resolve(asked({ [HEADER]: "acme" }))).toEqual({ slug: "acme" });
    expect(resolve(asked({ [HEADER]: " ACME " }))).toEqual({ slug: "acme" });
    expect(resolve(asked({ [HEADER]: "" }))).toBeUndefined();
    expect(resolve(asked({ host: "acme.example.com" }))).toBeUndefined();
    expect(resolve({} as ResolveTenantContext)).toBeUndefined();
    expect(bySlug({ header: "X-Shop" })(asked({ "x-shop": "acme" }))).toEqual({ slug: "acme" });
  });

  it("refuses at start a header that is none, or that has the id in it", () => {
    const start = (header: string) => tenantAuth({ resolveTenantId: bySlug({ header }) });
    for (const header of ["my header", ""]) {
      expect(() => start(header)).toThrow(/expected a header name\s+→ at slugHeader/);
    }
    expect(() => start("X-Tenant-Id")).toThrow(/the tenantHeader has an id in it/);
    expect(() => start("X-Shop")).not.toThrow();
  });
});

describe("requests by slug", () => {
  const sent: { to: string; url: string }[] = [];
  const shared = shareInstance({
    tenant: { resolveTenantId: bySlug() },
    auth: {
      trustedOrigins: ["https://pages.example.com"],
      emailAndPassword: {
        enabled: true,
        sendResetPassword: async ({ user, url }) => void sent.push({ to: user.email, url }),
      },
    },
  });
  let acme: string;
  let globex: string;
  const at = (slug: string, more: Record<string, string> = {}) =>
    shared.instance.browser({ [HEADER]: slug, ...more });

  beforeAll(async () => {
    acme = (await shared.instance.createTenant("acme")).id;
    globex = (await shared.instance.createTenant("globex")).id;
  });

  it("run in that tenant, and the same address is another person in another", async () => {
    const inAcme = at("acme");
    const inGlobex = at("Globex");
    const body = person("both@example.com");
    const one = await inAcme.post<Signed>("/sign-up/email", body);
    const other = await inGlobex.post<Signed>("/tenant/sign-up/email", body);
    expect([one.data.user.tenantId, other.data.user.tenantId]).toEqual([acme, globex]);
    expect((await inAcme.get<Signed>("/get-session")).data.user.id).toBe(one.data.user.id);
    // R5: elsewhere it is no session.
    expect((await inAcme.get("/get-session", { headers: { [HEADER]: "globex" } })).data).toBeNull();
  });

  it("404 for a slug that nobody has, whatever the endpoint", async () => {
    const nowhere = at("nobody");
    for (const [method, path] of [
      ["GET", "/get-session"],
      ["POST", "/sign-up/email"],
      ["POST", "/tenant/sign-in/email"],
      ["GET", "/tenant/sign-in-methods"],
    ] as const) {
      const body = method === "POST" ? { body: person("x@example.com") } : {};
      const { status, code } = await nowhere.send(path, { method, ...body });
      expect([path, status, code]).toEqual([path, 404, "TENANT_NOT_FOUND"]);
    }
    for (const slug of ["%00", "a b", "acme%20", "'", "acme.", "é"]) {
      expect((await at(slug).get("/get-session")).code, slug).toBe("TENANT_NOT_FOUND");
    }
  });

  it("an empty slug names nothing", async () => {
    const { data } = await at("").post<Signed>("/sign-up/email", person("nowhere@example.com"));
    expect(data.user.tenantId).toBeNull();
    const { code } = await at("").post("/tenant/sign-in/email", person("nowhere@example.com"));
    expect(code).toBe("TENANT_ID_REQUIRED");
  });

  it("R1: body and query come first, and a slug is not looked at then", async () => {
    const land = async (path: string, headers: Record<string, string>, body = {}) => {
      const email = `${crypto.randomUUID()}@example.com`;
      const browser = shared.instance.browser(headers);
      return (await browser.post<Signed>(path, { ...person(email), ...body })).data.user.tenantId;
    };
    for (const slug of ["globex", "nobody"]) {
      const headers = { [HEADER]: slug };
      expect(await land("/tenant/sign-up/email", headers, { tenantId: acme })).toBe(acme);
      expect(await land(`/sign-up/email?tenantId=${acme}`, headers)).toBe(acme);
    }
    // A page adds its slug to the headers of a caller, who may have put an id among them.
    const both = { [HEADER]: "globex", "x-tenant-id": acme };
    expect(await land("/sign-up/email", both)).toBe(globex);
    const { status } = await shared.instance.browser({ ...both, [HEADER]: "nobody" }).get("/ok");
    expect(status).toBe(404);
  });

  it("R7: names a target for managers, and the body's target comes first, without a conflict", async () => {
    const { operator } = shared;
    const headers = { [HEADER]: "acme" };
    const google = { providerId: "google", clientId: "id", clientSecret: "secret" };
    const own = await operator.post("/tenant/oauth-config/register", google, { headers });
    expect([own.status, own.data.tenantId]).toEqual([200, acme]);
    const body = { ...google, tenantId: globex };
    const other = await operator.post("/tenant/oauth-config/register", body, { headers });
    expect([other.status, other.data.tenantId]).toEqual([200, globex]);
    const renamed = await operator.post(
      "/tenant/update",
      { tenantId: globex, name: "G" },
      { headers },
    );
    expect(renamed.status).toBe(200);
    // The caller stays where it is: a target grants nothing.
    const stranger = await at("acme").post("/tenant/oauth-config/register", google);
    expect(stranger.code).toBe("UNAUTHORIZED");
  });

  it("409 where a call inside a tenant names another by its slug", async () => {
    const { api } = shared.instance;
    const call = (slug: string) =>
      runInTenant(acme, () => api.getSession({ headers: new Headers({ [HEADER]: slug }) }));
    expect(await call("acme")).toBeNull();
    await expect(call("globex")).rejects.toMatchObject({ body: { code: "TENANT_SCOPE_CONFLICT" } });
    await expect(call("nobody")).rejects.toMatchObject({ body: { code: "TENANT_NOT_FOUND" } });
  });

  it("R9: no address belongs to a tenant because of it", async () => {
    const email = "reset@example.com";
    await at("acme").post("/sign-up/email", person(email));
    for (const redirectTo of ["https://pages.example.com/t/globex", "/t/acme/reset"]) {
      const { status } = await at("acme").post("/request-password-reset", { email, redirectTo });
      expect([redirectTo, status]).toEqual([redirectTo, 200]);
    }
    const evil = { email, redirectTo: "https://evil.example.com" };
    expect((await at("acme").post("/request-password-reset", evil)).status).toBe(403);
  });

  it("links in mails need no slug, and work with the one of their tenant only", async () => {
    const email = "forgetful@example.com";
    await at("acme").post("/sign-up/email", person(email));
    await at("globex").post("/sign-up/email", person(email));
    const reset = async (headers: Record<string, string>) => {
      await at("acme").post("/request-password-reset", { email, redirectTo: "/t/acme/reset" });
      const link = sent.at(-1)?.url ?? "";
      const { location } = await shared.instance.browser().get(link);
      const token = new URL(location ?? "", "http://localhost:3000").searchParams.get("token");
      const body = { token, newPassword: "another good password" };
      return (await shared.instance.browser(headers).post("/reset-password", body)).status;
    };
    expect(await reset({})).toBe(200);
    expect(await reset({ [HEADER]: "acme" })).toBe(200);
    expect(await reset({ [HEADER]: "globex" })).toBe(400);
    const signIn = (slug: string, password: string) =>
      at(slug).post("/sign-in/email", { email, password });
    expect((await signIn("acme", "another good password")).status).toBe(200);
    expect((await signIn("globex", PASSWORD)).status).toBe(200);
  });

  it("pages on the server hand the slug on", async () => {
    const browser = at("acme");
    const { data } = await browser.post<Signed>("/sign-up/email", person("page@example.com"));
    const { api } = shared.instance;
    const ask = (slug: string) =>
      api.getSession({ headers: new Headers({ cookie: browser.cookieHeader(), [HEADER]: slug }) });
    expect((await ask("acme"))?.user.id).toBe(data.user.id);
    expect(await ask("globex")).toBeNull();
  });
});

describe("a resolver that asks bySlug() at one host", () => {
  it("answers with it: then nothing that the caller says comes first", async () => {
    const slugs = bySlug();
    const resolveTenantId = (ctx: ResolveTenantContext) =>
      ctx.headers?.get("host") === "other.example.com" ? false : slugs(ctx);
    const { browser, createTenant } = await createInstance({ tenant: { resolveTenantId } });
    const { id: acme } = await createTenant("acme");
    const { id: globex } = await createTenant("globex");
    const given = { [HEADER]: "acme", "x-tenant-id": globex };
    const { data } = await browser(given).post<Signed>("/sign-up/email", person("a@example.com"));
    expect(data.user.tenantId).toBe(acme);
  });
});

// In SQLite nobody else reads during a transaction.
describe.skipIf(!servers.asked).each(servers.kinds)("a slug that is changed in %s", (database) => {
  it("inside a transaction of the application counts after it, whoever looked meanwhile", async () => {
    const { api, context, browser, createTenant } = await createInstance({
      tenant: { resolveTenantId: bySlug() },
      database,
    });
    const { id: tenantId } = await createTenant("before");
    const status = async (slug: string) =>
      (await browser({ [HEADER]: slug }).get("/get-session")).status;
    expect(await status("before")).toBe(200);
    const changed = gate();
    // Outside of the transaction: it sees what is there before the commit.
    const meanwhile = changed.reached.then(() => status("before")).finally(changed.open);
    await runWithTransaction(context.adapter, async () => {
      await api.updateTenant({ body: { tenantId, slug: "after" } });
      await changed.pass();
    });
    expect(await meanwhile).toBe(200);
    expect([await status("before"), await status("after")]).toEqual([404, 200]);
  });
});
