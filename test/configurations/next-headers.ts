import { register } from "node:module";

/** What Next.js keeps for a server action: the request's headers, and the cookies it will send. */
interface NextRequest {
  headers: Headers;
  cookies: { set(name: string, value: string, options: { maxAge?: number }): void };
}

const REQUEST = "better-auth-tenant:test:next-request";
const shared = globalThis as unknown as Record<symbol, NextRequest | undefined>;

const asModule = (source: string) => `data:text/javascript,${encodeURIComponent(source)}`;

/** Next.js is not installed. better-auth imports this module of it, by name and late. */
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

export interface CookieWrite {
  name: string;
  value: string;
  deleted: boolean;
}

/** Runs a function as a server action, and answers the cookies that Next.js would send. */
export async function inServerAction(run: () => Promise<unknown>): Promise<CookieWrite[]> {
  const written: CookieWrite[] = [];
  shared[Symbol.for(REQUEST)] = {
    headers: new Headers({ "next-action": "an-action" }),
    cookies: {
      set: (name, value, { maxAge }) =>
        void written.push({ name, value, deleted: value === "" || maxAge === 0 }),
    },
  };
  try {
    await run();
  } finally {
    shared[Symbol.for(REQUEST)] = undefined;
  }
  return written;
}
