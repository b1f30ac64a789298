import { describe, expect, it } from "vitest";
import { bySlug, type ResolveTenantContext, runInTenant, tenantAuth } from "../../../src/index";
import { newcomer as person } from "../../support/instance";
import { createWorld, outcome, shareWorld } from "../../support/world";

const HEADER = "x-tenant-slug";
type Signed = { user: { id: string; email: string; tenantId: string | null } };

describe("bySlug", () => {
  it("answers the slug in its header, in lower case, or nothing", () => {
    const asked = (headers: Record<string, string>) =>
      ({ headers: new Headers(headers) }) as ResolveTenantContext;
    const resolve = bySlug();
    expect(resolve(asked({ [HEADER]: " ACME " }))).toEqual({ slug: "acme" });
    expect(resolve(asked({ [HEADER]: "" }))).toBeUndefined();
    expect(resolve(asked({ host: "acme.example.com" }))).toBeUndefined();
    expect(resolve({} as ResolveTenantContext)).toBeUndefined();
    const request = new Request("http://localhost", { headers: { [HEADER]: "acme" } });
    expect(resolve({ request } as ResolveTenantContext)).toEqual({ slug: "acme" });
    expect(bySlug({ header: "X-Shop" })(asked({ "x-shop": "acme" }))).toEqual({ slug: "acme" });
  });

  it("refuses at start a header that is none, or that has the id in it", () => {
    const start = (header: string) => tenantAuth({ resolveTenantId: bySlug({ header }) });
    for (const header of ["my header", ""]) {
      expect(() => start(header)).toThrow(/expected a header name\s+→ at slugHeader/);
    }
    expect(() => start("X-Tenant-Id")).toThrow(/the tenantHeader is for ids/);
    expect(() => start("X-Shop")).not.toThrow();
    expect(() => bySlug("X-Shop" as never)).toThrow('write { header: "X-Shop" }');
  });
});

describe("requests by slug", () => {
  const world = shareWorld({
    tenant: { resolveTenantId: bySlug() },
    auth: { trustedOrigins: ["https://pages.example.com"] },
  });
  const at = (slug: string) => world.browser({ [HEADER]: slug });

  it("run in that tenant, and the same address is another person in another", async () => {
    const inAcme = at("acme");
    const body = person();
    const one = await inAcme.post<Signed>("/sign-up/email", body);
    const other = await at("Globex").post<Signed>("/tenant/sign-up/email", body);
    const { acme, globex } = world.ids;
    expect([one.data.user.tenantId, other.data.user.tenantId]).toEqual([acme, globex]);
    expect(await world.whoIs(inAcme)).toMatchObject({ id: one.data.user.id });
    // R5: elsewhere it is no session, and pages on the server hand the slug on.
    expect((await inAcme.get("/get-session", { headers: { [HEADER]: "globex" } })).data).toBeNull();
    const cookie = inAcme.cookieHeader();
    const ask = (slug: string) =>
      world.api.getSession({ headers: new Headers({ cookie, [HEADER]: slug }) });
    expect((await ask("acme"))?.user.id).toBe(one.data.user.id);
    expect(await ask("globex")).toBeNull();
  });

  it("404 for a slug of no tenant, at every endpoint; an empty one names nothing", async () => {
    const answers = [
      await at("nobody").post("/sign-up/email", person()),
      await at("nobody").post("/tenant/sign-in/email", person()),
    ];
    for (const slug of ["nobody", "%00", "acme%20", "é"]) {
      answers.push(await at(slug).get("/get-session"));
    }
    expect(answers.map(outcome)).toEqual(answers.map(() => [404, "TENANT_NOT_FOUND"]));
    const { data } = await at("").post<Signed>("/sign-up/email", person());
    expect(data.user.tenantId).toBeNull();
    const { code } = await at("").post("/tenant/sign-in/email", person());
    expect(code).toBe("TENANT_ID_REQUIRED");
  });

  it("R1: body and query come first, and a slug is not looked at then", async () => {
    const { acme, globex } = world.ids;
    const land = async (path: string, headers: Record<string, string>, body = {}) => {
      const browser = world.browser(headers);
      return (await browser.post<Signed>(path, { ...person(), ...body })).data.user.tenantId;
    };
    for (const slug of ["globex", "nobody"]) {
      const headers = { [HEADER]: slug };
      expect(await land("/tenant/sign-up/email", headers, { tenantId: acme })).toBe(acme);
      expect(await land(`/sign-up/email?tenantId=${acme}`, headers)).toBe(acme);
    }
    // A page adds its slug to the headers of a caller, who may have put an id among them.
    const both = { [HEADER]: "globex", "x-tenant-id": acme };
    expect(await land("/sign-up/email", both)).toBe(globex);
    expect((await world.browser({ ...both, [HEADER]: "nobody" }).get("/ok")).status).toBe(404);
  });

  it("R7: names a target for managers, and the body's target comes first, without a conflict", async () => {
    const { acme, globex: tenantId } = world.ids;
    const operator = (await world.operator()).fork({ [HEADER]: "acme" });
    const google = { providerId: "google", clientId: "id", clientSecret: "secret" };
    const path = "/tenant/oauth-config/register";
    expect((await operator.post(path, google)).data).toMatchObject({ tenantId: acme });
    expect((await operator.post(path, { ...google, tenantId })).data).toMatchObject({ tenantId });
    // The caller stays where it is: a target grants nothing.
    expect((await at("acme").post(path, google)).code).toBe("UNAUTHORIZED");
  });

  it("409 where a call inside a tenant names another by its slug", async () => {
    const call = (slug: string) =>
      runInTenant(world.ids.acme, () =>
        world.api.getSession({ headers: new Headers({ [HEADER]: slug }) }),
      );
    expect(await call("acme")).toBeNull();
    await expect(call("globex")).rejects.toMatchObject({ body: { code: "TENANT_SCOPE_CONFLICT" } });
    await expect(call("nobody")).rejects.toMatchObject({ body: { code: "TENANT_NOT_FOUND" } });
  });

  it("R9: no address belongs to a tenant because of it", async () => {
    const { email } = await world.as("reset", "acme");
    const body = { email, redirectTo: "https://pages.example.com/t/globex" };
    expect((await at("acme").post("/request-password-reset", body)).status).toBe(200);
  });
});

it("a resolver may ask bySlug() at one host: what it finds comes before what the caller says", async () => {
  const slugs = bySlug();
  const resolveTenantId = (ctx: ResolveTenantContext) =>
    ctx.headers?.get("host") === "other.example.com" ? false : slugs(ctx);
  const { browser, ids } = await createWorld({ tenant: { resolveTenantId } });
  const given = { [HEADER]: "acme", "x-tenant-id": ids.globex };
  const { data } = await browser(given).post<Signed>("/sign-up/email", person());
  expect(data.user.tenantId).toBe(ids.acme);
});
