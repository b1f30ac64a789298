import { createAuthClient } from "better-auth/client";
import { type TenantAuthClientOptions, tenantAuthClient } from "../../src/client";
import type { Browser } from "./browser";
import { PASSWORD } from "./instance";
import type { World } from "./world";

interface ConnectOptions {
  tenant?: TenantAuthClientOptions;
  /** Whose cookies the client has: nobody's unless told. */
  browser?: Browser;
  /** Sent by the application with every request. */
  headers?: Record<string, string>;
}

/** better-auth's client with the plugin, talking to the handler, with a list of what it sent. */
export function connect(world: Pick<World, "browser">, options: ConnectOptions = {}) {
  const { browser = world.browser(), headers = {} } = options;
  const sent: Awaited<ReturnType<typeof describe>>[] = [];
  const customFetchImpl = async (url: string | URL | Request, init?: RequestInit) => {
    const request = new Request(url, init);
    sent.push(await describe(request.clone()));
    return browser.fetch(request);
  };
  const authClient = createAuthClient({
    baseURL: "http://localhost:3000",
    plugins: [tenantAuthClient(options.tenant)],
    fetchOptions: { customFetchImpl, headers },
  });
  const last = () => {
    const request = sent.at(-1);
    if (!request) throw new Error("nothing was sent");
    return request;
  };
  return { authClient, browser, sent, last };
}

/** A request of the client, as it left. */
async function describe(request: Request) {
  const { pathname, searchParams } = new URL(request.url);
  const text = await request.text();
  return {
    method: request.method,
    path: pathname.replace("/api/auth", ""),
    query: Object.fromEntries(searchParams),
    body: text ? JSON.parse(text) : undefined,
    headers: request.headers,
  };
}

/** What somebody signs up with. */
export const somebody = (email: string) => ({ name: "Somebody", email, password: PASSWORD });
