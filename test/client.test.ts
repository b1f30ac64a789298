import { type BetterAuthClientOptions, createAuthClient } from "better-auth/client";
import { createAuthClient as createForReact } from "better-auth/react";
import { createAuthClient as createForSolid } from "better-auth/solid";
import { createAuthClient as createForSvelte } from "better-auth/svelte";
import { createAuthClient as createForVue } from "better-auth/vue";
import { createElement } from "react";
import { act, create, type ReactTestRenderer } from "react-test-renderer";
import { createRoot } from "solid-js";
import { beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { effectScope, watchEffect } from "vue";
import {
  TENANT_AUTH_ERROR_CODES,
  type TenantAuthClientOptions,
  tenantAuthClient,
} from "../src/client";
import {
  bySlug,
  TENANT_AUTH_ERROR_CODES as SERVER_ERROR_CODES,
  type SignInMethods,
} from "../src/index";
import type { Browser } from "./support/browser";
import { PASSWORD } from "./support/instance";
import { interceptFetch } from "./support/providers";
import { createWorld, EMAIL, shareWorld, type World } from "./support/world";

/** The machine that runs the tests may be busy. */
const PATIENT = { timeout: 10_000 };

/** A request of the client, as it left. */
interface Sent {
  method: string;
  path: string;
  query: Record<string, string>;
  body: unknown;
  headers: Headers;
}

interface ConnectOptions {
  tenant?: TenantAuthClientOptions;
  /** Whose cookies the client has: nobody's unless told. */
  browser?: Browser;
  /** Sent by the application with every request. */
  headers?: Record<string, string>;
}

/** better-auth's client with the plugin, talking to the handler, with a list of what it sent. */
function connect(world: Pick<World, "browser">, options: ConnectOptions = {}) {
  const { browser = world.browser(), headers } = options;
  const sent: Sent[] = [];
  const fetchOptions: BetterAuthClientOptions["fetchOptions"] = {
    customFetchImpl: async (url, init) => {
      const request = new Request(url, init);
      const { pathname, searchParams } = new URL(request.url);
      const text = await request.clone().text();
      sent.push({
        method: request.method,
        path: pathname.replace("/api/auth", ""),
        query: Object.fromEntries(searchParams),
        body: text ? JSON.parse(text) : undefined,
        headers: request.headers,
      });
      return browser.fetch(request);
    },
    ...(headers ? { headers } : {}),
  };
  const authClient = createAuthClient({
    baseURL: "http://localhost:3000",
    plugins: [tenantAuthClient(options.tenant)],
    fetchOptions,
  });
  const last = () => {
    const request = sent.at(-1);
    if (!request) throw new Error("nothing was sent");
    return request;
  };
  return { authClient, browser, sent, last };
}

/** A client whose user may manage tenants. */
async function asOperator(world: World, tenant: TenantAuthClientOptions = {}) {
  return connect(world, { browser: world.at("platform", await world.operator()), tenant });
}

/** What somebody signs up with. */
const somebody = (email: string) => ({ name: "Somebody", email, password: PASSWORD });

/** A global provider; nothing is ever sent to it. */
const google = { clientId: "global-client-id", clientSecret: "global-client-secret" };

const world = shareWorld({ auth: { socialProviders: { google } } });

type Connected = ReturnType<typeof connect>;

/** A call that works: what was sent for it, and the answer. */
async function expectSent<T>(
  { last }: Connected,
  call: Promise<{ data: T | null; error: unknown }>,
  request: string,
  sent: object,
): Promise<T> {
  const { data, error } = await call;
  const { method, path, body, query } = last();
  expect(error).toBeNull();
  expect(`${method} ${path}`).toBe(request);
  expect({ body, query }).toEqual(
    method === "GET" ? { body: undefined, query: sent } : { body: sent, query: {} },
  );
  if (!data) throw new Error("no data");
  return data;
}

describe("calls about tenants", () => {
  test("create, get by id and by slug, update, delete", async () => {
    const client = await asOperator(world);
    const { tenant } = client.authClient;
    const input = { name: "Initech", slug: "initech", metadata: { plan: "pro", seats: 5 } };
    const made = await expectSent(client, tenant.create(input), "POST /tenant/create", input);
    expect(made).toMatchObject(input);
    // better-auth's client turns dates back into dates, as the types say.
    expect(made.createdAt).toBeInstanceOf(Date);
    for (const query of [{ id: made.id }, { slug: "initech" }]) {
      expect(await expectSent(client, tenant.get({ query }), "GET /tenant/get", query)).toEqual(
        made,
      );
    }
    const change = { tenantId: made.id, name: "Initrode", slug: "initrode", metadata: null };
    const changed = tenant.update(change);
    expect(await expectSent(client, changed, "POST /tenant/update", change)).toMatchObject({
      id: made.id,
      name: "Initrode",
      slug: "initrode",
    });
    const body = { tenantId: made.id };
    const deleted = await expectSent(client, tenant.delete(body), "POST /tenant/delete", body);
    expect(deleted).toEqual({ success: true });
    expect(await world.rows("tenant", "id = ?", [made.id])).toBe(0);
  });
});

describe("calls to sign in", () => {
  test("signUp.email and signIn.email, with the tenant in the body, and the session of it", async () => {
    const { id: tenantId } = await world.createTenant();
    const client = connect(world);
    const { tenant, getSession } = client.authClient;
    const input = { ...somebody(EMAIL), tenantId, rememberMe: true };
    const path = "POST /tenant/sign-up/email";
    const signedUp = await expectSent(client, tenant.signUp.email(input), path, input);
    expect(signedUp.user).toMatchObject({ email: EMAIL, tenantId });
    expect(signedUp.session).toMatchObject({ tenantId, token: signedUp.token });
    expect(await world.rowsIn(tenantId, "user")).toHaveLength(1);

    const person = { tenantId, email: EMAIL, password: PASSWORD };
    const signIn = tenant.signIn.email(person);
    const { token, ...rest } = await expectSent(
      client,
      signIn,
      "POST /tenant/sign-in/email",
      person,
    );
    expect(rest).toMatchObject({ redirect: false, user: { email: EMAIL }, session: { tenantId } });
    const { data } = await getSession();
    expect(data).toMatchObject({ session: { token, tenantId }, user: { tenantId } });
  });
});

test("calls about OAuth configs: register, list, update, check, delete", async () => {
  interceptFetch({});
  const { id: tenantId } = await world.createTenant();
  const client = await asOperator(world);
  const { oauthConfig } = client.authClient.tenant;
  const path = (name: string) => `POST /tenant/oauth-config/${name}`;
  const config = { providerId: "google", clientId: "acme-id", clientSecret: "acme-secret" };
  const input = { ...config, tenantId, scopes: ["email"], enabled: false };
  const made = await expectSent(client, oauthConfig.register(input), path("register"), input);
  const { clientSecret, ...answered } = input;
  expect(made).toMatchObject(answered);
  expect(JSON.stringify(made)).not.toContain(clientSecret);

  const query = { tenantId };
  const list = "GET /tenant/oauth-config/list";
  const byQuery = await expectSent(client, oauthConfig.list({ query }), list, query);
  expect(byQuery).toEqual([made]);
  const ofTenant = await asOperator(world, { tenantId });
  const byHeader = ofTenant.authClient.tenant.oauthConfig.list();
  expect(await expectSent(ofTenant, byHeader, list, {})).toEqual(byQuery);

  const change = { tenantId, providerId: "google", options: { hd: "acme.example" }, enabled: true };
  const changed = await expectSent(client, oauthConfig.update(change), path("update"), change);
  expect(changed).toMatchObject({ ...change, clientId: "acme-id" });

  const tried = { ...config, tenantId };
  const checked = await expectSent(client, oauthConfig.check(tried), path("check"), tried);
  const redirectURI = "http://localhost:3000/api/auth/tenant/callback/google";
  expect(checked).toMatchObject({ providerId: "google", ok: false, redirectURI });

  const body = { tenantId, providerId: "google" };
  const deleted = await expectSent(client, oauthConfig.delete(body), path("delete"), body);
  expect(deleted).toEqual({ success: true });
  expect(await world.rowsIn(tenantId, "tenantOauthConfig")).toEqual([]);
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

/** What the hook answers, in all frameworks. */
interface Query {
  data: SignInMethods | null;
  error: { code?: string; status: number } | null;
  isPending: boolean;
  refetch(): Promise<void>;
}

/** Watches the sign-in methods as a component of a framework does, until the test is over. */
type Watch = (options: Options) => { seen: Query[]; latest(): Query };

const clientOptions = (tenantId: () => string, fetch: typeof globalThis.fetch) =>
  ({
    baseURL: "http://localhost:3000",
    plugins: [tenantAuthClient({ tenantId })],
    fetchOptions: { customFetchImpl: fetch },
  }) satisfies BetterAuthClientOptions;
type Options = ReturnType<typeof clientOptions>;

function record() {
  const seen: Query[] = [];
  const latest = () => {
    const query = seen.at(-1);
    if (!query) throw new Error("nothing was seen");
    return query;
  };
  return { seen, latest };
}

const inVue: Watch = (options) => {
  const recorded = record();
  const authClient = createForVue(options);
  const component = effectScope();
  component.run(() => {
    const methods = authClient.useSignInMethods();
    watchEffect(() => void recorded.seen.push(methods.value as Query), { flush: "sync" });
  });
  onTestFinished(() => component.stop());
  return recorded;
};

const inSvelte: Watch = (options) => {
  const recorded = record();
  const store = createForSvelte(options).useSignInMethods();
  onTestFinished(store.subscribe((query) => void recorded.seen.push(query as Query)));
  return recorded;
};

/** Solid's accessor is asked, as an effect would; outside of a browser Solid runs no effects. */
const inSolid: Watch = (options) => {
  const recorded = record();
  const authClient = createForSolid(options);
  const [methods, dispose] = createRoot((dispose) => [authClient.useSignInMethods(), dispose]);
  onTestFinished(dispose);
  return {
    ...recorded,
    get seen() {
      recorded.seen.push({ ...methods() } as Query);
      return recorded.seen;
    },
    latest: () => methods() as Query,
  };
};

const inReact: Watch = (options) => {
  const recorded = record();
  const authClient = createForReact(options);
  const Component = () => {
    recorded.seen.push(authClient.useSignInMethods() as Query);
    return null;
  };
  const tree = render(createElement(Component));
  onTestFinished(() => tree.unmount());
  return recorded;
};

/** React itself, without a page. It says at each start that there are other ways to test. */
function render(element: ReturnType<typeof createElement>) {
  const silenced = vi.spyOn(console, "error").mockImplementation(() => {});
  vi.stubGlobal("IS_REACT_ACT_ENVIRONMENT", true);
  let tree: ReactTestRenderer | undefined;
  act(() => {
    tree = create(element);
  });
  // From here on React works when it likes, as in a page.
  vi.stubGlobal("IS_REACT_ACT_ENVIRONMENT", false);
  silenced.mockRestore();
  if (!tree) throw new Error("nothing was rendered");
  return tree;
}

/** better-auth's stores ask the server only where there is a window. */
function openWindow() {
  const listeners = { addEventListener() {}, removeEventListener() {} };
  vi.stubGlobal("window", { ...listeners, location: { href: "http://localhost:3000/" } });
  onTestFinished(() => void vi.unstubAllGlobals());
}

async function setUp() {
  openWindow();
  const { id, name, slug } = await world.createTenant();
  const browser = world.browser();
  const page = { tenantId: id, sent: 0 };
  const options = clientOptions(
    () => page.tenantId,
    (input, init) => {
      page.sent++;
      return browser.fetch(input as Request, init);
    },
  );
  const addProvider = () =>
    world.api.registerTenantOAuthConfig({
      body: { tenantId: id, providerId: "github", clientId: "i", clientSecret: "s" },
    });
  return { tenant: { id, name, slug }, page, options, addProvider };
}

describe.each([
  ["React", inReact],
  ["Vue", inVue],
  ["Svelte", inSvelte],
  ["Solid", inSolid],
])("useSignInMethods in %s", (_, watch) => {
  test("is pending, then has what the sign-in page offers, and asks again with refetch", async () => {
    const { tenant, page, options, addProvider } = await setUp();
    const methods = watch(options);
    expect(methods.seen[0]).toMatchObject({ data: null, error: null, isPending: true });
    await vi.waitFor(() => expect(methods.latest().isPending).toBe(false), PATIENT);
    expect(methods.latest()).toMatchObject({
      error: null,
      data: {
        tenant,
        emailAndPassword: { enabled: true, signUp: true },
        providers: [{ id: "google", name: "Google" }],
      },
    });
    expect(page.sent).toBe(1);
    await addProvider();
    await methods.latest().refetch();
    const providers = () => methods.latest().data?.providers.map(({ id }) => id);
    await vi.waitFor(() => expect(providers()).toEqual(["google", "github"]), PATIENT);
    expect(methods.latest()).toMatchObject({ error: null, isPending: false });
  });
});
