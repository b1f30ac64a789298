import { getCurrentAdapter } from "@better-auth/core/context";
import type { BetterAuthPlugin, User } from "better-auth";
import { organization } from "better-auth/plugins";
import { describe, expect, it, vi } from "vitest";
import { createSamlProvider } from "../../src/testing/makers/saml";
import {
  ADA,
  acsOf,
  audienceOf,
  createSSOWorld,
  post,
  samlRegistration,
} from "../features/enterprise/world";
import { createInstance, type Instance, type InstanceOptions, PASSWORD } from "../support/instance";
import { createSocialInstance } from "../support/social";
import { createWorld, SUBDOMAINS } from "../support/world";
import { readPage } from "./pages";

/** The rows of the only table in the page. */
const rows = readPage("docs/troubleshooting.md")
  .split("\n")
  .filter((line) => /^\| (?!mistake|---)/.test(line))
  .map((line) => {
    const [mistake = "", answer = "", message = ""] = line.slice(2).split(" | ");
    return { mistake, answer, message: message.replace(/^`|`$/g, "") };
  });

interface Outcome {
  answer: string;
  /** What the application has written, or has thrown at start. */
  messages: string[];
}

type Answered = { status: number; code?: string | undefined; location?: string | null };

const person = { name: "Somebody", email: "somebody@example.com", password: PASSWORD };
const GITLAB = { providerId: "gitlab", clientId: "client", clientSecret: "secret" };

function outcome({ status, code, location }: Answered, logs: string[]): Outcome {
  const error = /[?&](error=\w+)/.exec(location ?? "")?.[1];
  const answer = error ? `redirects with \`${error}\`` : `${status}${code ? ` \`${code}\`` : ""}`;
  return { answer, messages: logs.map((line) => line.replace(/^\w+ /, "")) };
}

async function start(options: InstanceOptions): Promise<Outcome> {
  const message = await createInstance(options).then(
    () => "",
    (error: Error) => error.message,
  );
  return { answer: message ? "does not start" : "starts", messages: [message] };
}

const MISTAKES: Record<string, () => Promise<Outcome>> = {
  "The caller may not manage tenants": async () => {
    const { signUp, logs } = await createInstance();
    const { browser } = await signUp(null);
    const answer = await browser.post("/tenant/create", { name: "Acme", slug: "acme" });
    return outcome(answer, [...logs, `error ${answer.data.message}`]);
  },

  "A model of another plugin is neither scoped nor shared": () =>
    start({ plugins: [organization()] }),

  "The old unique index on the email still exists": async () => {
    const { createTenant, browser, signUp, logs, database } = await createInstance();
    const { id: tenantId } = await createTenant();
    await database.query(`create unique index "user_email_unique" on "user" ("email")`);
    await signUp(null, person.email);
    const answer = await browser().post("/tenant/sign-up/email", { ...person, tenantId });
    return outcome(answer, logs);
  },

  "The tables were created while the application was running": async () => {
    const { signUp } = await createInstance({ migrate: false });
    const asked = () => signUp(null).then(String, (error: Error) => error.message);
    const message = await asked();
    expect(await asked()).toBe(message);
    return { answer: "throws", messages: [message] };
  },

  "The provider is not configured": async () => {
    const { createTenant, browser, logs } = await createInstance();
    const { id: tenantId } = await createTenant();
    const body = { tenantId, provider: "gitlab" };
    const answer = await browser().post("/tenant/sign-in/social", body);
    return outcome(answer, [...logs, `error ${answer.data.message}`]);
  },

  "The client secret is wrong": async () => {
    const { api, browser, createTenant, configure, signIn, logs } = await createSocialInstance();
    const { id: tenantId } = await createTenant();
    const { clientId } = await configure(tenantId);
    const body = { ...GITLAB, tenantId, clientId, clientSecret: "last year's" };
    await api.registerTenantOAuthConfig({ body });
    return outcome(await signIn(browser(), tenantId), logs);
  },

  "The auth secret changed after credentials were stored": async () => {
    const before = await createInstance();
    const { database } = before;
    const { id: tenantId } = await before.createTenant();
    await before.api.registerTenantOAuthConfig({ body: { ...GITLAB, tenantId } });
    const auth = { secret: "another secret that is long enough for everybody" };
    const after = await createInstance({ database, migrate: false, auth });
    const body = { tenantId, provider: "gitlab" };
    return outcome(await after.browser().post("/tenant/sign-in/social", body), after.logs);
  },

  "Credentials were stored without an auth secret": async () => {
    const instance = await createInstance({ auth: { secret: "" } });
    const { browser } = await instance.operator();
    const { id: tenantId } = await instance.createTenant();
    const register = "/tenant/oauth-config/register";
    return outcome(await browser.post(register, { ...GITLAB, tenantId }), instance.logs);
  },

  "A page redirects to the host of another tenant": async () => {
    const { at, logs } = await createWorld({ hosts: SUBDOMAINS });
    const body = { ...person, callbackURL: "http://globex.example.com/welcome" };
    return outcome(await at("acme").post("/sign-up/email", body), logs);
  },

  "The host of an identity provider is not trusted": async () => {
    const { as, logs } = await createSSOWorld();
    const oidcConfig = { clientId: "client", clientSecret: "secret" };
    const issuer = "https://acme.okta.com";
    const body = { providerId: "acme-okta", issuer, domain: "acme.com", oidcConfig };
    return outcome(await (await as("admin", "acme")).post("/sso/register", body), logs);
  },

  "The ACS URL of a tenant's SAML provider is at the platform's host": async () => {
    const { register, at, logs } = await createSSOWorld({ hosts: SUBDOMAINS });
    const idp = await createSamlProvider("https://acme.okta.com");
    await register("acme", samlRegistration("acme-okta", idp));
    const acs = acsOf("acme-okta", "http://example.com/api/auth");
    const answer = { acs, audience: audienceOf("acme-okta"), inResponseTo: "", email: ADA };
    return outcome(
      await post(at("platform"), acs, { SAMLResponse: await idp.respond(answer) }),
      logs,
    );
  },
};

/** `<...>` stands for what is different each time. */
const patternOf = (text: string) => {
  const parts = text.split(/<[^>]+>/);
  const escaped = parts.map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${escaped.join("[^]+")}$`);
};

describe("docs/troubleshooting.md", () => {
  it("has the eleven mistakes that are made here", () => {
    expect(rows.map(({ mistake }) => mistake)).toEqual(Object.keys(MISTAKES));
    expect(rows).toHaveLength(11);
  });

  it.each(rows)("$mistake", async (row) => {
    const { answer, messages } = (await MISTAKES[row.mistake]?.()) ?? { answer: "", messages: [] };
    expect(answer).toMatch(patternOf(row.answer));
    const found = messages.filter((message) => patternOf(row.message).test(message));
    expect(found, `${row.message}\nis not among\n${messages.join("\n")}`).toHaveLength(1);
  });
});

const word = { type: "string", required: true } as const;
const outbox: BetterAuthPlugin = {
  id: "outbox",
  schema: { mail: { fields: { to: word, text: word } } },
};
type Adapter = Pick<Instance["context"]["adapter"], "create">;

/** An application that keeps its mails in better-auth's database, through the adapter it is told. */
async function createOutbox(adapterOf: (instance: Instance) => Promise<Adapter>) {
  const sendVerificationEmail = async ({ user, url }: { user: User; url: string }) => {
    const adapter = await adapterOf(instance);
    await adapter.create({ model: "mail", data: { to: user.email, text: url } });
  };
  const instance: Instance = await createInstance({
    tenant: { scopedModels: ["mail"] },
    plugins: [outbox],
    auth: { emailVerification: { sendOnSignUp: true, sendVerificationEmail } },
  });
  return { ...instance, acme: await instance.createTenant("acme") };
}

it("a sender that uses better-auth's connection writes into the tenant it works for", async () => {
  const { signUp, acme, database } = await createOutbox(({ context }) =>
    getCurrentAdapter(context.adapter),
  );
  await signUp(acme.id, "al@example.com");
  const rows = await database.query("select * from mail");
  expect(rows).toMatchObject([{ to: "al@example.com", tenantId: acme.id }]);
});

it("on SQLite, one that keeps the adapter does not wait for the sign-up that waits for it", async () => {
  const signedUp = vi.fn();
  const asked = vi.fn(async ({ context }: Instance) => context.adapter);
  const { signUp, acme } = await createOutbox(asked);
  void signUp(acme.id).then(signedUp);
  await vi.waitFor(() => expect(asked).toHaveBeenCalled(), 10_000);
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(signedUp).toHaveBeenCalledTimes(1);
});
