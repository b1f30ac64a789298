import { afterEach, describe, expect, it, vi } from "vitest";
import { createInstance, type Instance, PASSWORD } from "./support/instance";

const SIGN_UP = "/tenant/sign-up/email";
const SIGN_IN = "/tenant/sign-in/email";
const ANN = { name: "Ann", email: "ann@example.com", password: PASSWORD };

afterEach(() => void vi.useRealTimers());

describe("rate limits", () => {
  // better-auth counts in memory by address and path, for all instances of a process together.
  let addresses = 0;
  const newAddress = () => `203.0.113.${++addresses}`;

  async function setUp(storage: "memory" | "database" = "memory") {
    const instance = await createInstance({
      auth: {
        rateLimit: { enabled: true, storage },
        emailAndPassword: { enabled: true, sendResetPassword: async () => {} },
      },
    });
    const tenants: string[] = [];
    for (let n = 0; n < 5; n++) tenants.push((await instance.createTenant()).id);
    return { instance, tenants };
  }

  /** Sends a request that is wrong in some way, and tells whether it was let through. */
  async function attempts(
    instance: Instance,
    address: string,
    requests: { path: string; body?: object; headers?: Record<string, string> }[],
  ) {
    const outcomes: string[] = [];
    for (const { path, body = {}, headers = {} } of requests) {
      const browser = instance.browser({ "x-forwarded-for": address, ...headers });
      const { status } = await browser.post(path, { ...ANN, password: "short", ...body });
      outcomes.push(status === 429 ? "limited" : status < 500 ? "let through" : "failed");
    }
    return outcomes;
  }

  const THREE = ["let through", "let through", "let through", "limited", "limited"];

  it.each(["memory", "database"] as const)(
    "as on better-auth's own, in the %s",
    async (storage) => {
      const { instance, tenants } = await setUp(storage);
      const [tenantId] = tenants;
      const address = newAddress();
      for (const path of ["/sign-in/email", SIGN_IN, "/sign-up/email", SIGN_UP]) {
        const five = Array.from({ length: 5 }, () => ({ path, body: { tenantId } }));
        expect([path, await attempts(instance, address, five)]).toEqual([path, THREE]);
      }
      expect(await instance.rows("user")).toBe(0);
    },
  );

  it("the social sign-in has the limit of better-auth's", async () => {
    const { instance, tenants } = await setUp();
    const body = { provider: "google", tenantId: tenants[0] };
    for (const path of ["/sign-in/social", "/tenant/sign-in/social"]) {
      const five = Array.from({ length: 5 }, () => ({ path, body }));
      expect(await attempts(instance, newAddress(), five)).toEqual(THREE);
    }
  });

  it("even the right password waits, and gets in when the time is over", async () => {
    const { instance, tenants } = await setUp();
    const [tenantId] = tenants;
    const headers = { "x-forwarded-for": newAddress() };
    await instance.api.signUpEmailTenant({ body: { ...ANN, tenantId } });
    vi.useFakeTimers({ toFake: ["Date"] });
    const signIn = (password: string) =>
      instance.browser(headers).post(SIGN_IN, { email: ANN.email, password, tenantId });
    for (let n = 0; n < 3; n++) expect((await signIn("a wrong password")).status).toBe(401);
    const limited = await signIn(PASSWORD);
    expect(limited.status).toBe(429);
    expect(limited.headers.get("x-retry-after")).toBe("10");
    expect(limited.headers.getSetCookie()).toEqual([]);
    expect(await instance.rows("session")).toBe(1);
    vi.setSystemTime(Date.now() + 10_000);
    expect((await signIn(PASSWORD)).status).toBe(200);
  });

  it("an address that did nothing is not limited", async () => {
    const { instance, tenants } = await setUp();
    const five = tenants.map((tenantId) => ({ path: SIGN_IN, body: { tenantId } }));
    expect(await attempts(instance, newAddress(), five)).toEqual(THREE);
    expect(await attempts(instance, newAddress(), five)).toEqual(THREE);
  });

  describe("threat: rate limit reset by rotation", () => {
    const rotations: [
      string,
      (id: string, n: number, path: string) => Parameters<typeof attempts>[2][number],
    ][] = [
      ["tenants in the header", (id, _, path) => ({ path, headers: { "x-tenant-id": id } })],
      ["tenants in the body", (tenantId, _, path) => ({ path, body: { tenantId } })],
      ["tenants in the query", (id, _, path) => ({ path: `${path}?tenantId=${id}` })],
      ["tenants that are not there", (_, n, path) => ({ path, body: { tenantId: `no-${n}` } })],
      ["e-mails", (_, n, path) => ({ path, body: { email: `ann-${n}@example.com` } })],
      [
        "cookies and hosts",
        (id, n, path) => ({
          path,
          body: { tenantId: id },
          headers: {
            cookie: `better-auth.session_token=${n}`,
            "x-forwarded-host": `h${n}.example`,
          },
        }),
      ],
    ];

    it.each(rotations)("rotating %s changes nothing", async (_, rotate) => {
      const { instance, tenants } = await setUp();
      for (const path of [SIGN_IN, SIGN_UP, "/sign-in/email"]) {
        const requests = tenants.map((id, n) => rotate(id, n, path));
        expect(await attempts(instance, newAddress(), requests)).toEqual(THREE);
      }
    });

    it.each(["memory", "database"] as const)(
      "nor on password resets, in the %s",
      async (storage) => {
        const { instance, tenants } = await setUp(storage);
        const path = "/request-password-reset";
        const requests = tenants.map((id) => ({ path, headers: { "x-tenant-id": id } }));
        expect(await attempts(instance, newAddress(), requests)).toEqual(THREE);
      },
    );

    it("nor do other ways to write the path", async () => {
      const instance = await createInstance({
        auth: { rateLimit: { enabled: true }, advanced: { skipTrailingSlashes: true } },
      });
      const { id: tenantId } = await instance.createTenant();
      const paths = [SIGN_IN, `${SIGN_IN}/`, `/x/..${SIGN_IN}`, SIGN_IN, `${SIGN_IN}/`];
      const requests = paths.map((path) => ({ path, body: { tenantId } }));
      expect(await attempts(instance, newAddress(), requests)).toEqual(THREE);
    });
  });

  it("the application's own rules win", async () => {
    const customRules = { [SIGN_IN]: { window: 60, max: 1 } };
    const instance = await createInstance({
      auth: { rateLimit: { enabled: true, customRules } },
    });
    const { id: tenantId } = await instance.createTenant();
    const two = [1, 2].map(() => ({ path: SIGN_IN, body: { tenantId } }));
    expect(await attempts(instance, newAddress(), two)).toEqual(["let through", "limited"]);
  });
});

describe("threat: path tricks", () => {
  const MANAGEMENT = [
    ["POST", "/tenant/create"],
    ["GET", "/tenant/get"],
    ["GET", "/tenant/list"],
    ["POST", "/tenant/update"],
    ["POST", "/tenant/delete"],
    ["POST", "/tenant/oauth-config/register"],
    ["GET", "/tenant/oauth-config/list"],
    ["POST", "/tenant/oauth-config/update"],
    ["POST", "/tenant/oauth-config/check"],
    ["POST", "/tenant/oauth-config/delete"],
  ] as const;

  const lastSlash = /\/(?=[^/]*$)/;
  /** Other ways to write a path. Some are the same URL after all, most are no path of ours. */
  const tricks = (path: string) => [
    `/${path}`,
    `//${path}`,
    path.replace("/tenant/", "/tenant//"),
    path.replace(lastSlash, "//"),
    `${path}/`,
    `${path}//`,
    `${path}/.`,
    `${path}/x/..`,
    `${path}/%2e%2e${path.slice(path.lastIndexOf("/"))}`,
    `/.${path}`,
    `/ok/..${path}`,
    `/ok/%2e%2e${path}`,
    `/ok/..%2f${path.slice(1)}`,
    path.replace("/tenant/", "/tenant%2F"),
    path.replace("/tenant/", "/tenant%5C"),
    path.replace("/tenant/", "/tenant\\"),
    path.replace(lastSlash, "%2f"),
    path.replace("/tenant/", "/%74enant/"),
    path.replace("/tenant/", "/tenant%252F"),
    path.toUpperCase(),
    path.replace("tenant", "Tenant"),
    `${path}%20`,
    `${path}%00`,
    `${path};a=b`,
    `${path}.json`,
    `/api/auth${path}`,
    `/callback${path}`,
  ];

  const withSlashes = { skipTrailingSlashes: true };
  const settings = [
    ["as it comes", {}],
    ["with skipTrailingSlashes", withSlashes],
  ] as const;

  describe.each(settings)("%s", (_, advanced) => {
    it.each(MANAGEMENT)("%s %s stays closed", async (method, path) => {
      const instance = await createInstance({ auth: { advanced } });
      const tenant = await instance.createTenant();
      const config = { tenantId: tenant.id, providerId: "google" };
      const credentials = { clientId: "id", clientSecret: "secret" };
      await instance.api.registerTenantOAuthConfig({ body: { ...config, ...credentials } });
      const ordinary = await instance.signUp(null);
      const body = path.endsWith("oauth-config/update")
        ? { ...config, enabled: false }
        : { ...config, ...credentials, clientId: "changed", name: "New", slug: "new-one" };
      for (const trick of [path, ...tricks(path)]) {
        const query = { id: tenant.id, tenantId: tenant.id };
        const request = method === "GET" ? { method, query } : { method, body };
        const nobody = await instance.browser().send(trick, request);
        expect([trick, [401, 404].includes(nobody.status)]).toEqual([trick, true]);
        const user = await ordinary.browser.fork().send(trick, request);
        expect([trick, [403, 404].includes(user.status)]).toEqual([trick, true]);
        for (const { data } of [nobody, user]) {
          expect(JSON.stringify(data) ?? "").not.toContain(tenant.slug);
        }
      }
      expect(await instance.api.listTenants()).toEqual([tenant]);
      const [stored] = await instance.api.listTenantOAuthConfigs({ query: config });
      expect(stored).toMatchObject({ providerId: "google", clientId: "id", enabled: true });
    });

    it.each([SIGN_UP, SIGN_IN])("disabledPaths closes %s, however it is written", async (path) => {
      const instance = await createInstance({ auth: { advanced, disabledPaths: [path] } });
      const { id: tenantId } = await instance.createTenant();
      await instance.api.signUpEmailTenant({ body: { ...ANN, tenantId } });
      const email = path === SIGN_UP ? "new@example.com" : ANN.email;
      for (const trick of [path, ...tricks(path)]) {
        const answer = await instance.browser().post(trick, { ...ANN, email, tenantId });
        expect([trick, answer.status]).toEqual([trick, 404]);
      }
      expect(await instance.rows("user")).toBe(1);
      expect(await instance.rows("session")).toBe(1);
      // The other path stays open.
      const open = path === SIGN_UP ? SIGN_IN : SIGN_UP;
      const body = { ...ANN, email: path === SIGN_UP ? ANN.email : "new@example.com", tenantId };
      expect((await instance.browser().post(open, body)).status).toBe(200);
    });

    it("a sign-in by any spelling is in the tenant it names, or is none", async () => {
      const instance = await createInstance({ auth: { advanced } });
      const { id: tenantId } = await instance.createTenant();
      await instance.signUp(tenantId, ANN.email);
      await instance.signUp(null, ANN.email);
      for (const trick of tricks(SIGN_IN)) {
        const answer = await instance.browser().post(trick, { ...ANN, tenantId });
        if (answer.status === 200) expect(answer.data.user).toMatchObject({ tenantId });
        else expect([trick, answer.status]).toEqual([trick, 404]);
      }
    });

    it("R2: better-auth's own paths are in the tenant of the header, however written", async () => {
      const instance = await createInstance({ auth: { advanced } });
      const { id: tenantId } = await instance.createTenant();
      await instance.signUp(null, ANN.email);
      for (const trick of ["/sign-in/email", ...tricks("/sign-in/email")]) {
        const answer = await instance.browser({ "x-tenant-id": tenantId }).post(trick, ANN);
        expect([trick, [401, 404].includes(answer.status)]).toEqual([trick, true]);
      }
      expect(await instance.rows("session")).toBe(1);
    });
  });

  it("a trailing slash is the same guarded endpoint with skipTrailingSlashes, else 404", async () => {
    for (const [advanced, signIn, list] of [
      [{}, 404, 404],
      [withSlashes, 200, 401],
    ] as const) {
      const instance = await createInstance({ auth: { advanced } });
      const { id: tenantId } = await instance.createTenant();
      await instance.signUp(tenantId, ANN.email);
      const answer = await instance.browser().post(`${SIGN_IN}/`, { ...ANN, tenantId });
      expect(answer.status).toBe(signIn);
      expect((await instance.browser().get("/tenant/list/")).status).toBe(list);
    }
  });
});
