import type { BetterAuthOptions } from "better-auth";
import { type BenchDatabase, createDatabase, type DatabaseKind } from "./database";
import {
  cookiesOf,
  createFloor,
  createPlain,
  createWithPlugin,
  type Handler,
  LOOK_UPS,
  PASSWORD,
  request,
  send,
} from "./instance";
import type { Comparison, Side } from "./measure";
import { type BenchStorage, mapStorage, redisStorage } from "./storage";

export interface Setting {
  database: DatabaseKind;
  redis: boolean;
}

/** How the requests of one side differ from those of another. */
interface Names {
  prefix: "" | "/tenant";
  body: { tenantId?: string };
  /** Names the tenant where the body does not. */
  header: Record<string, string>;
  lookUps: Record<string, string>;
}

const UNNAMED: Names = { prefix: "", body: {}, header: {}, lookUps: {} };

const inTenant = (tenantId: string): Names => ({
  prefix: "/tenant",
  body: { tenantId },
  header: { "x-tenant-id": tenantId },
  lookUps: {},
});

const SOCIAL = { provider: "google", callbackURL: "/welcome" };

let people = 0;
const newPerson = () => ({
  name: "Somebody",
  email: `somebody-${++people}@example.com`,
  password: PASSWORD,
});

const repeat = (count: number, make: () => Request) => Array.from({ length: count }, make);

const signUp = (handler: Handler, { prefix, body, lookUps: headers }: Names): Side => ({
  handler,
  requests: (count) =>
    repeat(count, () => {
      const person = { ...newPerson(), ...body };
      return request(`${prefix}/sign-up/email`, { body: person, headers });
    }),
});

async function signIn(handler: Handler, { prefix, body, lookUps: headers }: Names): Promise<Side> {
  const person = { ...newPerson(), ...body };
  await send(handler, request(`${prefix}/sign-up/email`, { body: person }));
  const { name: _, ...credentials } = person;
  return {
    handler,
    requests: (count) =>
      repeat(count, () => request(`${prefix}/sign-in/email`, { body: credentials, headers })),
  };
}

/** Signed in under `names`; whether the tenant is named again is the header's to say. */
async function getSession(handler: Handler, { prefix, body, header }: Names): Promise<Side> {
  const person = { ...newPerson(), ...body };
  const answer = await send(handler, request(`${prefix}/sign-up/email`, { body: person }));
  const headers = { cookie: cookiesOf(answer), ...header };
  const check = await send(handler, request("/get-session", { headers }));
  if (!(await check.text()).includes(person.email)) throw new Error("nobody is signed in");
  return {
    handler,
    requests: (count) => repeat(count, () => request("/get-session", { headers })),
  };
}

const socialStart = (handler: Handler, { prefix, body, lookUps: headers }: Names): Side => ({
  handler,
  requests: (count) =>
    repeat(count, () =>
      request(`${prefix}/sign-in/social`, { body: { ...SOCIAL, ...body }, headers }),
    ),
});

/** Somebody who has been here before comes back from the provider. */
async function callback(handler: Handler, { prefix, body, lookUps }: Names): Promise<Side> {
  const start = async () => {
    const answer = await send(
      handler,
      request(`${prefix}/sign-in/social`, { body: { ...SOCIAL, ...body } }),
    );
    const { url } = (await answer.json()) as { url: string };
    const { searchParams } = new URL(url);
    const query = new URLSearchParams({ code: "code", state: searchParams.get("state") ?? "" });
    const redirectURI = searchParams.get("redirect_uri");
    return request(`${redirectURI}?${query}`, {
      headers: { cookie: cookiesOf(answer), ...lookUps },
    });
  };
  await send(handler, await start());
  return {
    handler,
    requests: async (count) => {
      const ready: Request[] = [];
      while (ready.length < count) ready.push(await start());
      return ready;
    },
  };
}

/**
 * Instances that are the same but for their plugins, each with a database of its own, so that no
 * comparison fills the tables of another.
 */
async function createInstances(kind: DatabaseKind, options: () => BetterAuthOptions = () => ({})) {
  const databases: BenchDatabase[] = [];
  const create = async <T>(make: (options: BetterAuthOptions) => Promise<T>) => {
    const database = await createDatabase(kind);
    databases.push(database);
    return make({ ...options(), database: database.option });
  };
  const serve = ({ handler }: { handler: Handler }) => ({
    handler,
    queries: databases.at(-1)?.queries,
  });
  const plain = serve(await create(createPlain));
  const { api, ...auth } = await create(createWithPlugin);
  const installed = serve(auth);
  const floor = serve(await create(createFloor));
  return {
    plain,
    installed,
    floor,
    close: async () => {
      for (const database of databases) await database.close();
    },

    /** A tenant, with credentials of its own at the provider or without. */
    async tenant(slug: string, credentials?: "own") {
      const { id: tenantId } = await api.createTenant({ body: { name: slug, slug } });
      const google = { providerId: "google", clientId: "tenant", clientSecret: "secret" };
      const body = { tenantId, ...google };
      if (credentials) await api.registerTenantOAuthConfig({ body });
      return inTenant(tenantId);
    },
  };
}

type Instances = Awaited<ReturnType<typeof createInstances>>;
type MakeSide = (handler: Handler, names: Names) => Side | Promise<Side>;
type Server = Instances["plain"];

interface Plan {
  target: number;
  /** How many queries more it costs in a tenant that the request names. */
  moreQueries: number;
  side: MakeSide;
  instances: Instances;
  /** In which tenants, and what is said of them. */
  tenants: Record<string, Names>;
  /** Whether to show what no plugin of this kind could do without. */
  floor?: boolean;
}

const INSTALLED = 0.98;

/** In tenants; with the plugin merely installed; and what the floor is. */
async function plan(
  name: string,
  { target, moreQueries, side, instances, tenants, floor }: Plan,
): Promise<Comparison[]> {
  const make = async ({ handler, queries }: Server, names: Names): Promise<Side> => ({
    ...(await side(handler, names)),
    queries,
  });
  const theirs = await make(instances.plain, UNNAMED);
  const comparisons: Comparison[] = [];
  for (const [which, names] of Object.entries(tenants)) {
    const ours = await make(instances.installed, names);
    comparisons.push({ name: name + which, target, moreQueries, ours, theirs });
  }
  const unnamed = await make(instances.installed, UNNAMED);
  const installed = { name: `${name}, no tenant`, target: INSTALLED, moreQueries: 0 };
  comparisons.push({ ...installed, ours: unnamed, theirs });
  if (floor) {
    const headers = { [LOOK_UPS]: String(moreQueries) };
    const least = await make(instances.floor, { ...UNNAMED, lookUps: moreQueries ? headers : {} });
    const what = `idle endpoints and ${moreQueries} look-ups`;
    comparisons.push({ name: `${name}, ${what}`, ours: least, theirs });
  }
  return comparisons;
}

/** Everything that is compared, and what has to be closed afterwards. */
export async function prepareComparisons({ database, redis }: Setting) {
  const email = await createInstances(database);
  const cached = await createInstances(database, () => ({
    session: { cookieCache: { enabled: true, maxAge: 3600 } },
  }));
  const storages: BenchStorage[] = [];
  const stored = await createInstances(database, () => {
    const storage = redis ? redisStorage() : mapStorage();
    storages.push(storage);
    return { secondaryStorage: storage.storage };
  });
  const social = await createInstances(database);
  const back = await createInstances(database);

  const tenant = await email.tenant("one");
  const credentials = async (instances: Instances) => ({
    "": await instances.tenant("with-credentials", "own"),
    ", global credentials": await instances.tenant("without-credentials"),
  });
  const inTenants = { target: 0.95, moreQueries: 0, instances: email, tenants: { "": tenant } };
  const sessions = { ...inTenants, side: getSession };
  const byItself = { "": tenant, ", tenant not named": { ...tenant, header: {} } };

  const comparisons = [
    await plan("sign-up", { ...inTenants, side: signUp, floor: true }),
    await plan("sign-in", { ...inTenants, side: signIn, floor: true }),
    await plan("get-session", { ...sessions, tenants: byItself, floor: true }),
    await plan("get-session, cookie cache", {
      ...sessions,
      instances: cached,
      tenants: { "": await cached.tenant("one") },
    }),
    await plan(`get-session, ${redis ? "Redis" : "secondary storage"}`, {
      ...sessions,
      instances: stored,
      tenants: { "": await stored.tenant("one") },
    }),
    await plan("social start", {
      target: 0.9,
      side: socialStart,
      instances: social,
      moreQueries: 1,
      tenants: await credentials(social),
      floor: true,
    }),
    await plan("callback", {
      target: 0.95,
      side: callback,
      instances: back,
      moreQueries: 1,
      tenants: await credentials(back),
      floor: true,
    }),
  ].flat();
  const close = async () => {
    for (const part of [email, cached, stored, social, back, ...storages]) await part.close();
  };
  return { comparisons, close };
}
