import type { tenantInvitations } from "../../src/invitations/index";
import type { Answer, Browser } from "../support/browser";
import type { TestDatabase } from "../support/database";
import { startIdentityProvider } from "../support/identity-provider";
import { createPlainInstance, PASSWORD } from "../support/instance";
import { type createSocialInstance, GLOBAL } from "../support/social";
import { leftOf } from "./contents";

type App = Awaited<ReturnType<typeof createSocialInstance>>;

/** One run of a flow, on people and tenants of its own. */
interface Attempt {
  run(): Promise<Answer>;
  succeeded(answer: Answer): boolean;
  /** Tries the same once more, and answers what is wrong with the outcome. */
  again(): Promise<string | undefined>;
}

/** Prepares attempts that differ in nothing but their ids. */
type Flow = (app: App, operator: Browser) => () => Promise<Attempt>;

const EMAIL = "somebody@example.com";
const SOMEBODY = { name: "Somebody", email: EMAIL, password: PASSWORD };
export const CLIENT = { clientId: "the-client-id", clientSecret: "the-client-secret" };

const ok = ({ status }: Answer) => status === 200;
const isWelcome = ({ location }: Answer) => location === "/welcome";
const outcome = ({ status, code }: Answer) => `${status} ${code ?? ""}`;

/** All tenants of a test have one name, and slugs that nobody looks at. */
async function createTenant(app: App) {
  const slug = `tenant-${++tenants}`;
  return (await app.api.createTenant({ body: { name: "Tenant", slug } })).id;
}
let tenants = 0;

const signUp: Flow = (app) => async () => {
  const tenantId = await createTenant(app);
  const browser = app.browser();
  const run = () => browser.post("/tenant/sign-up/email", { tenantId, ...SOMEBODY });
  return {
    run,
    succeeded: ok,
    async again() {
      const repeated = await run();
      if (repeated.status === 422)
        await browser.post("/tenant/sign-in/email", { tenantId, ...SOMEBODY });
      else if (!ok(repeated)) return outcome(repeated);
      if ((await app.whoIs(browser, tenantId))?.user.email !== EMAIL) return "nobody is signed in";
    },
  };
};

/** Somebody has gone to the provider, and comes back. */
async function comeBack(app: Parameters<Flow>[0], tenantId: string) {
  const browser = app.browser();
  const url = await app.authorize(browser, tenantId);
  return {
    run: () => browser.get(url),
    succeeded: isWelcome,
    async again() {
      const { location } = await app.signIn(browser, tenantId);
      if (location !== "/welcome") return `leads to ${location}`;
      const person = await app.whoIs(browser, tenantId);
      if (person?.user.email !== "alice@example.com") return "nobody is signed in";
    },
  };
}

const callback =
  (isKnown: boolean): Flow =>
  (app) =>
  async () => {
    const tenantId = await createTenant(app);
    await app.configure(tenantId, CLIENT);
    if (isKnown) await app.signIn(app.browser(), tenantId);
    return comeBack(app, tenantId);
  };

const register =
  (replaces: boolean): Flow =>
  (app, operator) =>
  async () => {
    const tenantId = await createTenant(app);
    const body = { tenantId, providerId: "google", ...CLIENT };
    const old = { ...body, clientId: "old-client-id", clientSecret: "old-client-secret" };
    if (replaces) await app.api.registerTenantOAuthConfig({ body: old });
    const run = () => operator.post("/tenant/oauth-config/register", body);
    return {
      run,
      succeeded: ok,
      async again() {
        const repeated = await run();
        if (!ok(repeated)) return outcome(repeated);
        const column = app.database.quote("tenantId");
        const rows = await app.rows("tenantOauthConfig", `${column} = ?`, [tenantId]);
        if (rows !== 1) return `${rows} configs`;
      },
    };
  };

const remove: Flow = (app, operator) => async () => {
  const tenantId = await createTenant(app);
  const member = await app.signUp(tenantId, EMAIL);
  await app.configure(tenantId, CLIENT);
  await app.start(app.browser(), tenantId);
  const run = () => operator.post("/tenant/delete", { tenantId });
  return {
    run,
    succeeded: ok,
    async again() {
      const repeated = await run();
      if (!/^(200|404 TENANT_NOT_FOUND)/.test(outcome(repeated))) return outcome(repeated);
      const left = await leftOf(app, tenantId);
      if (left.length) return `left: ${left}`;
      if (await app.whoIs(member.browser, null)) return "a session of the tenant is still good";
    },
  };
};

type InvitingApi = App["api"] & ReturnType<typeof tenantInvitations>["endpoints"];

/** A tenant by invitation only, which has invited somebody: the token of the link. */
async function invite(app: App, email: string) {
  const api = app.api as InvitingApi;
  const tenantId = await createTenant(app);
  await api.updateTenant({ body: { tenantId, policy: { signUp: "invited" } } });
  const { url = "" } = await api.createTenantInvitation({
    body: { tenantId, email, send: false },
  });
  return { tenantId, token: new URL(url).searchParams.get("token") ?? "" };
}

const accept: Flow = (app) => async () => {
  const { tenantId, token } = await invite(app, EMAIL);
  const browser = app.browser();
  const run = () => browser.post("/tenant/invitation/accept", { token, ...SOMEBODY });
  return {
    run,
    succeeded: ok,
    async again() {
      const repeated = await run();
      if (repeated.code === "INVITATION_ALREADY_ACCEPTED")
        await browser.post("/tenant/sign-in/email", { tenantId, ...SOMEBODY });
      else if (!ok(repeated)) return outcome(repeated);
      if ((await app.whoIs(browser, tenantId))?.user.email !== EMAIL) return "nobody is signed in";
    },
  };
};

const comeInvited: Flow = (app) => async () => {
  const { tenantId } = await invite(app, "alice@example.com");
  await app.configure(tenantId, CLIENT);
  return comeBack(app, tenantId);
};

/** Ways in by invitation, and the flow of better-auth's own that they are. */
export const BY_INVITATION: Record<string, string> = {
  "the acceptance of an invitation": "a sign-up",
  "the OAuth callback of somebody who is invited": "the first OAuth callback of somebody",
};

export const FLOWS = {
  "a sign-up": signUp,
  "the first OAuth callback of somebody": callback(false),
  "the next OAuth callback of somebody": callback(true),
  "the first registration of a config": register(false),
  "the next registration of a config": register(true),
  "the deletion of a tenant": remove,
  "the acceptance of an invitation": accept,
  "the OAuth callback of somebody who is invited": comeInvited,
};

/** The flows that are better-auth's own, at better-auth itself. */
export async function createPlainFlows(database: TestDatabase) {
  const idp = await startIdentityProvider();
  idp.registerClient(GLOBAL.clientId, GLOBAL.clientSecret);
  const { browser, auth } = await createPlainInstance(database, {
    socialProviders: { gitlab: { ...GLOBAL, issuer: idp.issuer } },
  });
  const { secretConfig } = await auth.$context;
  // better-auth's check of the tables belongs to the first request.
  await browser().get("/ok");
  let people = 0;

  const signUp = async () => {
    const body = { ...SOMEBODY, email: `somebody-${++people}@example.com` };
    return { run: () => browser().post("/sign-up/email", body), succeeded: ok };
  };

  const callback = (isKnown: boolean) => async () => {
    const username = `somebody-${++people}`;
    idp.addPerson(username);
    const comeBack = async () => {
      const person = browser();
      const body = { provider: "gitlab", callbackURL: "/welcome", errorCallbackURL: "/failed" };
      const { data } = await person.post<{ url: string }>("/sign-in/social", body);
      const url = await idp.authorize(data.url, username);
      return () => person.get(url);
    };
    if (isKnown) await (await comeBack())();
    return { run: await comeBack(), succeeded: isWelcome };
  };

  const flows = {
    "a sign-up": signUp,
    "the first OAuth callback of somebody": callback(false),
    "the next OAuth callback of somebody": callback(true),
  };
  return { secretConfig, flows };
}
