import { type BetterAuthClientOptions, createAuthClient } from "better-auth/client";
import { type TenantAuthClientOptions, tenantAuthClient } from "../../src/client";
import type { Browser } from "./browser";
import { PASSWORD } from "./instance";
import type { World } from "./world";

/** A request of the client, as it left. */
interface Sent {
  method: string;
  path: string;
  query: Record<string, string>;
  body: unknown;
  headers: Headers;
}

export interface ConnectOptions {
  tenant?: TenantAuthClientOptions;
  /** Whose cookies the client has: nobody's unless told. */
  browser?: Browser;
  /** Sent by the application with every request. */
  headers?: Record<string, string>;
}

/** better-auth's client with the plugin, talking to the handler, with a list of what it sent. */
export function connect(world: Pick<World, "browser">, options: ConnectOptions = {}) {
  const { browser = world.browser(), headers } = options;
  const sent: Sent[] = [];
  const fetchOptions: BetterAuthClientOptions["fetchOptions"] = {
    customFetchImpl: async (url, init) => {
      const request = new Request(url, init);
      const { pathname, searchParams } = new URL(request.url);
      const text = await request.clone().text();
      sent.push({
        method: request.method,
        path: pathname.replace("/api/auth", ""),
        query: Object.fromEntries(searchParams),
        body: text ? JSON.parse(text) : undefined,
        headers: request.headers,
      });
      return browser.fetch(request);
    },
    ...(headers ? { headers } : {}),
  };
  const authClient = createAuthClient({
    baseURL: "http://localhost:3000",
    plugins: [tenantAuthClient(options.tenant)],
    fetchOptions,
  });
  const last = () => {
    const request = sent.at(-1);
    if (!request) throw new Error("nothing was sent");
    return request;
  };
  return { authClient, browser, sent, last };
}

/** A client whose user may manage tenants. */
export async function asOperator(world: World, tenant: TenantAuthClientOptions = {}) {
  return connect(world, { browser: world.at("platform", await world.operator()), tenant });
}

/** What somebody signs up with. */
export const somebody = (email: string) => ({ name: "Somebody", email, password: PASSWORD });

/** A global provider; nothing is ever sent to it. */
export const google = { clientId: "global-client-id", clientSecret: "global-client-secret" };
