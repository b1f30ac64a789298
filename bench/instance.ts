import { createHash } from "node:crypto";
import { type BetterAuthOptions, betterAuth, type HookEndpointContext } from "better-auth";
import { getMigrations } from "better-auth/db/migration";
import { tenantAuth } from "../src/index";
import { CLIENT } from "./identity-provider";

const ORIGIN = "http://localhost:3000";
export const PASSWORD = "correct horse battery";

/** The real hash takes a tenth of a second, and everything else would drown in it. */
const cheapHash = (password: string) => createHash("sha256").update(password).digest("hex");

const cheap = {
  hash: async (password: string) => cheapHash(password),
  verify: async ({ hash, password }: { hash: string; password: string }) =>
    hash === cheapHash(password),
};

/** What all instances have in common. */
export function baseOptions(options: BetterAuthOptions) {
  return {
    baseURL: ORIGIN,
    secret: "a secret of the benchmark that is long enough",
    emailAndPassword: {
      enabled: true,
      ...(process.env.BENCH_HASH !== "real" && { password: cheap }),
    },
    socialProviders: { google: CLIENT },
    rateLimit: { enabled: false },
    logger: { disabled: true },
    telemetry: { enabled: false },
    ...options,
  } satisfies BetterAuthOptions;
}

export async function createPlain(options: BetterAuthOptions) {
  const auth = betterAuth(baseOptions(options));
  await (await getMigrations(auth.options)).runMigrations();
  return auth;
}

export async function createWithPlugin(options: BetterAuthOptions) {
  const auth = betterAuth({ ...baseOptions(options), plugins: [tenantAuth()] });
  await (await getMigrations(auth.options)).runMigrations();
  return auth;
}

/**
 * What no plugin of this kind could do without: as many endpoints, which better-auth's router takes
 * in at every request, and as many look-ups by id as a request asks for in its header.
 */
export async function createFloor(options: BetterAuthOptions) {
  const lookUp = async ({ headers, context }: HookEndpointContext) => {
    for (let left = Number(headers?.get(LOOK_UPS)); left > 0; left--) {
      const where = [{ field: "id", value: "nobody" }];
      await context.adapter.findOne({ model: "user", where, select: ["id"] });
    }
  };
  const hook = { matcher: asksForLookUps, handler: lookUp as never };
  const floor = { id: "floor", endpoints: tenantAuth().endpoints, hooks: { before: [hook] } };
  const auth = betterAuth({ ...baseOptions(options), plugins: [floor] });
  await (await getMigrations(auth.options)).runMigrations();
  return auth;
}

export const LOOK_UPS = "x-look-ups";

const asksForLookUps = ({ headers }: HookEndpointContext) => headers?.has(LOOK_UPS) ?? false;

export type Handler = (request: Request) => Promise<Response>;

interface RequestInput {
  body?: object;
  headers?: Record<string, string>;
}

/** A request as a browser sends it. */
export function request(path: string, { body, headers }: RequestInput = {}): Request {
  const url = path.startsWith("http") ? path : `${ORIGIN}/api/auth${path}`;
  if (!body) return new Request(url, { headers });
  return new Request(url, {
    method: "POST",
    headers: { "content-type": "application/json", origin: ORIGIN, ...headers },
    body: JSON.stringify(body),
  });
}

/** Sends a request and reads the answer to its end; anything but success ends the benchmark. */
export async function send(handler: Handler, request: Request): Promise<Response> {
  const response = await handler(request);
  const failed = response.status >= 400 || response.headers.get("location")?.includes("error=");
  if (failed) {
    const where = response.headers.get("location") ?? (await response.text());
    throw new Error(`${request.method} ${request.url}: ${response.status} ${where}`);
  }
  return response;
}

export function cookiesOf(response: Response): string {
  return response.headers
    .getSetCookie()
    .map((line) => line.split(";", 1)[0])
    .join("; ");
}
