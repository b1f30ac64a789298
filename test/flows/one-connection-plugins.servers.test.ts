// All official plugins in one instance, whose hooks run on every user and session, with one
// connection. Three people do the same at once: a query outside the transaction waits for ever.
import { apiKey } from "@better-auth/api-key";
import { passkey } from "@better-auth/passkey";
import { stripe } from "@better-auth/stripe";
import {
  admin,
  anonymous,
  bearer,
  deviceAuthorization,
  emailOTP,
  jwt,
  lastLoginMethod,
  magicLink,
  multiSession,
  oneTimeToken,
  organization,
  phoneNumber,
  twoFactor,
  username,
} from "better-auth/plugins";
import { expect, it, onTestFinished } from "vitest";
import { createAuthenticator } from "../../src/testing/makers/authenticator";
import { createEnterpriseWorld, SCIM_MODELS } from "../features/enterprise/world";
import { createStripe, PRICE, WEBHOOK_SECRET } from "../features/integrations/fake-stripe";
import type { Answer, Browser } from "../support/browser";
import {
  allowOneConnection,
  createDatabase,
  type DatabaseKind,
  servers,
} from "../support/database";
import { PASSWORD } from "../support/instance";

async function createOneConnection(kind: DatabaseKind) {
  const database = await createDatabase(kind);
  onTestFinished(() => database.close());
  allowOneConnection(database);
  const codes = new Map<string, string>();
  const links = new Map<string, string>();
  const world = await createEnterpriseWorld({
    database,
    tenant: {
      scopedModels: [
        ...["ssoProvider", ...SCIM_MODELS, "organization", "member", "invitation", "passkey"],
        ...["apikey", "deviceCode", "subscription", "twoFactor"],
      ],
    },
    plugins: [
      admin(),
      username(),
      phoneNumber({
        sendOTP: ({ phoneNumber: number, code }) => void codes.set(number, code),
        signUpOnVerification: { getTempEmail: (number) => `${number.slice(1)}@phone.example` },
      }),
      emailOTP({ sendVerificationOTP: async ({ email, otp }) => void codes.set(email, otp) }),
      magicLink({ sendMagicLink: async ({ email, url }) => void links.set(email, url) }),
      apiKey({ enableSessionForAPIKeys: true }),
      lastLoginMethod({ storeInDatabase: true }),
      stripe({
        stripeClient: createStripe().client,
        stripeWebhookSecret: WEBHOOK_SECRET,
        createCustomerOnSignUp: true,
        subscription: { enabled: true, plans: [{ name: "pro", priceId: PRICE }] },
      }),
      ...[anonymous(), bearer(), deviceAuthorization(), jwt(), multiSession(), oneTimeToken()],
      ...[organization(), passkey(), twoFactor()],
    ],
  });
  const { oidcConfig, ...rest } = world.oidc("acme-okta");
  const mapping = { email: "email", name: "name", extraFields: { username: "username" } };
  await world.register("acme", { ...rest, oidcConfig: { ...oidcConfig, mapping } });
  return { ...world, codes, links, directory: await world.connect("acme") };
}

type World = Awaited<ReturnType<typeof createOneConnection>>;

async function ok<T>(asked: Promise<Answer<T>>): Promise<T> {
  const { status, data } = await asked;
  expect(status, JSON.stringify(data)).toBeLessThan(400);
  return data;
}

const newcomer = (name: string) => ({ name, email: `${name}@x.example`, password: PASSWORD });
const ORIGIN = "http://localhost:3000";

/** What one person does, by the plugin that it is about. */
const FLOWS: Record<string, (world: World, name: string, browser: Browser) => Promise<unknown>> = {
  async username(_, name, browser) {
    await ok(browser.post("/sign-up/email", { ...newcomer(name), username: `u_${name}` }));
    await ok(browser.post("/sign-in/username", { username: `u_${name}`, password: PASSWORD }));
    await ok(browser.post("/update-user", { username: `v_${name}` }));
  },
  async phoneNumber({ codes }, name, browser) {
    const number = `+1555000${name.charCodeAt(0)}`;
    await ok(browser.post("/phone-number/send-otp", { phoneNumber: number }));
    const code = codes.get(number);
    await ok(browser.post("/phone-number/verify", { phoneNumber: number, code }));
  },
  async emailOTP({ codes }, name, browser) {
    const email = `${name}@x.example`;
    await ok(browser.post("/email-otp/send-verification-otp", { email, type: "sign-in" }));
    await ok(browser.post("/sign-in/email-otp", { email, otp: codes.get(email) }));
  },
  async magicLink({ links }, name, browser) {
    const email = `${name}@x.example`;
    await ok(browser.post("/sign-in/magic-link", { email }));
    await ok(browser.get(links.get(email) ?? ""));
  },
  async anonymous(_, name, browser) {
    await ok(browser.post("/sign-in/anonymous", {}));
    await ok(browser.post("/sign-up/email", newcomer(name)));
  },
  async passkey(_, name, browser) {
    await ok(browser.post("/sign-up/email", newcomer(name)));
    const authenticator = await createAuthenticator("localhost");
    type Options = { challenge: string };
    const { challenge } = await ok(browser.get<Options>("/passkey/generate-register-options"));
    const response = await authenticator.register(challenge, ORIGIN);
    await ok(browser.post("/passkey/verify-registration", { response, createSession: true }));
    const asked = await ok(browser.get<Options>("/passkey/generate-authenticate-options"));
    const proof = { response: await authenticator.assert(asked.challenge, ORIGIN) };
    await ok(browser.post("/passkey/verify-authentication", proof));
  },
  async apiKey(_, name, browser) {
    await ok(browser.post("/sign-up/email", newcomer(name)));
    const { key } = await ok(browser.post<{ key: string }>("/api-key/create", {}));
    await ok(browser.fork().get("/get-session", { headers: { "x-api-key": key, cookie: "" } }));
  },
  async organization(_, name, browser) {
    await ok(browser.post("/sign-up/email", newcomer(name)));
    const body = { name, slug: `o-${name}` };
    const { id } = await ok(browser.post<{ id: string }>("/organization/create", body));
    await ok(browser.post("/organization/delete", { organizationId: id }));
  },
  async "two factors, jwt and one-time tokens"(_, name, browser) {
    await ok(browser.post("/sign-up/email", newcomer(name)));
    await ok(browser.get("/token"));
    const once = await ok(browser.get("/one-time-token/generate"));
    await ok(browser.post("/one-time-token/verify", once));
    await ok(browser.post("/two-factor/enable", { password: PASSWORD }));
    await ok(browser.get("/multi-session/list-device-sessions"));
  },
  async stripe(_, name, browser) {
    await ok(browser.post("/sign-up/email", newcomer(name)));
    const urls = { successUrl: "/bought", cancelUrl: "/no", returnUrl: "/account" };
    await ok(browser.post("/subscription/upgrade", { plan: "pro", ...urls }));
  },
  async sso({ ssoSignIn }, name) {
    const { location } = await ssoSignIn("acme", "acme-okta", name);
    expect(location).toBe("/welcome");
  },
  async scim({ directory }, name) {
    const { status, data } = await directory.add(name);
    expect(status, JSON.stringify(data)).toBe(201);
    expect((await directory.patch(`Users/${data.id}`, "active", false)).status).toBe(200);
  },
};

it.runIf(servers.asked).each(servers.kinds)(
  "%s with one connection: no plugin's flow waits for ever",
  async (kind) => {
    const world = await createOneConnection(kind);
    const outcomes: Record<string, string> = {};
    for (const [index, [plugin, flow]] of Object.entries(FLOWS).entries()) {
      const people = ["a", "b", "c"].map((one) => `${one}${index}`);
      for (const name of people) {
        world.provider.addPerson(name, { email: `${name}@acme.example` });
      }
      const done = Promise.all(people.map((name) => flow(world, name, world.at("acme"))));
      const waited = new Promise((resolve) => setTimeout(() => resolve("waits for ever"), 8000));
      const outcome = await Promise.race([done.then(() => "done", String), waited]);
      outcomes[plugin] = String(outcome);
    }
    expect(outcomes).toEqual(Object.fromEntries(Object.keys(FLOWS).map((name) => [name, "done"])));
  },
  120_000,
);
