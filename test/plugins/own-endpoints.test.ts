// What other plugins hang on better-auth's sign-up and sign-in hangs on this plugin's as well.
import { createHash } from "node:crypto";
import { i18n } from "@better-auth/i18n";
import { createAuthMiddleware } from "better-auth/api";
import {
  anonymous,
  captcha,
  emailOTP,
  haveIBeenPwned,
  lastLoginMethod,
  magicLink,
  openAPI,
} from "better-auth/plugins";
import { beforeEach, describe, expect, it } from "vitest";
import { getTenantId, runInTenant } from "../../src/index";
import type { Browser } from "../support/browser";
import { PASSWORD } from "../support/instance";
import { interceptFetch } from "../support/providers";
import { shareSocialWorld } from "../support/social";
import { createWorld, EMAIL, expectRefused, outcome, shareWorld } from "../support/world";

const SIGN_UPS = ["/sign-up/email", "/tenant/sign-up/email"];
const SIGN_INS = ["/sign-in/email", "/tenant/sign-in/email"];
const person = { name: "Somebody", email: EMAIL, password: PASSWORD };

describe("captcha", () => {
  const SITE_VERIFY = "https://challenges.cloudflare.com/turnstile/v0/siteverify";
  const plugins = [captcha({ provider: "cloudflare-turnstile", secretKey: "key" })];
  const world = shareWorld({ plugins });
  const solved = (answer: string) => ({ headers: { "x-captcha-response": answer } });

  let asked: unknown[] = [];
  beforeEach(() => {
    // Turnstile, which takes the answer "human" for good.
    asked = interceptFetch({
      [SITE_VERIFY]: (body) => ({ success: body.toString().includes("human") }),
    });
  });

  it.each([...SIGN_UPS, ...SIGN_INS])("guards %s, however the tenant is named", async (path) => {
    const tenantId = world.ids.acme;
    const unnamed = world.at("platform");
    await world.unchanged(async () => {
      for (const answer of [
        await world.at("acme").post(path, person),
        await unnamed.post(path, { ...person, tenantId }),
        await unnamed.post(path, person, { query: { tenantId } }),
      ]) {
        expectRefused(answer, 400, "MISSING_RESPONSE");
      }
      expect(asked).toEqual([]);
      const wrong = await world.at("acme").post(path, person, solved("robot"));
      expectRefused(wrong, 403, "VERIFICATION_FAILED");
    });
  });

  it("lets callers pass who solved it, asks once for each, and no path is a way around it", async () => {
    for (const path of ["/tenant/sign-up/email", ...SIGN_INS]) {
      expect((await world.at("acme").post(path, person, solved("human"))).status).toBe(200);
    }
    expect(asked).toHaveLength(3);
    for (const path of [
      "/tenant/sign-in/email/",
      "//tenant/sign-in/email",
      "/tenant//sign-in/email",
      "/tenant%2Fsign-in/email",
      "/tenant/sign-in/email?x=/tenant/sign-in/email",
    ]) {
      const refused = await world.unchanged(() => world.at("acme").post(path, person));
      expect([400, 404], path).toContain(refused.status);
      expect(refused.headers.getSetCookie()).toEqual([]);
    }
  });
});

it.each(SIGN_UPS)("haveIBeenPwned guards %s in a tenant", async (path) => {
  const [PWNED, GOOD] = ["password1234", "nobody has ever used this"];
  const sha1 = (text: string) => createHash("sha1").update(text).digest("hex").toUpperCase();
  const range = (text: string) =>
    `https://api.pwnedpasswords.com/range/${sha1(text).slice(0, 5)}` as const;
  const world = await createWorld({ plugins: [haveIBeenPwned()] });
  interceptFetch({
    [range(PWNED)]: () => `${sha1(PWNED).slice(5)}:4711`,
    [range(GOOD)]: () => `${"0".repeat(35)}:1`,
  });
  const signUp = (password: string) => world.at("acme").post(path, { ...person, password });
  expectRefused(await world.unchanged(() => signUp(PWNED)), 400, "PASSWORD_COMPROMISED");
  expect((await signUp(GOOD)).status).toBe(200);
});

it.each(SIGN_UPS)("emailOTP sends its code on %s, once and in the tenant", async (path) => {
  const { at, ids, mails } = await createWorld({
    plugins: (send) => [
      emailOTP({ sendVerificationOnSignUp: true, sendVerificationOTP: send("otp") }),
    ],
  });
  await at("acme").post(path, person);
  expect(mails.map(({ kind, sentIn }) => [kind, sentIn])).toEqual([["otp", ids.acme]]);
});

const links: { from: unknown; to: unknown; tenantId: string | null }[] = [];
const social = shareSocialWorld({
  plugins: (send) => [
    anonymous({
      onLinkAccount: ({ anonymousUser, newUser }) =>
        void links.push({
          from: anonymousUser.user.id,
          to: (newUser.user as { email: string }).email,
          tenantId: getTenantId(),
        }),
    }),
    lastLoginMethod({ storeInDatabase: true }),
    magicLink({ sendMagicLink: send("link") }),
  ],
});

describe("anonymous", () => {
  async function signInAnonymously(browser: Browser): Promise<string> {
    const answer = await browser.post<{ user: { id: string } }>("/sign-in/anonymous");
    expect(answer.status).toBe(200);
    links.length = 0;
    return answer.data.user.id;
  }

  it.each([...SIGN_UPS, ...SIGN_INS, "a provider"])("links on %s inside a tenant", async (path) => {
    const isSocial = path === "a provider";
    const email = isSocial ? "alice@example.com" : `${path.replaceAll("/", "-")}@example.com`;
    if (SIGN_INS.includes(path)) await social.signUp("acme", email);
    const browser = social.at("acme");
    const id = await signInAnonymously(browser);
    if (isSocial) await social.signInAtProvider(browser, "acme");
    else expect((await browser.post(path, { ...person, email })).status).toBe(200);
    expect(links).toEqual([{ from: id, to: email, tenantId: social.ids.acme }]);
    expect(await social.rows("user", "id = ?", [id])).toBe(0);
  });

  it("R3: a sign-in at another tenant links and deletes no anonymous user", async () => {
    const browser = social.at("acme");
    const id = await signInAnonymously(browser);
    for (const path of SIGN_UPS) {
      const email = `${path.length}@example.com`;
      const elsewhere = social.at("globex", browser);
      expect((await elsewhere.post(path, { ...person, email })).status).toBe(200);
    }
    const unnamed = social.at("platform", browser);
    await social.signInAtProvider(unnamed, "globex");
    expect(await social.whoIs(unnamed, "globex")).toMatchObject({ email: "alice@example.com" });
    const abroad = social.at("globex", browser);
    const refused = await social.unchanged(() => abroad.post("/delete-anonymous-user"));
    expectRefused(refused, 401, "UNAUTHORIZED");
    expect(links).toEqual([]);
    expect(await social.rows("user", "id = ?", [id])).toBe(1);
  });
});

it("lastLoginMethod remembers how a user signed in at a tenant, and stores it there", async () => {
  await social.janes();
  await social.at("acme").post("/sign-in/magic-link", { email: EMAIL });
  const { url } = social.lastMail("link");
  for (const [method, signIn] of [
    ["email", (browser) => browser.post("/tenant/sign-in/email", person)],
    ["magic-link", (browser) => browser.get(url)],
    ["gitlab", (browser) => social.signInAtProvider(browser, "acme")],
  ] satisfies [string, (browser: Browser) => Promise<unknown>][]) {
    const browser = social.at("acme");
    await social.touchesOnly("acme", () => signIn(browser));
    const { id } = (await social.whoIs(browser)) ?? {};
    expect(browser.cookies.get("better-auth.last_used_login_method")).toBe(method);
    const row = (await social.rowsIn("acme", "user")).find((user) => user.id === id);
    expect(row?.lastLoginMethod).toBe(method);
  }
});

it("i18n gives a tenant a language of its own, and changes no status and no code", async () => {
  const german = { INVALID_EMAIL_OR_PASSWORD: "E-Mail oder Passwort ist falsch" };
  const french = { INVALID_EMAIL_OR_PASSWORD: "Adresse ou mot de passe incorrect" };
  const languages = new Map<string | null, string>();
  const { ids, at } = await createWorld({
    plugins: [
      i18n({
        translations: { en: {}, de: german, fr: french },
        detection: ["callback"],
        getLocale: () => languages.get(getTenantId()) ?? null,
      }),
    ],
  });
  languages.set(ids.acme, "de").set(ids.globex, "fr");
  for (const [place, path, message] of [
    ["acme", "/sign-in/email", german.INVALID_EMAIL_OR_PASSWORD],
    ["acme", "/tenant/sign-in/email", german.INVALID_EMAIL_OR_PASSWORD],
    ["globex", "/tenant/sign-in/email", french.INVALID_EMAIL_OR_PASSWORD],
    ["platform", "/sign-in/email", "Invalid email or password"],
  ] as const) {
    const answer = await at(place).post(path, person);
    const expected = [401, "INVALID_EMAIL_OR_PASSWORD", message];
    expect([...outcome(answer), answer.data.message]).toEqual(expected);
  }
});

// Which parameters each of them has: test/reference.test.ts.
it("openAPI describes every tenant endpoint, with its parameters", async () => {
  interface Operation {
    description?: string;
    parameters?: object[];
    requestBody?: { content: Record<string, { schema: { properties?: object } }> };
  }
  const { at } = await createWorld({ plugins: [openAPI()] });
  type Schema = { paths: Record<string, Record<string, Operation>> };
  const { data } = await at("platform").get<Schema>("/open-api/generate-schema");
  const ours = Object.entries(data.paths).filter(([path]) => /^\/tenant\/(?!callback)/.test(path));
  expect(ours.length).toBeGreaterThan(12);
  for (const [path, operations] of ours) {
    for (const { description, parameters = [], requestBody } of Object.values(operations)) {
      const { properties = {} } = requestBody?.content["application/json"]?.schema ?? {};
      const described = Object.keys(properties).length + parameters.length;
      expect([path, Boolean(description), described > 0]).toEqual([path, true, true]);
    }
  }
});

it("onRequest, middlewares and onResponse of a plugin run outside of the tenant, unless they enter it", async () => {
  const seen: unknown[] = [];
  let tenantId = "";
  const look = async () => {
    seen.push(getTenantId(), await runInTenant(tenantId, async () => getTenantId()));
  };
  const middleware = createAuthMiddleware(look);
  const middlewares = [{ path: "/ok", middleware }];
  const plugin = { id: "looks", onRequest: look, middlewares, onResponse: look };
  const { at, ids } = await createWorld({ plugins: [plugin] });
  tenantId = ids.acme;
  await at("acme").get("/ok");
  expect(seen).toEqual([null, tenantId, null, tenantId, null, tenantId]);
});
