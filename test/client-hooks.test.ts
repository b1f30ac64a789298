import type { BetterAuthClientOptions } from "better-auth/client";
import { createAuthClient as createForReact } from "better-auth/react";
import { createAuthClient as createForSolid } from "better-auth/solid";
import { createAuthClient as createForSvelte } from "better-auth/svelte";
import { createAuthClient as createForVue } from "better-auth/vue";
import { createElement } from "react";
import { act, create, type ReactTestRenderer } from "react-test-renderer";
import { createRoot } from "solid-js";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { effectScope, watchEffect } from "vue";
import { tenantAuthClient } from "../src/client";
import type { SignInMethods } from "../src/index";
import { google } from "./support/client";
import { shareWorld } from "./support/world";

/** The machine that runs the tests may be busy. */
const PATIENT = { timeout: 10_000 };

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

const world = shareWorld({ auth: { socialProviders: { google } } });

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

  test("has the error of a tenant that does not exist, and recovers", async () => {
    const { tenant, page, options } = await setUp();
    page.tenantId = "nobody";
    const methods = watch(options);
    await vi.waitFor(() => expect(methods.latest().error).not.toBeNull(), PATIENT);
    const error = { code: "TENANT_NOT_FOUND", status: 404 };
    expect(methods.latest()).toMatchObject({ data: null, error, isPending: false });
    page.tenantId = tenant.id;
    await methods.latest().refetch();
    await vi.waitFor(() => expect(methods.latest().data?.tenant.id).toBe(tenant.id), PATIENT);
    expect(methods.latest().error).toBeNull();
  });
});
