import { inspect } from "node:util";
import type { BetterAuthOptions } from "better-auth";
import { onTestFinished } from "vitest";
import type { TestDatabase } from "./database";

/** An instance that is listened to, and the client secrets that it was given. */
interface Watched {
  database: TestDatabase;
  /** The table of configs, whatever it is called. */
  table: string;
  secrets: Set<string>;
  clientIds: Set<string>;
}

interface Heard {
  where: string;
  read(): string | Promise<string>;
}

interface Auth {
  handler(request: Request): Promise<Response>;
  api: object;
  options: BetterAuthOptions;
}

const watched = new Set<Watched>();
let heard: Heard[] = [];

/** Shorter ones are words that turn up anywhere. */
const SHORTEST = 8;
const CIPHER = /^(\$ba\$\d+\$)?[0-9a-f]{80,}$/;
const METHODS = ["debug", "error", "info", "log", "warn"] as const;

/** Until there is a secret there is nothing to listen for. */
const hasSecrets = () => [...watched].some(({ secrets }) => secrets.size > 0);

/** Notes what somebody could read: an answer, a line of a log, the console. */
export function hear(where: string, ...parts: unknown[]): void {
  if (!hasSecrets()) return;
  const line = parts.map((part) =>
    typeof part === "string" ? part : inspect(part, { depth: 8, maxStringLength: null }),
  );
  heard.push({ where, read: () => line.join(" ") });
}

/** Providers of better-auth write to the console, past the logger of their instance. */
export function listenTo(target: Pick<Console, (typeof METHODS)[number]>): void {
  for (const method of METHODS) {
    const write = target[method];
    if (write.name === "listening") continue;
    const listening = (...args: unknown[]) => {
      hear("console", ...args);
      write(...args);
    };
    target[method] = listening;
  }
}

/** Listens to all that an instance answers, and remembers the secrets that it is told. */
export function watchSecrets(auth: Auth, database: TestDatabase, table: string): void {
  const entry: Watched = { database, table, secrets: new Set(), clientIds: new Set() };
  watched.add(entry);
  try {
    onTestFinished(() => void watched.delete(entry));
  } catch {
    // Shared by the tests of a file: `forgetSecrets` ends it.
  }
  for (const told of Object.values(auth.options.socialProviders ?? {})) remember(entry, told);
  listenToRequests(auth, entry);
  listenToCalls(auth, entry);
}

function listenToRequests(auth: Auth, entry: Watched): void {
  const { handler } = auth;
  auth.handler = async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname.includes("/oauth-config/") && request.body) {
      remember(
        entry,
        await request
          .clone()
          .json()
          .catch(() => null),
      );
    }
    const response = await handler(request);
    if (hasSecrets()) {
      hear(`answer of ${pathname}`, [...response.headers].join("\n"));
      hearBody(`answer of ${pathname}`, response);
    }
    return response;
  };
}

/** Listens while somebody reads the body: a copy of each would slow down every test. */
function hearBody(where: string, response: Response): void {
  const readOnce = response.text.bind(response);
  let known: string | undefined;
  response.text = async () => {
    known = await readOnce();
    return known;
  };
  response.json = async () => JSON.parse(await response.text());
  // Bodies that nobody reads are read in the end.
  heard.push({ where, read: () => known ?? (response.bodyUsed ? "" : readOnce()) });
}

/** What the server's own code is answered. */
function listenToCalls({ api }: Auth, entry: Watched): void {
  const calls = api as Record<string, (call?: { body?: unknown }) => Promise<unknown>>;
  for (const [name, call] of Object.entries(calls)) {
    if (!name.includes("OAuthConfig")) continue;
    calls[name] = new Proxy(call, {
      apply: async (target, self, args: [{ body?: unknown }?]) => {
        remember(entry, args[0]?.body);
        const answer = Reflect.apply(target, self, args) as Promise<unknown>;
        await answer.then(
          (result) => hear(`answer of ${name}`, result),
          (error) => hear(`error of ${name}`, error),
        );
        return answer;
      },
    });
  }
}

function remember({ secrets, clientIds }: Watched, told: unknown): void {
  const { clientId, clientSecret } = (told ?? {}) as Record<string, unknown>;
  clientIds.add(String(clientId));
  if (typeof clientSecret === "string" && clientSecret.length >= SHORTEST)
    secrets.add(clientSecret);
}

/** Where secrets have turned up, clear or as they are stored, since this was last asked. */
export async function findLeaks(): Promise<string[]> {
  const texts = await Promise.all(
    heard.splice(0).map(async ({ where, read }) => ({ where, text: await read() })),
  );
  if (!hasSecrets()) return [];
  const whole = texts.map(({ text }) => text).join("\n");
  const leaks = (kind: string, secret: string) => {
    const found = whole.includes(secret) ? texts.filter(({ text }) => text.includes(secret)) : [];
    return found.map(({ where }) => `${kind} in the ${where}`);
  };
  const found = [...watched].flatMap(({ secrets, clientIds }) =>
    // A few tests have a client whose id is its secret, which is no leak.
    [...secrets].filter((secret) => !clientIds.has(secret)).flatMap(spellings),
  );
  // Without a long run of digits there is no cipher text, and no need to read what is stored.
  const hasCiphers = /[0-9a-f]{80}/.test(whole);
  const stored = hasCiphers ? (await Promise.all([...watched].map(cipherTexts))).flat() : [];
  return [
    ...found.flatMap((secret) => leaks("a secret", secret)),
    ...stored.flatMap((cipher) => leaks("cipher text", cipher)),
  ];
}

/** As it is, inside of JSON, and in an address. */
const spellings = (secret: string) => [
  ...new Set([secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)]),
];

async function cipherTexts({ database, table }: Watched): Promise<string[]> {
  // Some tests have no such table, or have closed the database.
  const rows = await database.query(`select * from ${database.quote(table)}`).catch(() => []);
  return rows.flatMap((row) => Object.values(row).map(String)).filter((text) => CIPHER.test(text));
}

/** Before the next file. */
export function forgetSecrets(): void {
  watched.clear();
  heard = [];
}
