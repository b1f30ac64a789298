import type { Endpoint } from "better-call";
import { expect, it, onTestFinished, vi } from "vitest";
import type * as z from "zod";
import { tenantInvitations } from "../../../src/features/invitations/index";
import { tenantAuth } from "../../../src/index";
import { createWorld } from "../../support/world";

const SIZE = 100_000;

/** One text of each kind, as long as what a caller may send by mistake or on purpose. */
const TEXTS = {
  letters: "a".repeat(SIZE),
  "letters, then a control character": `${"a".repeat(SIZE)}\u0001`,
  spaces: " ".repeat(SIZE),
  "control characters": "\u0001".repeat(SIZE),
  newlines: "\n".repeat(SIZE),
  "number signs, then a newline": `${"#".repeat(SIZE)}\n`,
  "question marks": "?".repeat(SIZE),
  slashes: "/".repeat(SIZE),
  dots: "a.".repeat(SIZE / 2),
  hyphens: "-".repeat(SIZE),
  digits: "1".repeat(SIZE),
  "combining characters": "e\u0301".repeat(SIZE / 2),
  "an address": `a@${"b.".repeat(SIZE / 2)}c`,
  "a sealed token": `tenant~${"0".repeat(SIZE)}`,
  "a page": `/?${"a&".repeat(SIZE / 2)}\n`,
  "a URL": `https://a/${"b?".repeat(SIZE / 2)}\n`,
  "percent signs": "%".repeat(SIZE),
  "halves of surrogate pairs": "\ud800".repeat(SIZE),
};

/** Far below what anything quadratic takes, and far above what the garbage collector adds. */
const MOST_MS = 400;

type Path = (string | number)[];

/** The places in a schema where text may stand, and where any object may. */
function textFields(schema: z.core.$ZodType | undefined, path: Path = []): Path[] {
  // biome-ignore lint/suspicious/noExplicitAny: each kind of schema has fields of its own.
  const def = schema?._zod.def as any;
  switch (def?.type) {
    case "string":
    case "enum":
    case "any":
      return [path];
    case "object":
      return Object.entries<z.core.$ZodType>(def.shape).flatMap(([key, field]) =>
        textFields(field, [...path, key]),
      );
    case "array":
      return textFields(def.element, [...path, 0]);
    case "union":
      return def.options.flatMap((option: z.core.$ZodType) => textFields(option, path));
    case "intersection":
      return [...textFields(def.left, path), ...textFields(def.right, path)];
    case "pipe":
      return textFields(def.in, path);
    case "optional":
    case "nullable":
    case "default":
      return textFields(def.innerType, path);
    // Any JSON object: a value in it, and a key.
    case "custom":
      return [
        [...path, "value"],
        [...path, "key", KEY],
      ];
    default:
      return [];
  }
}

const KEY = "*";

/** `{ a: [text] }` for the path `["a", 0]`. */
function withText(path: Path, text: string): unknown {
  const [first, ...rest] = path;
  if (first === undefined) return text;
  if (first === KEY) return { [text]: text };
  const value = withText(rest, text);
  return typeof first === "number" ? [value] : { [first]: value };
}

const ownEndpoints = () => {
  const plugins = [tenantAuth(), tenantInvitations({ sendInvitationEmail: async () => {} })];
  return plugins
    .flatMap(({ endpoints }) => Object.values(endpoints) as Endpoint[])
    .filter(({ path }) => path !== undefined);
};

/** What else makes a body complete, so that checks behind the first one run too. */
const REST = {
  name: "Name",
  slug: "long-input",
  email: "long@example.com",
  password: "correct horse battery",
  provider: "google",
  providerId: "google",
  clientId: "id",
  clientSecret: "secret",
  token: "token",
  id: "id",
};

/** Time of the processor: other processes may keep the machine busy. */
async function timeOf(run: () => Promise<{ status: number }>) {
  const start = process.cpuUsage();
  const { status } = await run();
  const { user, system } = process.cpuUsage(start);
  return { ms: (user + system) / 1000, status };
}

it("100 KB of any kind of character take no longer than ordinary text, on every endpoint", async () => {
  const world = await createWorld({
    plugins: [tenantInvitations({ sendInvitationEmail: async () => {} })],
    auth: { rateLimit: { enabled: false } },
  });
  // better-auth logs each address that it refuses.
  const errors = vi.spyOn(console, "error").mockImplementation(() => {});
  onTestFinished(() => errors.mockRestore());
  const operator = await world.as("admin", "platform");
  const slow: string[] = [];
  let tried = 0;
  for (const { path, options } of ownEndpoints()) {
    const { body, query, method } = options as Record<string, z.core.$ZodType> & { method: string };
    const isGet = method === "GET";
    const fields = textFields(isGet ? query : body);
    for (const field of fields) {
      // The tenant's id stands in the query of a GET, and beside the rest of a body.
      const send = (text: string) => {
        // An operator gets past the checks of rights, to what is behind them.
        const caller = /sign-|callback/.test(String(path)) ? world.at("acme") : operator;
        const input = withText(field, text) as Record<string, unknown>;
        const rest = { tenantId: world.ids.acme, ...REST };
        const address = String(path).replace(":id", "google");
        return isGet
          ? caller.get(address, { query: input as Record<string, string> })
          : caller.post(address, { ...rest, ...input });
      };
      const ordinary = await timeOf(() => send("ordinary"));
      for (const [kind, text] of Object.entries(TEXTS)) {
        let { ms, status } = await timeOf(() => send(text));
        // Once more, in case something else ran meanwhile.
        if (ms > ordinary.ms + MOST_MS) ({ ms } = await timeOf(() => send(text)));
        const where = `${path} ${field.join(".")}: ${kind}`;
        if (ms > ordinary.ms + MOST_MS) slow.push(`${where} took ${Math.round(ms)} ms`);
        if (status >= 500) slow.push(`${where} answered ${status}`);
        tried++;
      }
    }
  }
  expect(slow).toEqual([]);
  expect(tried).toBeGreaterThan(800);
}, 120_000);
