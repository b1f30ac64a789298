import { beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import {
  TENANT_AUTH_ERROR_CODES,
  type TenantAuthClientOptions,
  tenantAuthClient,
} from "../src/client";
import { bySlug, TENANT_AUTH_ERROR_CODES as SERVER_ERROR_CODES } from "../src/index";
import { asOperator, connect, google, somebody } from "./support/client";
import { PASSWORD } from "./support/instance";
import { createWorld, EMAIL, shareWorld } from "./support/world";

/** The machine that runs the tests may be busy. */
const PATIENT = { timeout: 10_000 };

const world = shareWorld({ auth: { socialProviders: { google } } });

type Client = ReturnType<typeof connect>["authClient"];

describe("calls", () => {
  const acme = { name: "Acme", slug: "acme", metadata: { plan: "pro" } };
  const tenantId = "a-tenant";
  const person = { ...somebody(EMAIL), tenantId, rememberMe: true };
  const social = { provider: "google", tenantId, callbackURL: "/welcome" };
  const config = { tenantId, providerId: "google", clientId: "id", clientSecret: "a secret" };
  const change = { tenantId, providerId: "google", enabled: false };
  const part = { limit: 2, offset: 1, search: "shop", sort: "-slug" } as const;

  test.each<[request: string, call: (client: Client) => Promise<unknown>, sent: object]>([
    ["POST /tenant/create", ({ tenant }) => tenant.create(acme), acme],
    ["GET /tenant/get", ({ tenant }) => tenant.get({ query: { slug: "a" } }), { slug: "a" }],
    ["GET /tenant/list", ({ tenant }) => tenant.list(), {}],
    [
      "GET /tenant/list",
      ({ tenant }) => tenant.list({ query: part }),
      { ...part, limit: "2", offset: "1" },
    ],
    ["POST /tenant/update", ({ tenant }) => tenant.update({ tenantId }), { tenantId }],
    ["POST /tenant/delete", ({ tenant }) => tenant.delete({ tenantId }), { tenantId }],
    ["POST /tenant/sign-up/email", ({ tenant }) => tenant.signUp.email(person), person],
    ["POST /tenant/sign-in/email", ({ tenant }) => tenant.signIn.email(person), person],
    ["POST /tenant/sign-in/social", ({ tenant }) => tenant.signIn.social(social), social],
    ["GET /tenant/sign-in-methods", ({ tenant }) => tenant.signInMethods(), {}],
    ["POST /tenant/oauth-config/register", (c) => c.tenant.oauthConfig.register(config), config],
    ["GET /tenant/oauth-config/list", (c) => c.tenant.oauthConfig.list(), {}],
    ["POST /tenant/oauth-config/update", (c) => c.tenant.oauthConfig.update(change), change],
    ["POST /tenant/oauth-config/check", (c) => c.tenant.oauthConfig.check(config), config],
    ["POST /tenant/oauth-config/delete", (c) => c.tenant.oauthConfig.delete(change), change],
  ])("%s", async (request, call, expected) => {
    const { authClient, last } = connect(world);
    await call(authClient);
    const { method, path, body, query } = last();
    expect([`${method} ${path}`, method === "GET" ? query : body]).toEqual([request, expected]);
  });

  test("data comes as the types say: dates are dates", async () => {
    const { authClient } = await asOperator(world);
    const input = { name: "Initech", slug: "initech", metadata: { seats: 5 } };
    const { data, error } = await authClient.tenant.create(input);
    expect([error, data]).toMatchObject([null, { ...input, createdAt: expect.any(Date) }]);
  });

  test("signUp.email and signIn.email answer with the session of their tenant", async () => {
    const { authClient } = connect(world);
    const { id } = await world.createTenant();
    const input = { ...somebody(EMAIL), tenantId: id };
    const signedUp = await authClient.tenant.signUp.email(input);
    expect(signedUp.data).toMatchObject({ user: { tenantId: id }, session: { tenantId: id } });
    const { data } = await authClient.tenant.signIn.email({ ...input, rememberMe: false });
    expect(data).toMatchObject({ redirect: false, session: { tenantId: id } });
    const { token } = (await authClient.getSession()).data?.session ?? {};
    expect(token).toBe(data?.token);
  });
});

describe("errors", () => {
  test("are comparable with the exported codes, which are the server's", async () => {
    const { authClient } = await asOperator(world);
    const missing = await authClient.tenant.get({ query: { id: "missing" } });
    expect(missing.data).toBeNull();
    const { code, message } = TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND;
    expect(missing.error).toMatchObject({ code, message, status: 404 });
    expect(TENANT_AUTH_ERROR_CODES).toEqual(SERVER_ERROR_CODES);
    expect(tenantAuthClient().$ERROR_CODES).toEqual(SERVER_ERROR_CODES);
  });
});

const atAcme = () => connect(world, { tenant: { tenantId: String(world.ids.acme) } });

describe("session state", () => {
  /** Watches the session, as a component does, until the test is over. */
  function watch({ useSession }: ReturnType<typeof connect>["authClient"]) {
    onTestFinished(useSession.subscribe(() => {}));
    const seen = () => {
      const { data } = useSession.get();
      return data && [data.user.email, data.session.tenantId];
    };
    return (expected: unknown) => vi.waitFor(() => expect(seen()).toEqual(expected), PATIENT);
  }

  test.each(["a tenant", "no tenant"])(
    "useSession follows sign-up, sign-out and sign-in, with %s as an option",
    async (option) => {
      const tenantId = String(world.ids.acme);
      const { authClient, sent } = option === "a tenant" ? atAcme() : connect(world);
      const sees = watch(authClient);
      await sees(null);
      const email = `${option.replace(" ", "-")}@example.com`;
      await authClient.tenant.signUp.email({ ...somebody(email), tenantId });
      await sees([email, tenantId]);
      expect(sent.map(({ path }) => path)).toEqual(["/tenant/sign-up/email", "/get-session"]);
      await authClient.signOut();
      await sees(null);
      await authClient.tenant.signIn.email({ tenantId, email, password: PASSWORD });
      await sees([email, tenantId]);
    },
  );

  test("calls that change no session leave it alone", async () => {
    const { authClient, sent } = await asOperator(world);
    watch(authClient);
    await authClient.tenant.create({ name: "New", slug: "new" });
    await authClient.tenant.list();
    const stranger = { email: "nobody@example.com", password: PASSWORD };
    await authClient.tenant.signIn.email({ tenantId: String(world.ids.acme), ...stranger });
    // Longer than the client waits before it refreshes.
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(sent).toHaveLength(3);
    expect(sent.map(({ path }) => path)).not.toContain("/get-session");
  });
});

describe("the way to the provider", () => {
  const HERE = "http://localhost:3000/sign-in";

  /** A page to leave from: the client goes to the provider by setting its address. */
  function openPage() {
    const location = { href: HERE };
    vi.stubGlobal("window", { location });
    onTestFinished(() => void vi.unstubAllGlobals());
    return location;
  }

  test("the page goes there by itself", async () => {
    const location = openPage();
    const { data } = await atAcme().authClient.tenant.signIn.social({ provider: "google" });
    expect(location.href).toBe(data?.url);
    const { origin, searchParams } = new URL(location.href);
    expect([origin, searchParams.get("redirect_uri")]).toEqual([
      "https://accounts.google.com",
      "http://localhost:3000/api/auth/tenant/callback/google",
    ]);
  });

  test("it stays with disableRedirect, or when the provider is not there", async () => {
    const location = openPage();
    const { signIn } = atAcme().authClient.tenant;
    const { data } = await signIn.social({ provider: "google", disableRedirect: true });
    expect(data?.redirect).toBe(false);
    expect(new URL(data?.url ?? "").origin).toBe("https://accounts.google.com");
    const missing = await signIn.social({ provider: "github" });
    expect(missing.data).toBeNull();
    expect(missing.error).toMatchObject({ code: "PROVIDER_NOT_FOUND", status: 404 });
    expect(location.href).toBe(HERE);
  });

  test("it goes to callbackURL after signIn.email", async () => {
    const { email } = await world.as("jane", "acme");
    const location = openPage();
    const input = { email, password: PASSWORD, callbackURL: "/dashboard" };
    const { data } = await atAcme().authClient.tenant.signIn.email(input);
    expect(data).toMatchObject({ redirect: true, url: "/dashboard" });
    expect(location.href).toBe("/dashboard");
  });
});

const jane = { email: EMAIL, password: PASSWORD };
const nobody = { code: "INVALID_EMAIL_OR_PASSWORD", status: 401 };

describe("the tenant on every request", () => {
  const ids = { acme: "", globex: "" };
  // Jane is somebody at Acme only.
  beforeAll(async () => {
    const { acme, globex } = world.ids;
    Object.assign(ids, { acme, globex });
    await world.as("jane", "acme");
  });

  const at = (tenantId: TenantAuthClientOptions["tenantId"]) =>
    connect(world, { tenant: { tenantId } });

  test("no option, no header", async () => {
    const { authClient, sent } = connect(world);
    await authClient.getSession();
    await authClient.tenant.list();
    expect(sent.map(({ headers }) => headers.get("x-tenant-id"))).toEqual([null, null]);
  });

  test("a string: better-auth's own endpoints run inside the tenant", async () => {
    const [inAcme, inGlobex] = [at(ids.acme), at(ids.globex)];
    expect((await inGlobex.authClient.signIn.email(jane)).error).toMatchObject(nobody);
    const { data } = await inAcme.authClient.signIn.email(jane);
    expect(data?.user.tenantId).toBe(ids.acme);
    expect((await inAcme.authClient.getSession()).data?.session.tenantId).toBe(ids.acme);
    await inAcme.authClient.tenant.list();
    await inAcme.authClient.$fetch("/ok");
    const paths = ["/sign-in/email", "/get-session", "/tenant/list", "/ok"];
    const sent = inAcme.sent.map(({ path, headers }) => [path, headers.get("x-tenant-id")]);
    expect(sent).toEqual(paths.map((path) => [path, ids.acme]));
    // R5: a session of elsewhere is none here, and stays alive where it belongs.
    const { browser } = inAcme;
    const elsewhere = connect(world, { browser, tenant: { tenantId: ids.globex } });
    expect(await elsewhere.authClient.getSession()).toMatchObject({ data: null, error: null });
    expect((await inAcme.authClient.getSession()).data?.session.token).toBe(data?.token);
  });

  test("a function is asked before every request", async () => {
    let here = ids.acme;
    const tenantId = vi.fn(() => here);
    const { authClient, sent } = at(tenantId);
    expect(tenantId).not.toHaveBeenCalled();
    expect((await authClient.tenant.signIn.email(jane)).error).toBeNull();
    here = ids.globex;
    expect((await authClient.tenant.signIn.email(jane)).error).toMatchObject(nobody);
    expect(sent.map(({ headers }) => headers.get("x-tenant-id"))).toEqual(Object.values(ids));
    expect(tenantId).toHaveBeenCalledTimes(2);
  });

  test.each([
    ["null", () => null],
    ["an empty string, not from a function", ""],
  ])("no header for %s", async (_, tenantId) => {
    const { authClient, last } = at(tenantId);
    const { error } = await authClient.tenant.signIn.email(jane);
    expect(last().headers.has("x-tenant-id")).toBe(false);
    expect(error).toMatchObject({ code: "TENANT_ID_REQUIRED", status: 400 });
  });

  test("tenantHeader: another header, on both sides", async () => {
    const other = await createWorld({ tenant: { tenantHeader: "x-organisation" } });
    const tenantId = String(other.ids.acme);
    const tenant = { tenantId, tenantHeader: "X-Organisation" };
    const { authClient, last } = connect(other, { tenant });
    const { data } = await authClient.tenant.signUp.email(somebody(EMAIL));
    expect(data?.user.tenantId).toBe(tenantId);
    expect(last().headers.get("x-organisation")).toBe(tenantId);
    expect(last().headers.has("x-tenant-id")).toBe(false);
  });

  test("R1: a header of the call, of the application's fetch options, or a body wins", async () => {
    const headers = { "X-Tenant-Id": ids.acme };
    const tenant = { tenantId: ids.globex };
    const { authClient, last } = connect(world, { tenant });
    const byCall = await authClient.tenant.signIn.email(jane, { headers });
    expect(byCall.data?.session?.tenantId).toBe(ids.acme);
    expect(last().headers.get("x-tenant-id")).toBe(ids.acme);
    const inBody = await authClient.tenant.signIn.email({ ...jane, tenantId: ids.acme });
    expect(inBody.data?.session?.tenantId).toBe(ids.acme);
    const byApplication = connect(world, { tenant, headers });
    const { data } = await byApplication.authClient.signIn.email(jane);
    expect(data?.user.tenantId).toBe(ids.acme);
  });
});

describe("the slug on every request", () => {
  async function createSlugWorld(header?: string) {
    const resolveTenantId = bySlug(header ? { header } : {});
    const world = await createWorld({ tenant: { resolveTenantId } });
    await world.as("jane", "acme");
    return { world, acme: String(world.ids.acme), globex: String(world.ids.globex) };
  }

  test("the address of the page is enough, and is read before every request", async () => {
    const { world, acme } = await createSlugWorld();
    let pathname = "/t/acme/sign-in";
    const tenantSlug = () => /^\/t\/([^/]+)/.exec(pathname)?.[1];
    const { authClient, last } = connect(world, { tenant: { tenantSlug } });
    expect((await authClient.signIn.email(jane)).data?.user.tenantId).toBe(acme);
    expect((await authClient.getSession()).data?.session.tenantId).toBe(acme);
    expect(last().headers.get("x-tenant-slug")).toBe("acme");
    expect(last().headers.has("x-tenant-id")).toBe(false);
    pathname = "/t/globex";
    expect((await authClient.getSession()).data).toBeNull();
    expect((await authClient.tenant.signIn.email(jane)).error).toMatchObject(nobody);
    pathname = "/t/nobody";
    expect((await authClient.getSession()).error).toMatchObject({ code: "TENANT_NOT_FOUND" });
    pathname = "/pricing";
    await authClient.getSession();
    expect(last().headers.has("x-tenant-slug")).toBe(false);
  });

  test("slugHeader: another header, on both sides; a header of the call wins", async () => {
    const { world, acme, globex } = await createSlugWorld("x-shop");
    const tenant = { tenantSlug: "globex", slugHeader: "X-Shop" };
    const { authClient, last } = connect(world, { tenant });
    const { data } = await authClient.tenant.signUp.email(somebody("bo@example.com"));
    expect(data?.user.tenantId).toBe(globex);
    expect(last().headers.get("x-shop")).toBe("globex");
    const signedIn = await authClient.signIn.email(jane, { headers: { "x-shop": "acme" } });
    expect(signedIn.data?.user.tenantId).toBe(acme);
  });

  test("R1: an id wins, be it in the body or in its header, and only one of both is sent", async () => {
    const { world, acme } = await createSlugWorld();
    const both = connect(world, { tenant: { tenantId: acme, tenantSlug: "globex" } });
    expect((await both.authClient.signIn.email(jane)).data?.user.tenantId).toBe(acme);
    expect(both.last().headers.has("x-tenant-slug")).toBe(false);
    const { authClient } = connect(world, { tenant: { tenantSlug: "globex" } });
    const headers = { "x-tenant-id": acme };
    const onCall = await authClient.signIn.email({ ...jane, fetchOptions: { headers } });
    expect(onCall.data?.user.tenantId).toBe(acme);
    const inBody = await authClient.tenant.signIn.email({ ...jane, tenantId: acme });
    expect(inBody.data?.session?.tenantId).toBe(acme);
  });
});

// React, Vue, Svelte and Solid make a hook, a ref, a store or an accessor of it: test/types.test.ts.
test("useSignInMethods is pending, then has what the page offers, and asks again with refetch", async () => {
  // better-auth's stores ask the server only where there is a window.
  const listeners = { addEventListener() {}, removeEventListener() {} };
  vi.stubGlobal("window", { ...listeners, location: { href: "http://localhost:3000/" } });
  onTestFinished(() => void vi.unstubAllGlobals());
  const { id: tenantId, name, slug } = await world.createTenant();
  const page = { tenantId };
  const { authClient, sent } = connect(world, { tenant: { tenantId: () => page.tenantId } });
  const { useSignInMethods } = authClient;
  const latest = () => useSignInMethods.get();
  const providers = () => latest().data?.providers.map(({ id }) => id);
  onTestFinished(useSignInMethods.subscribe(() => {}));
  expect(latest()).toMatchObject({ data: null, error: null, isPending: true });
  await vi.waitFor(() => expect(providers()).toEqual(["google"]), PATIENT);
  const tenant = { id: tenantId, name, slug };
  expect(latest()).toMatchObject({ error: null, isPending: false, data: { tenant } });
  expect(sent).toHaveLength(1);
  const config = { providerId: "github", clientId: "i", clientSecret: "s" };
  await world.api.registerTenantOAuthConfig({ body: { tenantId, ...config } });
  await latest().refetch();
  await vi.waitFor(() => expect(providers()).toEqual(["google", "github"]), PATIENT);
  page.tenantId = "nobody";
  await latest().refetch();
  const error = { code: "TENANT_NOT_FOUND", status: 404 };
  await vi.waitFor(() => expect(latest().error).toMatchObject(error), PATIENT);
});
