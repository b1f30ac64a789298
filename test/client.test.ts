import { createAuthClient } from "better-auth/client";
import { expect, onTestFinished, test, vi } from "vitest";
import { type TenantAuthClientOptions, tenantAuthClient } from "../src/client";
import { bySlug } from "../src/index";
import type { Browser } from "./support/browser";
import { PASSWORD } from "./support/instance";
import { createWorld, EMAIL, shareWorld, type World } from "./support/world";

/** The machine that runs the tests may be busy. */
const PATIENT = { timeout: 10_000 };

const world = shareWorld({
  auth: { socialProviders: { google: { clientId: "global-client", clientSecret: "a secret" } } },
  tenant: { resolveTenantId: bySlug() },
});
const jane = { email: EMAIL, password: PASSWORD };
const nobody = { code: "INVALID_EMAIL_OR_PASSWORD", status: 401 };

interface ConnectOptions {
  tenant?: TenantAuthClientOptions;
  /** Whose cookies the client has: nobody's unless told. */
  browser?: Browser;
  /** Sent by the application with every request. */
  headers?: Record<string, string>;
}

/** better-auth's client with the plugin, talking to the handler, with a list of what it sent. */
function connect(world: Pick<World, "browser">, options: ConnectOptions = {}) {
  const { browser = world.browser(), headers = {} } = options;
  const sent: Awaited<ReturnType<typeof describe>>[] = [];
  const customFetchImpl = async (url: string | URL | Request, init?: RequestInit) => {
    const request = new Request(url, init);
    sent.push(await describe(request.clone()));
    return browser.fetch(request);
  };
  const authClient = createAuthClient({
    baseURL: "http://localhost:3000",
    plugins: [tenantAuthClient(options.tenant)],
    fetchOptions: { customFetchImpl, headers },
  });
  const last = () => {
    const request = sent.at(-1);
    if (!request) throw new Error("nothing was sent");
    return request;
  };
  return { authClient, browser, sent, last };
}

/** A request of the client, as it left. */
async function describe(request: Request) {
  const { pathname, searchParams } = new URL(request.url);
  const text = await request.text();
  return {
    method: request.method,
    path: pathname.replace("/api/auth", ""),
    query: Object.fromEntries(searchParams),
    body: text ? JSON.parse(text) : undefined,
    headers: request.headers,
  };
}

/** What somebody signs up with. */
const somebody = (email: string) => ({ name: "Somebody", email, password: PASSWORD });

type Client = ReturnType<typeof connect>["authClient"];

const tenantId = "a-tenant";
const acme = { name: "Acme", slug: "acme", metadata: { plan: "pro" } };
const person = { ...somebody(EMAIL), tenantId, rememberMe: true };
const social = { provider: "google", tenantId, callbackURL: "/welcome" };
const config = { tenantId, providerId: "google", clientId: "id", clientSecret: "a secret" };
const change = { tenantId, providerId: "google", enabled: false };
const part = { limit: 2, offset: 1, search: "shop", sort: "-slug" } as const;

test.each<[request: string, call: (client: Client) => Promise<unknown>, sent: object]>([
  ["POST /tenant/create", ({ tenant }) => tenant.create(acme), acme],
  ["GET /tenant/get", ({ tenant }) => tenant.get({ query: { slug: "a" } }), { slug: "a" }],
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
])("a call sends %s, and names no tenant by itself", async (request, call, expected) => {
  const { authClient, last } = connect(world);
  await call(authClient);
  const { method, path, body, query, headers } = last();
  expect([`${method} ${path}`, method === "GET" ? query : body]).toEqual([request, expected]);
  expect(headers.has("x-tenant-id")).toBe(false);
});

/** Watches the session, as a component does, until the test is over. */
function watch({ useSession }: Client) {
  onTestFinished(useSession.subscribe(() => {}));
  const seen = () => {
    const { data } = useSession.get();
    return data && [data.user.email, data.session.tenantId];
  };
  return (expected: unknown) => vi.waitFor(() => expect(seen()).toEqual(expected), PATIENT);
}

test("useSession follows sign-up, sign-out and sign-in", async () => {
  const { id } = await world.createTenant();
  const { authClient, sent } = connect(world);
  const sees = watch(authClient);
  await sees(null);
  await authClient.tenant.signUp.email({ ...somebody(EMAIL), tenantId: id });
  await sees([EMAIL, id]);
  expect(sent.map(({ path }) => path)).toEqual(["/tenant/sign-up/email", "/get-session"]);
  await authClient.signOut();
  await sees(null);
  await authClient.tenant.signIn.email({ ...jane, tenantId: id });
  await sees([EMAIL, id]);
});

test("calls that change no session leave it alone", async () => {
  const browser = world.at("platform", await world.operator());
  const { authClient, sent } = connect(world, { browser });
  watch(authClient);
  await authClient.tenant.create({ name: "New", slug: "new" });
  await authClient.tenant.list();
  await authClient.tenant.signIn.email({ ...jane, password: "wrong", tenantId: world.ids.globex });
  // Longer than the client waits before it refreshes.
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(sent).toHaveLength(3);
  expect(sent.map(({ path }) => path)).not.toContain("/get-session");
});

test("the page goes to the provider by itself, and to callbackURL after signIn.email", async () => {
  await world.as("jane", "acme");
  // A page to leave from: the client goes away by setting its address.
  const location = { href: "http://localhost:3000/sign-in" };
  vi.stubGlobal("window", { location });
  onTestFinished(() => void vi.unstubAllGlobals());
  const { signIn } = connect(world, { tenant: { tenantId: world.ids.acme } }).authClient.tenant;
  await signIn.social({ provider: "google", disableRedirect: true });
  expect((await signIn.social({ provider: "github" })).error?.code).toBe("PROVIDER_NOT_FOUND");
  expect(location.href).toBe("http://localhost:3000/sign-in");
  await signIn.social({ provider: "google" });
  const { origin, searchParams } = new URL(location.href);
  expect([origin, searchParams.get("redirect_uri")]).toEqual([
    "https://accounts.google.com",
    "http://localhost:3000/api/auth/tenant/callback/google",
  ]);
  await signIn.email({ ...jane, callbackURL: "/dashboard" });
  expect(location.href).toBe("/dashboard");
});

test("tenantId, a string: better-auth's own endpoints run inside the tenant", async () => {
  const { id } = await world.as("jane", "acme");
  const inGlobex = connect(world, { tenant: { tenantId: world.ids.globex } });
  expect((await inGlobex.authClient.signIn.email(jane)).error).toMatchObject(nobody);
  const { authClient, sent } = connect(world, { tenant: { tenantId: world.ids.acme } });
  expect((await authClient.signIn.email(jane)).data?.user.id).toBe(id);
  expect((await authClient.getSession()).data?.session.tenantId).toBe(world.ids.acme);
  await authClient.$fetch("/ok");
  expect(sent.map(({ headers }) => headers.get("x-tenant-id"))).toEqual(
    Array(3).fill(world.ids.acme),
  );
});

test("tenantId, a function: it is asked before every request", async () => {
  await world.as("jane", "acme");
  const { acme, globex } = world.ids;
  const here = vi.fn<() => string | null>().mockReturnValueOnce(acme).mockReturnValueOnce(globex);
  const { authClient, sent, last } = connect(world, { tenant: { tenantId: here } });
  expect(here).not.toHaveBeenCalled();
  expect((await authClient.tenant.signIn.email(jane)).error).toBeNull();
  expect((await authClient.tenant.signIn.email(jane)).error).toMatchObject(nobody);
  expect(sent.map(({ headers }) => headers.get("x-tenant-id"))).toEqual([acme, globex]);
  expect(here).toHaveBeenCalledTimes(2);
  for (const nothing of [null, ""]) {
    here.mockReturnValue(nothing);
    expect((await authClient.tenant.signIn.email(jane)).error?.code).toBe("TENANT_ID_REQUIRED");
    expect(last().headers.has("x-tenant-id")).toBe(false);
  }
});

test("R1: a header of the call, of the application's fetch options, or a body wins", async () => {
  await world.as("jane", "acme");
  const { acme, globex } = world.ids;
  for (const tenant of [{ tenantId: globex }, { tenantSlug: "globex" }]) {
    const headers = { "X-Tenant-Id": acme };
    const { signIn } = connect(world, { tenant }).authClient.tenant;
    expect((await signIn.email(jane, { headers })).data?.session?.tenantId).toBe(acme);
    const inBody = await signIn.email({ ...jane, tenantId: acme });
    expect(inBody.data?.session?.tenantId).toBe(acme);
    const { authClient } = connect(world, { tenant, headers });
    expect((await authClient.signIn.email(jane)).data?.user.tenantId).toBe(acme);
  }
  const both = connect(world, { tenant: { tenantId: acme, tenantSlug: "globex" } });
  expect((await both.authClient.signIn.email(jane)).data?.user.tenantId).toBe(acme);
  expect(both.last().headers.has("x-tenant-slug")).toBe(false);
});

test("tenantSlug: the address of the page is enough, and is read before every request", async () => {
  const { id } = await world.as("jane", "acme");
  let pathname = "/t/acme/sign-in";
  const tenantSlug = () => /^\/t\/([^/]+)/.exec(pathname)?.[1];
  const { authClient, last } = connect(world, { tenant: { tenantSlug } });
  expect((await authClient.signIn.email(jane)).data?.user.id).toBe(id);
  expect((await authClient.getSession()).data?.session.tenantId).toBe(world.ids.acme);
  expect(last().headers.get("x-tenant-slug")).toBe("acme");
  expect(last().headers.has("x-tenant-id")).toBe(false);
  pathname = "/t/globex";
  expect((await authClient.getSession()).data).toBeNull();
  pathname = "/t/nobody";
  expect((await authClient.getSession()).error).toMatchObject({ code: "TENANT_NOT_FOUND" });
  pathname = "/pricing";
  await authClient.getSession();
  expect(last().headers.has("x-tenant-slug")).toBe(false);
});

test("tenantHeader and slugHeader rename the headers in client and server, and a header of the call wins", async () => {
  const other = await createWorld({
    tenant: { tenantHeader: "x-organisation", resolveTenantId: bySlug({ header: "x-shop" }) },
  });
  const { acme, globex } = other.ids;
  const options = { tenantHeader: "X-Organisation", slugHeader: "X-Shop" };
  const byId = connect(other, { tenant: { ...options, tenantId: acme } });
  const { data } = await byId.authClient.tenant.signUp.email(somebody(EMAIL));
  expect(data?.user.tenantId).toBe(acme);
  expect(byId.last().headers.get("x-organisation")).toBe(acme);
  expect(byId.last().headers.has("x-tenant-id")).toBe(false);
  const bySlugs = connect(other, { tenant: { ...options, tenantSlug: "globex" } });
  const second = await bySlugs.authClient.tenant.signUp.email(somebody(EMAIL));
  expect(second.data?.user.tenantId).toBe(globex);
  expect(bySlugs.last().headers.get("x-shop")).toBe("globex");
  const headers = { "x-shop": "acme" };
  const third = await bySlugs.authClient.signIn.email(jane, { headers });
  expect(third.data?.user.tenantId).toBe(acme);
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
