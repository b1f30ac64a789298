import { nextCookies } from "better-auth/next-js";
import { multiSession } from "better-auth/plugins";
import { sveltekitCookies } from "better-auth/svelte-kit";
import { describe, expect, it } from "vitest";
import { createPlaces, EMAIL } from "../plugins/places";
import { mapStorage } from "../sessions/stores";
import { type InstanceOptions, PASSWORD } from "../support/instance";
import { type CookieWrite, inServerAction } from "./next-headers";

const SESSION_COOKIE = "better-auth.session_token";

/** The plugins that hand better-auth's cookies to a framework, and how to see what they hand on. */
const INTEGRATIONS = [
  ["nextCookies()", () => ({ plugin: nextCookies(), watch: inServerAction })],
  ["sveltekitCookies()", createSvelteKit],
] as const;

function createSvelteKit() {
  let written: CookieWrite[] = [];
  const set = (name: string, value: string, { maxAge }: { maxAge?: number }) =>
    void written.push({ name, value, deleted: value === "" || maxAge === 0 });
  type Event = Parameters<typeof sveltekitCookies>[0];
  const plugin = sveltekitCookies((() => ({ cookies: { set } })) as unknown as Event);
  const watch: typeof inServerAction = async (run) => {
    written = [];
    await run();
    return written;
  };
  return { plugin, watch };
}

const STORES: [name: string, auth: () => NonNullable<InstanceOptions["auth"]>][] = [
  ["the database", () => ({})],
  ["secondary storage", () => ({ secondaryStorage: mapStorage().storage })],
  ["a cached cookie", () => ({ session: { cookieCache: { enabled: true, maxAge: 300 } } })],
];

describe.each(INTEGRATIONS)("R5: %s behind ours", (_, integrate) => {
  describe.each(STORES)("with sessions in %s", (_, auth) => {
    async function createActions() {
      const { plugin, watch } = integrate();
      const places = await createPlaces([multiSession(), plugin], { auth: auth() });
      const { instance, naming } = places;
      const person = await places.signUp("a");
      const headers = (place: "a" | "b") =>
        new Headers({ cookie: person.browser.cookieHeader(), ...naming(place) });
      const deleted = async (run: () => Promise<unknown>) =>
        (await watch(run)).filter((write) => write.deleted).map(({ name }) => name);
      return { ...places, ...instance, person, headers, watch, deleted };
    }

    it("a server action at B does not delete the cookie of A", async () => {
      const { api, headers, deleted } = await createActions();
      expect(await deleted(() => api.getSession({ headers: headers("b") }))).toEqual([]);
    });

    it("the page at B does not delete it either", async () => {
      const { naming, person, whoIs } = await createActions();
      const tab = person.browser.fork(naming("b"));
      expect((await tab.get("/get-session")).data).toBe(null);
      expect(await whoIs(tab, "a")).toMatchObject({ id: person.user.id });
    });

    it("a server action at A deletes the cookie of a session that has ended there", async () => {
      const { api, headers, deleted } = await createActions();
      await api.revokeSessions({ headers: headers("a") });
      const query = { disableCookieCache: true };
      const gone = await deleted(() => api.getSession({ headers: headers("a"), query }));
      expect(gone).toContain(SESSION_COOKIE);
    });

    it("a sign-in by server action sets the cookie", async () => {
      const { api, naming, watch } = await createActions();
      const body = { email: EMAIL, password: PASSWORD };
      const run = () => api.signInEmail({ body, headers: new Headers(naming("a")) });
      const names = (await watch(run)).map(({ name }) => name);
      expect(names).toContain(SESSION_COOKIE);
    });

    it("a sign-in at our own endpoint by server action sets it too", async () => {
      const { api, ids, watch } = await createActions();
      const body = { email: EMAIL, password: PASSWORD, tenantId: ids.a ?? "" };
      const written = await watch(() => api.signInEmailTenant({ body, headers: new Headers() }));
      expect(written.map(({ name }) => name)).toContain(SESSION_COOKIE);
    });

    it("does not warn that it should stand last, since it does", async () => {
      const { api, headers, watch, logs } = await createActions();
      await watch(() => api.getSession({ headers: headers("a") }));
      expect(logs.filter((line) => line.includes("should be placed last"))).toEqual([]);
    });
  });
});

describe.each(INTEGRATIONS)("R11: %s before ours", (_, integrate) => {
  it("R5: a server action at B does not delete the cookie of A", async () => {
    const { plugin, watch } = integrate();
    const { signUp, naming, instance } = await createPlaces([plugin], {
      arrange: (ours, [admin, ...others]) => [...others, ours, ...(admin ? [admin] : [])],
    });
    const { browser } = await signUp("a");
    const headers = new Headers({ cookie: browser.cookieHeader(), ...naming("b") });
    const written = await watch(() => instance.api.getSession({ headers }));
    expect(written.filter(({ deleted }) => deleted)).toEqual([]);
  });
});
