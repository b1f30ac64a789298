import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { admin, bearer } from "better-auth/plugins";
import { expect } from "vitest";
import { bySubdomain, type TenantAuthOptions } from "../../src/index";
import type { Browser, RequestOptions } from "../support/browser";
import { PASSWORD } from "../support/instance";
import { createOrdered } from "./ordered";

const PLACES = ["a", "b", "platform"] as const;
export type Place = (typeof PLACES)[number];
export type Role = "user" | "admin";

/** How requests say where they are: by name alone, or by hosts, of which the platform has one. */
export const KINDS = ["names", "hosts"] as const;
export type Kind = (typeof KINDS)[number];

const HOSTS: Record<Place, string> = {
  a: "aa.example.com",
  b: "bb.example.com",
  platform: "example.com",
};

export interface ReachOptions {
  auth?: Partial<BetterAuthOptions>;
  tenant?: TenantAuthOptions;
  plugins?: BetterAuthPlugin[];
}

function configured(kind: Kind, { auth = {}, tenant = {} }: ReachOptions) {
  if (kind === "names") return { auth, tenant };
  const baseURL = {
    allowedHosts: Object.values(HOSTS),
    protocol: "http" as const,
    fallback: "http://example.com",
  };
  const resolveTenantId = bySubdomain({ baseDomain: "example.com" });
  return { auth: { ...auth, baseURL }, tenant: { ...tenant, resolveTenantId } };
}

/** In each place a user and an admin, each signed in; the admin of the platform is an operator. */
export async function createReach(kind: Kind, options: ReachOptions = {}) {
  const { auth, tenant } = configured(kind, options);
  const plugins = [...(options.plugins ?? []), bearer(), admin({ allowImpersonatingAdmins: true })];
  const instance = await createOrdered("first", plugins, auth, tenant);
  const ids: Record<Place, string | null> = {
    a: (await instance.createTenant("aa")).id,
    b: (await instance.createTenant("bb")).id,
    platform: null,
  };

  const url = (place: Place, path: string) =>
    kind === "hosts" ? `http://${HOSTS[place]}/api/auth${path}` : path;
  const naming = (place: Place): Record<string, string> => {
    const id = ids[place];
    return kind === "hosts" || id === null ? {} : { "x-tenant-id": id };
  };

  /** A browser at a place: its requests go there, whatever cookies it has. */
  function at(place: Place, cookiesOf?: Browser) {
    const browser = cookiesOf ? cookiesOf.fork(naming(place)) : instance.browser(naming(place));
    return {
      browser,
      get: <T = Record<string, unknown>>(path: string, options?: RequestOptions) =>
        browser.get<T>(url(place, path), options),
      post: <T = Record<string, unknown>>(path: string, body?: unknown, options?: RequestOptions) =>
        browser.post<T>(url(place, path), body, options),
    };
  }

  async function settle(place: Place, role: Role) {
    const email = `${role}-${place}@example.com`;
    const body = { name: `${role} ${place}`, email, password: PASSWORD };
    const signedUp = await at(place).post<{ user: { id: string } }>("/sign-up/email", body);
    expect(signedUp.status, JSON.stringify(signedUp.data)).toBe(200);
    const { id } = signedUp.data.user;
    await instance.database.query(`update "user" set role = ? where id = ?`, [role, id]);
    // Signed in anew: a session in a storage keeps the role that it was made with.
    const { browser, post } = at(place);
    const { data } = await post<{ token: string }>("/sign-in/email", body);
    return { id, email, token: data.token, browser };
  }

  const people = {} as Record<Place, Record<Role, Awaited<ReturnType<typeof settle>>>>;
  for (const place of PLACES) {
    people[place] = { user: await settle(place, "user"), admin: await settle(place, "admin") };
  }
  return { ...instance, ids, people, at, dump: () => dump(instance) };
}

export type Reach = Awaited<ReturnType<typeof createReach>>;

/** Everything in the tables that people can be harmed through. */
async function dump({ database }: Awaited<ReturnType<typeof createOrdered>>) {
  const content: Record<string, unknown[]> = {};
  for (const table of ["user", "session", "account", "tenant", "tenantOauthConfig"]) {
    content[table] = await database.query(`select * from "${table}" order by id`);
  }
  return content;
}

export const carrying = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
