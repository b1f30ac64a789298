import { apiKey } from "@better-auth/api-key";
import { passkey } from "@better-auth/passkey";
import { magicLink, twoFactor } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import {
  bySlug,
  bySubdomain,
  type TenantAuthOptions,
  type TenantPolicy,
  tenantAuth,
} from "../../../src/index";
import { createInstance, PASSWORD, newcomer as person } from "../../support/instance";
import { createWorld, outcome, type SessionAnswer, SUBDOMAINS } from "../../support/world";

type Signed = { token: string | null; user: { id: string; tenantId: string | null } };

// Which users and sessions there are: admission.servers.test.ts and methods.servers.test.ts.
describe("R13, R14: the platform is a scope like any other", () => {
  it("tenants go by their own policy, wherever they are called from", async () => {
    const platformPolicy: TenantPolicy = { signUp: "closed", password: { minLength: 40 } };
    const world = await createWorld({ tenant: { platformPolicy } });
    const { acme } = world.ids;
    for (const [path, where, body] of [
      ["/sign-up/email", "acme", {}],
      ["/tenant/sign-up/email", "platform", { tenantId: acme }],
    ] as const) {
      const answer = await world.at(where).post<Signed>(path, { ...person(), ...body });
      expect([path, answer.status, answer.data.user.tenantId]).toEqual([path, 200, acme]);
    }
    await world.api.signUpEmailTenant({ body: { ...person(), tenantId: acme } });
    const call = { body: { ...person(), tenantId: acme }, headers: new Headers() };
    expect((await world.api.signUpEmailTenant(call)).user.tenantId).toBe(acme);
    expect(await world.rowsIn("platform", "user")).toEqual([]);
    // The name of a tenant that is not there creates no user of the platform.
    const lost = world.browser({ "x-tenant-id": "nobody" });
    expect(outcome(await lost.post("/sign-up/email", person()))).toEqual([404, "TENANT_NOT_FOUND"]);
  });

  it("server code and operators create users, and operators sign in", async () => {
    const world = await createWorld({ tenant: { platformPolicy: { signUp: "closed" } } });
    const { api, at, browser } = world;
    const olga = { name: "Olga", email: "olga@example.com", password: PASSWORD };
    const answers: object[] = [];
    await api.createUser({ body: { ...olga, role: "admin" } });
    for (const email of ["olga@example.com", "OLGA@example.com", "free@example.com"]) {
      const { status, data } = await at("platform").post("/sign-up/email", person(email));
      answers.push({ status, data });
    }
    expect(answers[0]).toMatchObject({ status: 403, data: { code: "SIGN_UP_CLOSED" } });
    expect(answers).toEqual(answers.map(() => answers[0]));
    const operator = browser();
    expect((await operator.post("/sign-in/email", olga)).status).toBe(200);
    const created = await operator.post<Signed>("/admin/create-user", person());
    expect(outcome(created)).toEqual([200, undefined]);
    const slug = { name: "New", slug: "new" };
    expect((await operator.post("/tenant/create", slug)).status).toBe(200);
    const asCaller = api.signUpEmail({ body: person(), headers: new Headers() });
    await expect(asCaller).rejects.toMatchObject({ body: { code: "SIGN_UP_CLOSED" } });
    // Impersonation is not a sign-in method.
    const userId = created.data.user.id;
    expect((await operator.post("/admin/impersonate-user", { userId })).status).toBe(200);
    expect(await world.whoIs(operator)).toMatchObject({ id: userId, tenantId: null });
  });

  it("passwords are as long, and sessions as short, as it says; tenants as before", async () => {
    const platformPolicy = { password: { minLength: 30 }, session: { expiresIn: 600 } };
    const world = await createWorld({ tenant: { platformPolicy } });
    const short = await world.at("platform").post("/sign-up/email", person());
    expect(outcome(short)).toEqual([400, "PASSWORD_TOO_SHORT"]);
    const body = { ...person(), password: "a".repeat(30) };
    const seconds = async (where: "acme" | "platform") => {
      const browser = world.at(where);
      expect((await browser.post("/sign-up/email", body)).status).toBe(200);
      const { session } = (await browser.get<SessionAnswer>("/get-session")).data;
      return (new Date(session.expiresAt).getTime() - Date.now()) / 1000;
    };
    expect(await seconds("platform")).toBeLessThanOrEqual(600);
    expect(await seconds("acme")).toBeGreaterThan(24 * 3600);
  });

  it("an address of `emailDomains` is verified first, and none leaves them", async () => {
    const world = await createWorld({
      tenant: { platformPolicy: { emailDomains: ["acme.com"] } },
      auth: { user: { changeEmail: { enabled: true, updateEmailWithoutVerification: true } } },
    });
    const body = person("jane@acme.com");
    const window = world.at("platform");
    const { data } = await window.post<Signed>("/sign-up/email", body);
    expect([data.token, data.user.tenantId]).toEqual([null, null]);
    expect(outcome(await window.post("/sign-in/email", body))).toEqual([403, "EMAIL_NOT_VERIFIED"]);
    await world.write("user", { emailVerified: true }, { email: body.email });
    expect((await window.post("/sign-in/email", body)).status).toBe(200);
    const change = await window.post("/change-email", { newEmail: "jane@example.com" });
    expect(outcome(change)).toEqual([403, "EMAIL_DOMAIN_NOT_ALLOWED"]);
  });
});

it("R14: an API key of the platform switches no second factor on", async () => {
  const { as, browser, everything } = await createWorld({
    plugins: [
      apiKey({ enableSessionForAPIKeys: true, rateLimit: { enabled: false } }),
      twoFactor({ skipVerificationOnEnable: true }),
    ],
    tenant: { scopedModels: ["apikey"], platformPolicy: { methods: ["password"] } },
  });
  const jane = await as("jane", "platform");
  const { data } = await jane.post<{ key: string }>("/api-key/create", { name: "key" });
  const machine = browser({ "x-api-key": data.key });
  const users = async () => (await everything()).user;
  const before = await users();
  const answer = await machine.post("/two-factor/enable", { password: PASSWORD });
  expect(outcome(answer)).toEqual([403, "SIGN_IN_METHOD_NOT_ALLOWED"]);
  expect(await users()).toEqual(before);
});

describe("mistakes in platformPolicy are errors at startup", () => {
  it.each<[RegExp, unknown]>([
    [
      /expected "open", "invited" or "closed", not "never"\s+→ at platformPolicy.signUp/,
      { signUp: "never" },
    ],
    [
      /not "invited": the platform has no invitations\s+→ at platformPolicy.signUp/,
      { signUp: "invited" },
    ],
    [
      /unknown method "passwort": expected password, social, .* or social:<provider>/,
      { methods: ["passwort"] },
    ],
    [/Unrecognized key: "signup"/, { signup: "closed" }],
    [/platformPolicy/, "closed"],
  ])("%s", (message, platformPolicy) => {
    expect(() => tenantAuth({ platformPolicy: platformPolicy as TenantPolicy })).toThrow(message);
  });

  it.each<[RegExp, TenantPolicy]>([
    [
      /platformPolicy\.methods: sso is not set up.* It has: password, magic-link, passkey, social:google$/,
      { methods: ["password", "sso"] },
    ],
    [/platformPolicy\.password\.minLength: 4 is not 8 to 128/, { password: { minLength: 4 } }],
    [/platformPolicy\.session\.expiresIn: 30 is not 60 to 604800/, { session: { expiresIn: 30 } }],
  ])("%s", async (message, platformPolicy) => {
    const start = createInstance({
      tenant: { platformPolicy, scopedModels: ["passkey"] },
      plugins: [magicLink({ sendMagicLink: async () => {} }), passkey()],
      auth: { socialProviders: { google: { clientId: "id", clientSecret: "secret" } } },
    });
    await expect(start).rejects.toThrow(message);
  });
});

describe("a header that names a tenant, and that nothing reads", () => {
  const SLUG = { "x-tenant-slug": "acme" };
  const ID = { "x-tenant-id": "acme" };
  const unread = (logs: string[]) => logs.filter((line) => line.includes("which nothing reads"));

  it.each([
    ["without a resolver", {}, SLUG, /x-tenant-slug.*Add resolveTenantId: bySlug\(\)/],
    ["with another header", { tenantHeader: "X-Org" }, ID, /x-tenant-id.*has to send X-Org/],
    [
      "with another slug header",
      { resolveTenantId: bySlug({ header: "x-shop" }) },
      SLUG,
      /x-tenant-slug/,
    ],
    [
      "with a host resolver",
      { resolveTenantId: bySubdomain({ baseDomain: "example.com" }) },
      ID,
      /x-tenant-id.*goes by the host/,
    ],
  ] as const)("is warned about once, on every path, %s", async (_, tenant, headers, line) => {
    for (const path of ["/get-session", "/ok", "/sign-up/email", "/tenant/sign-in-methods"]) {
      const { logs, browser } = await createInstance({
        tenant,
        auth: { logger: { level: "warn" } },
      });
      await browser().get("/get-session");
      expect(unread(logs)).toEqual([]);
      const window = browser(headers);
      for (const _ of [1, 2])
        await (path.includes("up") ? window.post(path, person()) : window.get(path));
      const isManaged = "resolveTenantId" in tenant && !("slugHeader" in tenant.resolveTenantId);
      const expected =
        isManaged && path.startsWith("/tenant/") ? [] : [expect.stringMatching(line)];
      expect([path, unread(logs)]).toEqual([path, expected]);
    }
  });

  it("none where it is read, or where the application decides itself", async () => {
    const cases: [TenantAuthOptions, Record<string, string>][] = [
      [{ resolveTenantId: bySlug() }, SLUG],
      [{ resolveTenantId: bySlug() }, ID],
      [{ tenantHeader: "X-Tenant-Slug" }, SLUG],
      [{ resolveTenantId: () => false }, { ...SLUG, ...ID }],
      [
        { resolveTenantId: SUBDOMAINS.resolveTenantId },
        { ...SLUG, ...ID, host: "acme.example.com" },
      ],
    ];
    for (const [tenant, headers] of cases) {
      const { logs, browser, createTenant } = await createInstance({ tenant });
      await createTenant("acme");
      await browser(headers).get("/get-session");
      await browser(headers).post("/sign-up/email", person());
      expect(unread(logs)).toEqual([]);
    }
  });
});
