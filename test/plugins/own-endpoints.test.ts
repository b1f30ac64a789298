// What other plugins hang on better-auth's sign-up and sign-in hangs on this plugin's as well.
import { createHash } from "node:crypto";
import { i18n } from "@better-auth/i18n";
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
import { getTenantId } from "../../src/index";
import type { Browser } from "../support/browser";
import { PASSWORD } from "../support/instance";
import { interceptFetch } from "../support/providers";
import { shareSocialWorld } from "../support/social";
import { createWorld, EMAIL, expectRefused, outcome, PLACES, shareWorld } from "../support/world";

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
    const tenantId = String(world.ids.acme);
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

  it("lets people through who solved it, and asks once for each request", async () => {
    for (const path of ["/tenant/sign-up/email", ...SIGN_INS]) {
      expect((await world.at("acme").post(path, person, solved("human"))).status).toBe(200);
    }
    expect(asked).toHaveLength(3);
  });

  it.each([
    "/tenant/sign-in/email/",
    "//tenant/sign-in/email",
    "/tenant//sign-in/email",
    "/tenant%2Fsign-in/email",
    "/tenant/sign-in/email?x=/tenant/sign-in/email",
  ])("threat: path tricks: %s is no way around it", async (path) => {
    // Somebody who could sign in.
    await world.at("globex").post("/tenant/sign-up/email", person, solved("human"));
    const refused = await world.unchanged(() => world.at("globex").post(path, person));
    expect([400, 404]).toContain(refused.status);
    expect(refused.headers.getSetCookie()).toEqual([]);
  });
});

describe("haveIBeenPwned", () => {
  const [PWNED, GOOD] = ["password1234", "nobody has ever used this"];
  const sha1 = (text: string) => createHash("sha1").update(text).digest("hex").toUpperCase();
  const range = (text: string) =>
    `https://api.pwnedpasswords.com/range/${sha1(text).slice(0, 5)}` as const;
  const world = shareWorld({ plugins: [haveIBeenPwned()] });

  it.each(SIGN_UPS)("guards %s in a tenant", async (path) => {
    interceptFetch({
      [range(PWNED)]: () => `${sha1(PWNED).slice(5)}:4711`,
      [range(GOOD)]: () => `${"0".repeat(35)}:1`,
    });
    const body = { ...person, email: `${path.length}@example.com` };
    const signUp = (password: string) => world.at("acme").post(path, { ...body, password });
    expectRefused(await world.unchanged(() => signUp(PWNED)), 400, "PASSWORD_COMPROMISED");
    expect((await signUp(GOOD)).status).toBe(200);
  });
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
  const comeIn = (browser: Browser, path: string, email: string) =>
    browser.post(path, { ...person, email });

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
    else expect((await comeIn(browser, path, email)).status).toBe(200);
    expect(links).toEqual([{ from: id, to: email, tenantId: social.ids.acme }]);
    expect(await social.rows("user", "id = ?", [id])).toBe(0);
  });

  it("R3: nobody is linked, or deleted, by somebody who comes in at another tenant", async () => {
    const browser = social.at("acme");
    const id = await signInAnonymously(browser);
    for (const path of SIGN_UPS) {
      const email = `${path.length}@example.com`;
      expect((await comeIn(social.at("globex", browser), path, email)).status).toBe(200);
    }
    const unnamed = social.at("platform", browser);
    await social.signInAtProvider(unnamed, "globex");
    expect(await social.whoIs(unnamed, "globex")).toMatchObject({ email: "alice@example.com" });
    const elsewhere = social.at("globex", browser);
    const refused = await social.unchanged(() => elsewhere.post("/delete-anonymous-user"));
    expectRefused(refused, 401, "UNAUTHORIZED");
    expect(links).toEqual([]);
    expect(await social.rows("user", "id = ?", [id])).toBe(1);
  });
});

it("lastLoginMethod remembers how somebody signed in at a tenant, and stores it there", async () => {
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

describe("i18n", () => {
  const german = {
    INVALID_EMAIL_OR_PASSWORD: "E-Mail oder Passwort ist falsch",
    TENANT_NOT_FOUND: "Diesen Mandanten gibt es nicht",
  };
  const french = { INVALID_EMAIL_OR_PASSWORD: "Adresse ou mot de passe incorrect" };
  const translations = { en: {}, de: german, fr: french };
  const world = shareWorld({ plugins: [i18n({ translations })] });
  const GERMAN = { headers: { "accept-language": "de-CH,de;q=0.9,en;q=0.5" } };
  const wrong = { email: EMAIL, password: "not the password" };

  it.each(SIGN_INS)("translates at %s, and changes no status and no code", async (path) => {
    const answer = await world.at("acme").post(path, wrong, GERMAN);
    expect([...outcome(answer), answer.data.message]).toEqual([
      401,
      "INVALID_EMAIL_OR_PASSWORD",
      german.INVALID_EMAIL_OR_PASSWORD,
    ]);
    const nowhere = await world.at("nowhere").post(path, wrong, GERMAN);
    expect(outcome(nowhere)).toEqual([404, "TENANT_NOT_FOUND"]);
  });

  it("gives a tenant a language of its own, by getLocale and getTenantId", async () => {
    const languages = new Map<string | null, string>();
    const getLocale = () => languages.get(getTenantId()) ?? null;
    const { ids, at } = await createWorld({
      plugins: [i18n({ translations, detection: ["callback"], getLocale })],
    });
    languages.set(ids.acme, "de").set(ids.globex, "fr");
    const answers = await Promise.all(
      PLACES.map((place) => at(place).post("/sign-in/email", wrong)),
    );
    expect(answers.map(({ data }) => data.message)).toEqual([
      german.INVALID_EMAIL_OR_PASSWORD,
      french.INVALID_EMAIL_OR_PASSWORD,
      "Invalid email or password",
    ]);
  });
});

describe("openAPI", () => {
  interface Operation {
    description?: string;
    parameters?: { name: string; in: string }[];
    requestBody?: {
      content: Record<string, { schema: { properties?: object; required?: string[] } }>;
    };
  }
  const world = shareWorld({ plugins: [openAPI()] });

  async function described(path: string, method: "get" | "post") {
    type Paths = Record<string, { get?: Operation; post?: Operation }>;
    const { data } = await world.at("platform").get<{ paths: Paths }>("/open-api/generate-schema");
    const operation = data.paths[path]?.[method];
    expect(operation?.description).toEqual(expect.stringMatching(/\w/));
    return operation;
  }

  const CONFIG = "scopes redirectURI options";
  it.each([
    ["/tenant/create", "name slug", "metadata"],
    // A tenant's own administrator need not name it.
    ["/tenant/update", "", "tenantId name slug metadata status policy endSessions"],
    ["/tenant/delete", "tenantId", ""],
    ["/tenant/sign-up/email", "name email password", "tenantId image callbackURL rememberMe"],
    ["/tenant/sign-in/email", "email password", "tenantId callbackURL rememberMe"],
    ["/tenant/sign-in/social", "provider", "tenantId callbackURL errorCallbackURL"],
    [
      "/tenant/oauth-config/register",
      "providerId clientId clientSecret",
      `tenantId ${CONFIG} enabled`,
    ],
    ["/tenant/oauth-config/update", "providerId", `tenantId clientSecret ${CONFIG} enabled`],
    ["/tenant/oauth-config/check", "providerId", `tenantId clientId clientSecret ${CONFIG}`],
    ["/tenant/oauth-config/delete", "providerId", "tenantId"],
  ])("describes the body of %s", async (path, needed, more) => {
    const { requestBody } = (await described(path, "post")) ?? {};
    const { properties = {}, required = [] } =
      requestBody?.content["application/json"]?.schema ?? {};
    const names = (text: string) => text.split(" ").filter(Boolean);
    const fields = [...names(needed), ...names(more)];
    expect(Object.keys(properties)).toEqual(expect.arrayContaining(fields));
    expect(required).toEqual(expect.arrayContaining(names(needed)));
    expect(required.includes("tenantId")).toBe(needed === "tenantId");
  });

  it.each([
    ["/tenant/get", ["id", "slug"]],
    ["/tenant/list", ["limit", "offset", "search", "sort"]],
    ["/tenant/oauth-config/list", ["tenantId"]],
    ["/tenant/sign-in-methods", ["tenantId"]],
  ])("describes the query of %s", async (path, names) => {
    const { parameters = [] } = (await described(path, "get")) ?? {};
    expect(parameters.map(({ name }) => name)).toEqual(expect.arrayContaining(names));
  });
});
