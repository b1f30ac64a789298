import type { BetterAuthOptions } from "better-auth";
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { bySlug, type TenantPolicy } from "../src/index";
import type { Answer, Browser } from "./support/browser";
import { createDatabase, type TestDatabase } from "./support/database";
import { LINK_SOCIAL_QUERIES, LINKING_QUERIES } from "./support/differences";
import { startIdentityProvider } from "./support/identity-provider";
import { createInstance, createPlainInstance, PASSWORD } from "./support/instance";
import { sample } from "./support/matrix";
import { GLOBAL } from "./support/social";
import { createMailbox, type Mail } from "./support/world";

/*
 * What every flow costs the database: in better-auth alone, on the platform, and in a tenant, by
 * each way to name it. A tenant is looked up once in ten seconds in each process, which is counted
 * by itself at the end; time stands still for the rest.
 */

type Counts = Record<string, number>;

/** How requests say their tenant: before anybody is signed in, and after. */
interface Naming {
  stranger?: Record<string, string>;
  signedIn?: Record<string, string>;
  /** Everything that better-auth has at `/sign-in/…` and `/sign-up/…` is asked for under `/tenant`. */
  prefix?: "/tenant";
}

interface Place {
  database: TestDatabase;
  browser: (headers?: Record<string, string>) => Browser;
  mails: Mail[];
  idp: Awaited<ReturnType<typeof startIdentityProvider>>;
  naming: Naming;
}

const SOCIAL = { provider: "gitlab", callbackURL: "/done", errorCallbackURL: "/failed" };
const EMAIL = "counted@example.com";
const NEW_EMAIL = "new@example.com";
const PERSON = { name: "Somebody", email: EMAIL, password: PASSWORD };

/** Walks through every flow, and counts what reaches the database in each of them. */
async function measure({ database, browser, mails, idp, naming }: Place): Promise<Counts> {
  const counts: Counts = {};
  const count = async <T>(name: string, run: () => Promise<Answer<T>>): Promise<T> => {
    database.statements.length = 0;
    const { status, data, location } = await run();
    counts[name] = database.statements.length;
    const failed = status >= 400 || location?.includes("error");
    if (failed) throw new Error(`${name}: ${status} ${location} ${JSON.stringify(data)}`);
    return data;
  };
  const { stranger = {}, signedIn = stranger, prefix = "" } = naming;
  const lastMail = (kind: string) => {
    expect(mails.at(-1)).toMatchObject({ kind });
    return mails.at(-1) as Mail;
  };
  const open = () => browser(stranger);
  const link = () => browser(signedIn);
  /** After the address was changed. */
  const signIn = async () => {
    const window = open();
    await window.post("/sign-in/email", { email: NEW_EMAIL, password: PASSWORD });
    return window.fork(signedIn);
  };

  // better-auth looks at the tables along with its first request, and a tenant is remembered.
  await browser().post("/sign-up/email", { ...PERSON, email: "first@example.com" });
  await open().post("/sign-in/email", PERSON);

  const newcomer = open();
  await count("sign-up", () => newcomer.post(`${prefix}/sign-up/email`, PERSON));
  const { token } = await count("sign-in", () =>
    open().post<{ token: string }>(`${prefix}/sign-in/email`, PERSON),
  );
  const me = newcomer.fork(signedIn);
  await count("sign-in again", () => newcomer.fork().post(`${prefix}/sign-in/email`, PERSON));
  await count("get-session", () => me.get("/get-session"));
  await count("get-session, signed out", () => open().get("/get-session"));
  await count("update-session", () => me.post("/update-session", { theme: "dark" }));
  await count("update-user", () => me.post("/update-user", { name: "Renamed" }));
  const passwords = { currentPassword: PASSWORD, newPassword: "another password" };
  await count("change-password", () => me.post("/change-password", passwords));

  const reset = { email: EMAIL, redirectTo: "/page" };
  await count("request-password-reset", () => open().post("/request-password-reset", reset));
  const resetMail = lastMail("reset");
  await count("reset link", () => link().get(resetMail.url));
  const newPassword = { token: resetMail.token, newPassword: PASSWORD };
  await count("reset-password", () => link().post("/reset-password", newPassword));

  await count("send-verification-email", () => me.post("/send-verification-email", reset));
  await count("verify-email", () => link().get(lastMail("verification").url));
  await count("change-email", () => me.post("/change-email", { newEmail: NEW_EMAIL }));
  await count("change-email confirmation link", () => link().get(lastMail("change").url));
  await count("change-email verification link", () => link().get(lastMail("verification").url));

  // Alice at the provider has the address of the person who links.
  idp.addPerson("alice", { email: NEW_EMAIL });
  const start = await count("link-social", () => me.post<{ url: string }>("/link-social", SOCIAL));
  const back = await idp.authorize(start.url, "alice");
  await count("link-social callback", () => me.get(back));
  const accounts = await count("list-accounts", () =>
    me.get<{ id: string; providerId: string }[]>("/list-accounts"),
  );
  const accountId = accounts.find(({ providerId }) => providerId === "gitlab")?.id ?? "";
  await count("get-access-token", () => me.post("/get-access-token", { accountId }));
  await count("refresh-token", () => me.post("/refresh-token", { accountId }));
  await count("account-info", () => me.get("/account-info", { query: { accountId } }));
  const visitor = open();
  const social = await count("social start", () =>
    visitor.post<{ url: string }>(`${prefix}/sign-in/social`, SOCIAL),
  );
  const socialBack = await idp.authorize(social.url, "alice");
  await count("social callback", () => visitor.get(socialBack));
  await count("unlink-account", () => me.post("/unlink-account", { accountId }));

  await count("revoke-session", () => me.post("/revoke-session", { token }));
  const [third, other] = [await signIn(), await signIn()];
  await count("sign-out", () => third.post("/sign-out"));
  await count("revoke-sessions", () => other.post("/revoke-sessions"));
  const leaver = await signIn();
  await count("delete-user", () => leaver.post("/delete-user"));
  await count("delete-user link", () => leaver.get(lastMail("deletion").url));
  return counts;
}

/** What an application has, with or without us. */
async function prepare() {
  const idp = await startIdentityProvider();
  idp.rules.refreshTokens = true;
  idp.registerClient(GLOBAL.clientId, GLOBAL.clientSecret);
  const { mails, send } = createMailbox();
  const auth: Partial<BetterAuthOptions> = {
    emailAndPassword: { enabled: true, sendResetPassword: send("reset") },
    emailVerification: { sendVerificationEmail: send("verification") },
    user: {
      changeEmail: { enabled: true, sendChangeEmailConfirmation: send("change") },
      deleteUser: { enabled: true, sendDeleteAccountVerification: send("deletion") },
    },
    session: { additionalFields: { theme: { type: "string", required: false } } },
    socialProviders: { gitlab: { ...GLOBAL, issuer: idp.issuer } },
  };
  const database = await createDatabase("sqlite");
  onTestFinished(() => database.close());
  return { idp, mails, auth, database };
}

let alone: Promise<Counts> | undefined;

/** better-auth without the plugin, measured once. */
function measureAlone(): Promise<Counts> {
  alone ??= prepare().then(async ({ auth, ...rest }) => {
    const { browser } = await createPlainInstance(rest.database, auth);
    return measure({ ...rest, browser, naming: {} });
  });
  return alone;
}

type Name = (tenant: { id: string; slug: string }) => Naming;
interface Column {
  name: Name;
  /** What it costs more, and only that. */
  costs: Counts;
  slugs?: boolean;
  config?: boolean;
  policy?: TenantPolicy;
}

/** What costs more everywhere: all sessions end, or a credential is bound to its session. */
const ANYWHERE: Counts = {
  // The sessions of the user have not ended since.
  "change-email confirmation link": 1,
  "change-email verification link": 1,
  "change-password": 1,
  "revoke-sessions": 1,
  "delete-user link": 1,
  ...(LINK_SOCIAL_QUERIES && { "link-social": LINK_SOCIAL_QUERIES }),
  "link-social callback": 1 + LINKING_QUERIES,
};

/** The flows that cost more in a tenant, and why. */
const IN_A_TENANT: Counts = {
  ...ANYWHERE,
  // The user still has the address that the link was mailed to.
  "reset link": 1,
  "reset-password": 1,
  // The tenant's credentials at the provider.
  "social start": 1,
  "social callback": 1,
  "link-social": 1 + LINK_SOCIAL_QUERIES,
  // And R8: the account is for a user of this tenant.
  "link-social callback": 2 + LINKING_QUERIES,
  "get-access-token": 1,
  "refresh-token": 1,
  "account-info": 1,
};

const byHeader: Name = ({ id }) => ({ stranger: { "x-tenant-id": id } });
const costs = IN_A_TENANT;
const COLUMNS: Record<string, Column> = {
  "no tenant": {
    name: () => ({}),
    // R8: the account is for a user of the platform.
    costs: ANYWHERE,
  },
  "each request names it": { name: byHeader, costs },
  "the session or a link names it": {
    name: ({ id }) => ({ stranger: { "x-tenant-id": id }, signedIn: {} }),
    // R4: a prefix puts these into its tenant only with a valid session behind it.
    costs: { ...costs, "change-email": 2, "change-password": 3, "send-verification-email": 2 },
  },
  "by slug, on the plugin's own paths": {
    slugs: true,
    name: ({ slug }) => ({ stranger: { "x-tenant-slug": slug }, prefix: "/tenant" }),
    costs,
  },
  "with a config": { name: byHeader, config: true, costs },
  "with a policy": {
    name: byHeader,
    policy: {
      signUp: "open",
      methods: ["password", "social:gitlab"],
      password: { minLength: 10 },
      session: { expiresIn: 3600 },
    },
    costs,
  },
};

async function measureColumn({ name, slugs, config, policy }: Column): Promise<Counts> {
  const { auth, ...rest } = await prepare();
  const tenant = slugs ? { resolveTenantId: bySlug() } : {};
  const instance = await createInstance({ database: rest.database, auth, tenant });
  const { id: tenantId, slug } = await instance.createTenant();
  if (config) {
    const own = { clientId: "own-client", clientSecret: "own-secret" };
    rest.idp.registerClient(own.clientId, own.clientSecret);
    const body = { tenantId, providerId: "gitlab", ...own };
    await instance.api.registerTenantOAuthConfig({ body });
  }
  if (policy) await instance.api.updateTenant({ body: { tenantId, policy } });
  return measure({ ...rest, browser: instance.browser, naming: name({ id: tenantId, slug }) });
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: new Date() });
  // A second after a one-time code its tenant is looked at again: on a slow machine in mid flow.
  const wait = globalThis.setTimeout;
  const patiently = (run: () => void, ms?: number, ...args: []) =>
    wait(run, ms === 1_000 ? 600_000 : ms, ...args);
  vi.spyOn(globalThis, "setTimeout").mockImplementation(patiently as typeof setTimeout);
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it("every flow is counted", async () => {
  const flows = Object.entries(await measureAlone());
  expect(flows).toHaveLength(30);
  const free = flows.filter(([, count]) => count === 0).map(([flow]) => flow);
  expect(free).toEqual(["get-session, signed out"]);
});

it.each(sample(Object.keys(COLUMNS), 4))(
  "what a flow costs more than in better-auth alone: %s",
  async (name) => {
    const [plain, ours] = [await measureAlone(), await measureColumn(COLUMNS[name] as Column)];
    const difference = (flow: string) => Number(ours[flow]) - Number(plain[flow]);
    const more = Object.keys(plain).filter((flow) => difference(flow) !== 0);
    const found = Object.fromEntries(more.map((flow) => [flow, difference(flow)]));
    expect(found).toEqual(COLUMNS[name]?.costs);
  },
);

it("a tenant that is not remembered costs one more", async () => {
  const { auth, database } = await prepare();
  const { browser, createTenant } = await createInstance({ database, auth });
  const { id } = await createTenant();
  const ask = async () => {
    database.statements.length = 0;
    await browser({ "x-tenant-id": id }).post("/sign-in/email", PERSON);
    return database.statements.length;
  };
  const [first, second] = [await ask(), await ask()];
  expect(first - second).toBe(1);
  vi.setSystemTime(Date.now() + 10_001);
  expect(await ask()).toBe(first);
});
