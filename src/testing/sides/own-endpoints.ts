import { inputFor } from "../attempts/inputs";
import type { Endpoint } from "../instance/endpoints";
import type { IsolationOptions, Values } from "../options";
import type { Side } from "./side";

const SEARCHES = ["q", "query", "search", "term", "keyword"];

/** What one endpoint returns and another takes may have two names. */
const TOKENS = ["token", "jwt", "accessToken", "code", "key", "ticket", "secret"];

/** Tokens that a side was given. Two sides may have the same one: it names an email, and no tenant. */
export const tokensOf = ({ returned }: Side) =>
  [...returned.values()].flatMap((values) =>
    TOKENS.map((name) => String(values[name] ?? "")).filter((text) => text.length >= 20),
  );

/** Endpoints that delete what others have created: not called while test data is created. */
const TAKES_AWAY =
  /archive|cancel|clear|close|deactivate|delete|destroy|disable|end|leave|logout|purge|remove|reset|revoke|sign-out|wipe/;

export const takesAway = ({ path, method, isOwn }: Endpoint) =>
  isOwn && (method === "DELETE" || TAKES_AWAY.test(path));

/** Things of a side, and for the application's endpoints what those beside it have returned. */
export function valuesFor({ path, isOwn }: Endpoint, { things, returned, workshop }: Side): Values {
  if (!isOwn) return things;
  const searches = Object.fromEntries(SEARCHES.map((name) => [name, workshop.mark]));
  return { ...searches, ...things, ...returned.get(groupOf(path)) };
}

/** Endpoints with the same beginning are about the same things: "notes" of "/notes/get". */
const groupOf = (path: string) => path.split("/")[1] ?? "";

/** Calls the application's endpoints once on a side, those that write first, to fill it. */
export async function callOwnEndpoints(
  side: Side,
  endpoints: Endpoint[],
  { endpoints: given = {} }: IsolationOptions,
): Promise<void> {
  const { watch, noteChanges } = side.workshop;
  const isRead = ({ method }: Endpoint) => method === "GET";
  const called = endpoints
    .filter((one) => (one.isOwn || one.path in given) && !takesAway(one))
    .toSorted((one, other) => Number(isRead(one)) - Number(isRead(other)));
  for (const endpoint of called) {
    await watch.attribute(side.name);
    const input = given[endpoint.path];
    try {
      const ofSide = typeof input === "function" ? input(side.about()) : input;
      const call = inputFor(endpoint, valuesFor(endpoint, side), ofSide);
      // In a window of its own: it may sign another user in.
      const window = side.fresh();
      for (const [name, value] of side.main.browser.cookies) window.cookies.set(name, value);
      const { status, data } = await window.send(endpoint.method, call.path, call);
      if (status < 300) remember(side, endpoint.path, data);
      if (!isRead(endpoint)) await watch.noteEffects(endpoint.name);
      await noteChanges(side, endpoint);
    } catch {
      // An input made of rows that are not there yet. It is asked for again with all of them.
    }
  }
}

/** The values in a response, for the inputs of endpoints beside it: `id` is also `noteId`. */
function remember({ returned, secrets }: Side, path: string, data: unknown): void {
  const group = groupOf(path);
  const [first] = [data].flat();
  const objects = [first, ...Object.values(Object(first)).flatMap((value) => [value].flat()[0])];
  const fields = objects
    .reverse()
    .flatMap((object) => (typeof object === "object" ? Object.entries(object ?? {}) : []));
  const simple = fields.filter(([, value]) => ["string", "number"].includes(typeof value));
  const values: Values = Object.fromEntries(simple);
  const token = TOKENS.find((name) => values[name] !== undefined);
  for (const name of token ? TOKENS : []) values[name] ??= values[token as string];
  if (values.id !== undefined) values[`${group.replace(/s$/, "")}Id`] = values.id;
  secrets.push(...Object.values(values).map(String));
  returned.set(group, { ...returned.get(group), ...values });
}
