import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { afterAll, beforeAll, expect } from "vitest";
import {
  byDomain,
  bySubdomain,
  getTenantId,
  type ResolveTenant,
  type ResolveTenantContext,
  runInTenant,
} from "../../src/index";
import { type Answer, Browser } from "./browser";
import { createDatabase, type DatabaseKind, type TestDatabase } from "./database";
import {
  BASE_URL,
  createInstance,
  type Instance,
  type InstanceOptions,
  PASSWORD,
} from "./instance";
import { closeStorages, type Store } from "./stores";

/** Two tenants, and the platform, which has no tenant. */
export const PLACES = ["acme", "globex", "platform"] as const;
export type Place = (typeof PLACES)[number];

/** Where nothing of Acme may work. */
export const ELSEWHERE = ["globex", "platform"] as const;

/** Jane's address: one address, and three people. */
export const EMAIL = "jane@example.com";

/** A tenant's id as it stands in the names of cookies. */
export const inCookieName = (id: string | null) =>
  String(id).replace(/[A-Z-]/g, (letter) => `-${letter.toLowerCase()}`);

/** A place, or a tenant that the test has made itself, by its id; null is the platform. */
export type Where = Place | (string & {}) | null;

export interface Mail {
  /** What it was sent for: "reset", "verification", "change", "deletion", or as a plugin's sender says. */
  kind: string;
  to: string;
  userId: string | undefined;
  /** Where the sender says it runs. */
  sentIn: string | null;
  url: string;
  token: string;
  /** A one-time code, where there is one. */
  code: string;
}

type UpdateTenant = NonNullable<Parameters<Instance["api"]["updateTenant"]>[0]>;

export type Send = (kind: string) => (data: object) => Promise<void>;

/** Hosts of the three places, and the resolver that knows them. */
export interface Hosts {
  names: Record<Place, string>;
  resolveTenantId: ResolveTenant;
}

export const SUBDOMAINS: Hosts = {
  names: { acme: "acme.example.com", globex: "globex.example.com", platform: "example.com" },
  resolveTenantId: bySubdomain({ baseDomain: "example.com" }),
};

export const DOMAINS: Hosts = {
  names: { acme: "login.acme.com", globex: "globex.org", platform: "example.com" },
  resolveTenantId: byDomain({
    "login.acme.com": { slug: "acme" },
    "globex.org": { slug: "globex" },
  }),
};

/** A resolver that lets the request speak on the platform's hosts, as an application may write it. */
const byFunction = (hostOf: (ctx: ResolveTenantContext) => string | null | undefined): Hosts => ({
  names: SUBDOMAINS.names,
  resolveTenantId: (ctx) => {
    const host = hostOf(ctx);
    const slug = ["acme", "globex"].find((name) => host === `${name}.example.com`);
    return slug === undefined ? undefined : { slug };
  },
});

export const BY_HEADER = byFunction(({ headers, request }) =>
  (headers ?? request?.headers)?.get("host"),
);
export const BY_URL = byFunction(({ request }) => request && new URL(request.url).hostname);

export interface WorldOptions extends Omit<InstanceOptions, "plugins"> {
  /** Plugins, or a function of the mailbox: `(send) => [magicLink({ sendMagicLink: send("link") })]`. */
  plugins?: BetterAuthPlugin[] | ((send: Send) => BetterAuthPlugin[]);
  /** Places are told apart by host. Without, tenants are named by the header. */
  hosts?: Hosts;
  /** Where sessions live: the database unless told. */
  store?: Store;
  /** Accounts are deleted by a link in a mail, not at once. */
  deletionByMail?: boolean;
}

/** Somebody who is signed in, in a browser of theirs. */
export class Person extends Browser {
  id = "";
  email = "";
  token = "";
}

type Signed = { token: string; user: { id: string } };

export type World = Awaited<ReturnType<typeof createWorld>>;

/**
 * One better-auth with the plugin on a real database, two tenants and the platform. People sign up
 * when they are first asked for: `await world.as("jane", "acme")` is a browser that is signed in.
 */
export async function createWorld(options: WorldOptions = {}) {
  const { mails, send } = createMailbox();
  const instance = await createInstance(furnished(options, send));
  const { database, auth } = instance;
  const ids = {
    acme: (await instance.createTenant("acme")).id,
    globex: (await instance.createTenant("globex")).id,
    platform: null,
  };
  const idOf = (where: Where): string | null =>
    where !== null && where in ids ? ids[where as Place] : where;

  /** What a request at a place says of itself. */
  function naming(where: Where): Record<string, string> {
    const id = idOf(where);
    const host = hostOf(options.hosts, where);
    if (host) return { host };
    return id === null ? {} : { "x-tenant-id": id };
  }

  const urlOf = (where: Where) => {
    const host = hostOf(options.hosts, where);
    return host ? `http://${host}/api/auth` : BASE_URL;
  };
  const personAt = (where: Where) => new Person(auth.handler, urlOf(where), naming(where));

  /** A browser at a place: a new one without cookies, or another window of somebody's. */
  function at(where: Where, cookiesOf?: Browser): Browser {
    const browser = new Browser(auth.handler, urlOf(where), naming(where));
    for (const [name, value] of cookiesOf?.cookies ?? []) browser.cookies.set(name, value);
    return browser;
  }

  /** Somebody new, signed up and signed in. */
  async function signUp(where: Where, email: string = EMAIL, more: object = {}): Promise<Person> {
    const person = personAt(where);
    const body = { name: "Somebody", email, password: PASSWORD, ...more };
    const answer = await person.post<Signed>("/sign-up/email", body);
    expect(answer.status, `sign-up: ${JSON.stringify(answer.data)}`).toBe(200);
    return Object.assign(person, { id: answer.data.user.id, email, token: answer.data.token });
  }

  /** Signs in with a password; a Person where that worked. */
  async function signIn(where: Where, email: string = EMAIL, password: string = PASSWORD) {
    const person = personAt(where);
    const answer = await person.post<Signed>("/sign-in/email", { email, password });
    const { token = "", user } = answer.data ?? {};
    Object.assign(person, { id: user?.id ?? "", email, token });
    return { ...answer, person };
  }

  const setRole = (userId: string, role: string) =>
    database.query(`update ${database.quote("user")} set role = ? where id = ?`, [role, userId]);

  const known = new Map<string, Promise<Person>>();
  let strangers = 0;

  /** Signed in once their role is set: a session in a storage keeps the role it was made with. */
  async function settle(name: string, where: Where): Promise<Person> {
    const person = await signUp(where, `${name}@example.com`);
    if (name !== "admin") return person;
    await setRole(person.id, "admin");
    return (await signIn(where, person.email)).person;
  }

  /**
   * Jane at Acme, or anybody else anywhere: the same person whenever they are asked for. The one
   * called "admin" has the role; on the platform that makes an operator.
   */
  function as(name: string, where: Where): Promise<Person> {
    const key = `${name} at ${where}`;
    const person = known.get(key) ?? settle(name, where);
    known.set(key, person);
    return person;
  }

  /** Somebody in all three places, one after the other; what was mailed meanwhile is forgotten. */
  async function inEachPlace(make: (place: Place) => Promise<Person>) {
    const people = {} as Record<Place, Person>;
    for (const place of PLACES) people[place] = await make(place);
    mails.length = 0;
    return people;
  }

  return bound({
    ...instance,
    as,
    mails,
    ids,
    idOf,
    naming,
    at,
    signUp,
    signIn,
    setRole,
    ...createRecords(instance, idOf),

    /** Somebody new with a role, signed in with it. */
    async join(where: Where, role: string, email = `${crypto.randomUUID()}@example.com`) {
      const { id } = await signUp(where, email);
      await setRole(id, role);
      return (await signIn(where, email)).person;
    },

    /** Changes a tenant as the server does: its policy, its status, its name. */
    change(where: Where, changes: Omit<UpdateTenant["body"], "tenantId">) {
      return instance.api.updateTenant({ body: { ...changes, tenantId: idOf(where) ?? "" } });
    },

    /** Changes a user of Acme as the server does. */
    changeUser(id: string, changes: object) {
      const { updateUser } = instance.context.internalAdapter;
      return runInTenant(idOf("acme") ?? "", () => updateUser(id, changes));
    },

    /** Somebody who may manage tenants. */
    operator(): Promise<Person> {
      return as("admin", "platform");
    },

    /** Jane in all three places. */
    janes: () => inEachPlace((place) => as("jane", place)),

    /** Three people with an address that nobody has yet, for a test that changes them. */
    strangers: () => {
      const email = `stranger-${++strangers}@example.com`;
      return inEachPlace((place) => signUp(place, email));
    },

    /** Who a browser is at a place, or where its session leads: null when nobody. */
    async whoIs(browser: Browser, where?: Where) {
      const window = where === undefined ? browser : at(where, browser);
      const { data } = await window.get<SessionAnswer | null>("/get-session");
      return data && { id: data.user.id, email: data.user.email, tenantId: data.session.tenantId };
    },

    /** Somebody new in each place, all of one address, each with a password of their own. */
    async namesakes(email = `${crypto.randomUUID()}@example.com`) {
      const people = await inEachPlace((place) =>
        signUp(place, email, { password: passwordOf(place) }),
      );
      const enter = async (place: Place, password = passwordOf(place), address = email) => {
        const { status, code, person } = await signIn(place, address, password);
        return status === 200 ? person.id : [status, code];
      };
      return {
        ...people,
        email,

        /** A window of theirs, which names the tenant or does not. */
        window: (place: Place, way: Way = "its session alone") =>
          way === "its header" ? people[place].fork() : people[place].fork({}),

        /** What a table holds of the one at a place. */
        rowsOf: async (place: Place, model: string) =>
          (await this.rowsIn(place, model)).filter(({ id, userId }) =>
            [id, userId].includes(people[place].id),
          ),

        async expectSignsIn(place: Place, password?: string, address?: string) {
          expect(await enter(place, password, address)).toBe(people[place].id);
        },

        async expectLockedOut(place: Place, password?: string, address?: string) {
          expect(await enter(place, password, address)).toEqual([401, "INVALID_EMAIL_OR_PASSWORD"]);
        },
      };
    },

    /** Writes into a table what no endpoint would, where the rows have these values. */
    write(model: string, change: object, where: object = {}) {
      const { query, quote, kind } = database;
      const terms = (columns: object) => Object.keys(columns).map((name) => `${quote(name)} = ?`);
      const rows = Object.keys(where).length ? `where ${terms(where).join(" and ")}` : "";
      const params = [change, where].flatMap(Object.values);
      // SQLite has no booleans.
      const values = params.map((value) => (kind === "sqlite" && value === true ? 1 : value));
      return query(`update ${quote(model)} set ${terms(change)} ${rows}`, values);
    },

    /** The last mail, which has to be of this kind. */
    lastMail(kind: string): Mail {
      const mail = mails.at(-1);
      if (mail?.kind !== kind) throw new Error(`no such mail: ${JSON.stringify(mails)}`);
      return mail;
    },

    /** Runs a flow of one place: the others keep every row. */
    async touchesOnly<T>(place: Place, run: () => Promise<T>): Promise<T> {
      const others = PLACES.filter((other) => other !== place);
      const read = () => Promise.all(others.map((other) => this.everythingIn(other)));
      const before = await read();
      const result = await run();
      expect(await read()).toEqual(before);
      return result;
    },

    /** Runs what has to change nothing at all in the database. */
    async unchanged<T>(run: () => Promise<T>): Promise<T> {
      const before = await this.everything();
      const result = await run();
      expect(await this.everything()).toEqual(before);
      return result;
    },
  });
}

/** Methods that know their object also when they are taken out of it. */
function bound<Parts extends object>(parts: Parts): Parts {
  for (const [name, part] of Object.entries(parts)) {
    if (typeof part === "function") Object.assign(parts, { [name]: part.bind(parts) });
  }
  return parts;
}

/** One world for all tests of a file: most of the time of a small test goes into its instance. */
export const shareWorld = (options: WorldOptions = {}, kind: DatabaseKind = "sqlite"): World =>
  shareMade((database) => createWorld({ ...options, database }), kind);

/** The same for a world that is made in another way. */
export function shareMade<Made extends { database: TestDatabase }>(
  make: (database: TestDatabase) => Promise<Made>,
  kind: DatabaseKind = "sqlite",
): Made {
  const shared = {} as Made;
  beforeAll(async () => {
    Object.assign(shared, await make(await createDatabase(kind)));
  });
  afterAll(async () => {
    await closeStorages();
    await shared.database.close();
  });
  return shared;
}

export interface SessionAnswer {
  session: {
    id: string;
    token: string;
    userId: string;
    tenantId: string | null;
    expiresAt: string;
  };
  user: { id: string; email: string; name: string; tenantId: string | null; role?: string };
}

/** What an answer comes down to, for comparing. */
export const outcome = ({ status, code }: Answer<unknown>) => [status, code];

/** A refusal by status and code, which signs nobody in. */
export function expectRefused(answer: Answer<unknown>, status: number, code?: string) {
  expect(outcome(answer)).toEqual([status, code]);
  expect(answer.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
}

/**
 * R5: a session is one at home and none elsewhere, and stays alive meanwhile. The platform has no
 * name: a session of a tenant is the tenant's there (R4).
 */
export async function expectSessionsApart({ as, whoIs, at }: Pick<World, "as" | "whoIs" | "at">) {
  for (const [home, elsewhere] of [
    ["acme", "globex"],
    ["globex", "acme"],
    ["platform", "acme"],
  ] as const) {
    const person = await as(`only-${home}`, home);
    const label = `somebody of ${home} at ${elsewhere}`;
    expect(await whoIs(person), label).toMatchObject({ id: person.id });
    expect(await whoIs(person, elsewhere), label).toBe(null);
    const change = await at(elsewhere, person).post("/update-user", { name: "Moved" });
    expect(change.status, label).toBe(401);
    expect(await whoIs(person), label).toMatchObject({ id: person.id });
  }
}

/** The query of the URL that an answer leads to. */
export function queryOf(url: string | null): Record<string, string> {
  return Object.fromEntries(new URL(url ?? "", "http://localhost").searchParams);
}

/** Lets somebody approve a device that asks for a code, and returns what it redeems. */
export async function approveDevice(device: Browser, person: Browser) {
  type Codes = { device_code: string; user_code: string };
  const { data } = await device.post<Codes>("/device/code", { client_id: "tv" });
  const { device_code, user_code } = data;
  // The page of the code claims it.
  await person.get("/device", { query: { user_code } });
  await person.post("/device/approve", { userCode: user_code });
  const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
  return { grant_type, device_code, client_id: "tv" };
}

/** The password of whoever a world has signed up as one of several namesakes. */
export const passwordOf = (place: Place) => `password of ${place}`;

/** How a request gets into its tenant: the platform is where no request names one. */
export type Way = "its header" | "its session alone";
export const ACTORS: [place: Place, way: Way][] = [
  ["acme", "its header"],
  ["acme", "its session alone"],
  ["platform", "its session alone"],
];

/** A whole day's mail. Senders of every kind put theirs here. */
export function createMailbox() {
  const mails: Mail[] = [];
  const send: Send = (kind) => async (data) => {
    const { user, email, phoneNumber, url, token, otp, code } = data as Partial<
      Record<string, string> & { user: { id: string; email: string } }
    >;
    mails.push({
      kind,
      to: String(email ?? phoneNumber ?? user?.email),
      userId: user?.id,
      sentIn: getTenantId(),
      url: url ?? "",
      token: token ?? "",
      code: otp ?? code ?? "",
    });
  };
  return { mails, send };
}

function hostOf(hosts: Hosts | undefined, where: Where): string | undefined {
  return hosts?.names[(where ?? "platform") as Place];
}

/** The options of an instance: the mailbox and the hosts, and on top of them what the test wants. */
function furnished(
  { hosts, store, deletionByMail, plugins = [], ...options }: WorldOptions,
  send: Send,
): InstanceOptions {
  const more = options.auth ?? {};
  const auth: Partial<BetterAuthOptions> = {
    ...(hosts && answeringAt(hosts)),
    ...(store?.storage && { secondaryStorage: store.storage() }),
    ...more,
    session: { ...more.session, ...store?.session },
    emailAndPassword: { enabled: true, sendResetPassword: send("reset"), ...more.emailAndPassword },
    emailVerification: { sendVerificationEmail: send("verification"), ...more.emailVerification },
    user: {
      ...more.user,
      changeEmail: {
        enabled: true,
        sendChangeEmailConfirmation: send("change"),
        ...more.user?.changeEmail,
      },
      deleteUser: {
        enabled: true,
        ...(deletionByMail && { sendDeleteAccountVerification: send("deletion") }),
        ...more.user?.deleteUser,
      },
    },
  };
  return {
    ...(store?.database && { database: store.database }),
    ...options,
    auth,
    plugins: typeof plugins === "function" ? plugins(send) : plugins,
    tenant: { ...(hosts && { resolveTenantId: hosts.resolveTenantId }), ...options.tenant },
  };
}

function answeringAt({ names }: Hosts): Partial<BetterAuthOptions> {
  const allowedHosts = Object.values(names);
  return { baseURL: { allowedHosts, protocol: "http", fallback: `http://${names.platform}` } };
}

/** What is in the tables, read without isolation. */
function createRecords(
  { database, context }: Awaited<ReturnType<typeof createInstance>>,
  idOf: (where: Where) => string | null,
) {
  const read = async (model: string) => {
    const table = context.tables[model];
    const rows = await database.query(
      `select * from ${database.quote(table?.modelName ?? model)} order by ${database.quote("id")}`,
    );
    return { rows, tenant: table?.fields.tenantId?.fieldName };
  };
  const tables = () => Object.keys(context.tables).filter((model) => model !== "rateLimit");

  async function rowsIn(where: Where, model: string): Promise<Record<string, unknown>[]> {
    const { rows, tenant = "tenantId" } = await read(model);
    return rows.filter((row) => row[tenant] === (idOf(where) ?? ""));
  }

  async function readAll(rowsOf: (model: string) => Promise<unknown[]>) {
    const content: Record<string, unknown[]> = {};
    for (const model of tables()) content[model] = await rowsOf(model);
    return content;
  }

  return {
    /** The rows of a table that belong to a place. */
    rowsIn,
    /** Everything that a place holds. */
    everythingIn: (where: Where) => readAll((model) => rowsIn(where, model)),
    /** Everything in every table. */
    everything: () => readAll(async (model) => (await read(model)).rows),
  };
}

/** A place in the code where one request waits until the test lets it go on. */
export function gate() {
  const until = () => {
    let done = () => {};
    const promise = new Promise<void>((resolve) => {
      done = resolve;
    });
    return { promise, done };
  };
  const [opened, reached] = [until(), until()];
  const pass = () => {
    reached.done();
    return opened.promise;
  };
  return { reached: reached.promise, open: opened.done, pass };
}
