import { register } from "node:module";
import { nextCookies } from "better-auth/next-js";
import { multiSession } from "better-auth/plugins";
import { sveltekitCookies } from "better-auth/svelte-kit";
import { describe, expect, it } from "vitest";
import { PASSWORD } from "./support/instance";
import { combine } from "./support/matrix";
import { SORTS } from "./support/stores";
import { createWorld, EMAIL, type Person, type Place, shareWorld } from "./support/world";

const SESSION_COOKIE = "better-auth.session_token";

/** Cookies that a framework was handed, by name; deleted ones on their own. */
interface Handed {
  set: string[];
  deleted: string[];
}

/** Runs a function as the framework does, and answers the cookies that were handed to it. */
type Watch = (run: () => Promise<unknown>) => Promise<Handed>;

function recorder() {
  const handed: Handed = { set: [], deleted: [] };
  const set = (name: string, value: string, { maxAge }: { maxAge?: number }) =>
    void (value === "" || maxAge === 0 ? handed.deleted : handed.set).push(name);
  return { handed, cookies: { set } };
}

const REQUEST = "better-auth-tenant:test:next-request";
const shared = globalThis as unknown as Record<symbol, object | undefined>;
const asModule = (source: string) => `data:text/javascript,${encodeURIComponent(source)}`;

// Next.js is not installed. better-auth imports this module of it, by name and late.
const nextHeaders = asModule(`
  const request = () => {
    const current = globalThis[Symbol.for("${REQUEST}")];
    if (current) return current;
    throw new Error("\`cookies\` was called outside a request scope.");
  };
  export const headers = async () => request().headers;
  export const cookies = async () => request().cookies;
`);
register(
  asModule(`
    export const resolve = (specifier, context, next) =>
      specifier === "next/headers.js"
        ? { url: ${JSON.stringify(nextHeaders)}, format: "module", shortCircuit: true }
        : next(specifier, context);
  `),
);

function createNext() {
  const watch: Watch = async (run) => {
    const { handed, cookies } = recorder();
    const headers = new Headers({ "next-action": "an-action" });
    shared[Symbol.for(REQUEST)] = { headers, cookies };
    await run().finally(() => {
      shared[Symbol.for(REQUEST)] = undefined;
    });
    return handed;
  };
  return { plugin: nextCookies(), watch };
}

function createSvelteKit() {
  let current = recorder();
  type Event = Parameters<typeof sveltekitCookies>[0];
  const plugin = sveltekitCookies((() => ({ cookies: current.cookies })) as unknown as Event);
  const watch: Watch = async (run) => {
    current = recorder();
    await run();
    return current.handed;
  };
  return { plugin, watch };
}

/** The plugins that hand better-auth's cookies to a framework. */
const INTEGRATIONS = [
  { name: "nextCookies()", integrate: createNext },
  { name: "sveltekitCookies()", integrate: createSvelteKit },
];

const CASES = combine(SORTS.slice(0, 3), INTEGRATIONS).map(([store, it]) => ({ store, ...it }));

describe.each(CASES)("R5: $name behind ours, sessions in $store.name", ({ store, integrate }) => {
  const { plugin, watch } = integrate();
  const world = shareWorld({ store, plugins: [multiSession(), plugin] });
  const headersOf = (person: Person, place: Place) =>
    new Headers({ cookie: person.cookieHeader(), ...world.naming(place) });

  it("a server action or a page elsewhere does not delete the cookie", async () => {
    const jane = await world.as("jane", "acme");
    const headers = headersOf(jane, "globex");
    expect((await watch(() => world.api.getSession({ headers }))).deleted).toEqual([]);
    const tab = world.at("globex", jane);
    expect(await world.whoIs(tab)).toBe(null);
    expect(await world.whoIs(tab, "acme")).toMatchObject({ id: jane.id });
  });

  it("a server action at home deletes the cookie of a session that has ended there", async () => {
    const person = await world.signUp("acme", "leaving@example.com");
    const headers = headersOf(person, "acme");
    await world.api.revokeSessions({ headers });
    const query = { disableCookieCache: true };
    const { deleted } = await watch(() => world.api.getSession({ headers, query }));
    expect(deleted).toContain(SESSION_COOKIE);
  });

  it("a sign-in by server action sets the cookie, at our own endpoint too", async () => {
    await world.as("jane", "acme");
    const { api, ids, naming } = world;
    const body = { email: EMAIL, password: PASSWORD };
    const headers = new Headers(naming("acme"));
    expect((await watch(() => api.signInEmail({ body, headers }))).set).toContain(SESSION_COOKIE);
    const ours = { ...body, tenantId: ids.acme };
    const { set } = await watch(() =>
      api.signInEmailTenant({ body: ours, headers: new Headers() }),
    );
    expect(set).toContain(SESSION_COOKIE);
  });

  it("does not warn that it should stand last, since it does", async () => {
    const headers = headersOf(await world.as("jane", "acme"), "acme");
    await watch(() => world.api.getSession({ headers }));
    expect(world.logs.filter((line) => line.includes("should be placed last"))).toEqual([]);
  });
});

it.each(INTEGRATIONS)("R5, R11: $name before ours deletes no cookie of elsewhere", async (it) => {
  const { plugin, watch } = it.integrate();
  const { as, naming, api } = await createWorld({
    plugins: [plugin],
    arrange: (ours, [admin, ...others]) => [...others, ours, ...(admin ? [admin] : [])],
  });
  const cookie = (await as("jane", "acme")).cookieHeader();
  const headers = new Headers({ cookie, ...naming("globex") });
  expect((await watch(() => api.getSession({ headers }))).deleted).toEqual([]);
});
