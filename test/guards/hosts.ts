import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { magicLink, oauthPopup } from "better-auth/plugins";
import { expect } from "vitest";
import {
  byDomain,
  bySubdomain,
  type ResolveTenant,
  type ResolveTenantContext,
} from "../../src/index";
import type { RequestOptions } from "../support/browser";
import { createDatabase, type TestDatabase } from "../support/database";
import { createInstance, PASSWORD } from "../support/instance";

export type Place = "acme" | "globex" | "platform";
type Hosts = Record<Place, string>;

const SUBDOMAINS: Hosts = {
  acme: "acme.example.com",
  globex: "globex.example.com",
  platform: "example.com",
};
const DOMAINS: Hosts = { acme: "login.acme.com", globex: "globex.org", platform: "example.com" };

/** A way of naming tenants by their host. */
export interface Naming {
  hosts: Hosts;
  resolveTenantId: ResolveTenant;
}

const slugOf = (hosts: Hosts, host: string | null | undefined) => {
  if (host === hosts.acme) return { slug: "acme" };
  if (host === hosts.globex) return { slug: "globex" };
  return undefined;
};

const byHeader = ({ headers, request }: ResolveTenantContext) =>
  slugOf(SUBDOMAINS, (headers ?? request?.headers)?.get("host"));

const byURL = ({ request }: ResolveTenantContext) =>
  slugOf(SUBDOMAINS, request && new URL(request.url).hostname);

export const bySubdomains: Naming = {
  hosts: SUBDOMAINS,
  resolveTenantId: bySubdomain({ baseDomain: "example.com" }),
};

export const byDomains: Naming = {
  hosts: DOMAINS,
  resolveTenantId: byDomain({
    "login.acme.com": { slug: "acme" },
    "globex.org": { slug: "globex" },
  }),
};

/** Resolvers that let the request speak on the platform's hosts, as an application may write them. */
export const byOwnFunctions: Record<string, Naming> = {
  "a function that looks at the host header": { hosts: SUBDOMAINS, resolveTenantId: byHeader },
  "a function that looks at the URL": { hosts: SUBDOMAINS, resolveTenantId: byURL },
};

type Base = Pick<BetterAuthOptions, "baseURL" | "trustedOrigins">;
const WILDCARDS = ["http://*.example.com", "http://*.acme.com", "http://globex.org", "myapp://"];

/** Ways of telling better-auth that it answers on many hosts. */
export const BASES: Record<string, Base> = {
  "a static baseURL and wildcards": { baseURL: "http://example.com", trustedOrigins: WILDCARDS },
  "trustedOrigins as a function": {
    baseURL: "http://example.com",
    trustedOrigins: async () => WILDCARDS,
  },
  allowedHosts: {
    baseURL: {
      allowedHosts: ["example.com", "*.example.com", "*.acme.com", "globex.org"],
      protocol: "http",
      fallback: "http://example.com",
    },
    trustedOrigins: ["myapp://"],
  },
};

/** Every host there is: a mistake, but one that people make. */
export const EVERYTHING: Base = {
  baseURL: "http://example.com",
  trustedOrigins: ["http://*", "https://*", "http://*:*", "https://*:*"],
};

export interface Mail {
  kind: string;
  url: string;
}

function mailing(mails: Mail[]) {
  const put = (kind: string) => async (data: { url: string }) =>
    void mails.push({ kind, url: data.url });
  const auth = {
    emailAndPassword: { enabled: true, sendResetPassword: put("reset") },
    emailVerification: { sendVerificationEmail: put("verification") },
    user: {
      changeEmail: { enabled: true },
      deleteUser: { enabled: true, sendDeleteAccountVerification: put("deletion") },
    },
    socialProviders: { google: { clientId: "global-client", clientSecret: "global-secret" } },
  } satisfies Partial<BetterAuthOptions>;
  const plugins: BetterAuthPlugin[] = [
    magicLink({ sendMagicLink: put("magic link") }),
    oauthPopup(),
  ];
  return { auth, plugins };
}

export type HostWorld = Awaited<ReturnType<typeof createHostWorld>>;

/** Acme, Globex and the platform, each at its host. With a database, the caller closes it. */
export async function createHostWorld(naming: Naming, base: Base, given?: TestDatabase) {
  const mails: Mail[] = [];
  const { auth, plugins } = mailing(mails);
  const database = given ?? (await createDatabase("sqlite"));
  const instance = await createInstance({
    database,
    plugins,
    tenant: { resolveTenantId: naming.resolveTenantId },
    auth: { ...auth, ...base },
  });
  const ids = {
    acme: (await instance.createTenant("acme")).id,
    globex: (await instance.createTenant("globex")).id,
    platform: null,
  };
  const { hosts } = naming;
  const origin = (place: Place) => `http://${hosts[place]}`;
  const at = (place: Place, path: string) => `${origin(place)}/api/auth${path}`;
  /** A browser whose requests say their host, as every browser's do. */
  const browser = (place: Place) => instance.browser({ host: hosts[place] });
  let count = 0;

  async function signUp(place: Place, email = `somebody-${++count}@example.com`) {
    const person = browser(place);
    const body = { name: "Somebody", email, password: PASSWORD };
    const { data, status } = await person.post<{ user: { id: string; tenantId: string | null } }>(
      at(place, "/sign-up/email"),
      body,
    );
    expect([status, data.user?.tenantId], JSON.stringify(data)).toEqual([200, ids[place]]);
    mails.length = 0;
    return {
      id: data.user.id,
      email,
      browser: person,
      post: (path: string, sent: unknown, options?: RequestOptions) =>
        person.post(at(place, path), sent, options),
      get: (path: string, options?: RequestOptions) => person.get(at(place, path), options),
    };
  }

  return { instance, database, mails, ids, hosts, origin, at, browser, signUp };
}
