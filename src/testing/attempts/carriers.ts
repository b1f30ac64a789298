import { isolationOf } from "../../isolation/isolation";
import { safeDecode } from "../data/texts";
import type { Side } from "../sides/side";
import type { World } from "../sides/world";
import type { Carrier } from "./requests";

type Cookie = [name: string, value: string];

/** The cookies of a signed-in browser, by what they are for. */
function cookiesOf({ main: { browser, token } }: Side) {
  const all: Cookie[] = [...browser.cookies];
  const isToken = ([, value]: Cookie) => safeDecode(value).startsWith(`${token}.`);
  const session = all.filter(isToken);
  // What is too long for one cookie is in several: "name.0", "name.1".
  const cached = all.filter(([name]) => name.includes("session_data"));
  return { all, session, cached };
}

/** Everything that stands for somebody who is signed in at home. */
export function carriersOf(world: World, side: Side): Carrier[] {
  const { name, apiKey, oneTimes, sessions } = side;
  const { all, session, cached } = cookiesOf(side);
  const everyCookie: Cookie[] = [...oneTimes.flatMap(({ cookies = [] }) => [...cookies]), ...all];
  return [
    { name: SESSION, side: name, cookies: session },
    ...(cached.length
      ? [
          { name: "cached session cookie", side: name, cookies: [...session, ...cached] },
          // Without its token better-auth does not look at the cache; nobody must start to.
          { name: "cached session alone", side: undefined, cookies: cached },
        ]
      : []),
    { name: "every cookie", side: name, cookies: everyCookie },
    ...sessions.map((session) => ({ ...session, side: name })),
    ...(world.has("bearer")
      ? [
          {
            name: "bearer token",
            side: name,
            headers: { authorization: `Bearer ${bearerToken(world, side)}` },
            namesTenant: true,
          },
        ]
      : []),
    ...(apiKey ? [keyCarrier(world, side, apiKey)] : []),
  ];
}

/** The row of an API key leads into its tenant. A shared key has none, and needs a named tenant. */
function keyCarrier({ subject }: World, { name }: Side, apiKey: string): Carrier {
  const isScoped = isolationOf(subject.ctx)?.isolatedModel("apikey") !== undefined;
  const headers = { "x-api-key": apiKey };
  const leads = isScoped ? name : undefined;
  return { name: API_KEY, side: undefined, leads, headers, namesTenant: true };
}

/** Where the plugin requires a signature, the token as it is in the cookie: without one it is none. */
function bearerToken({ subject }: World, side: Side): string {
  const { options } = subject.plugins.find(({ id }) => id === "bearer") ?? {};
  const [cookie] = cookiesOf(side).session;
  return options?.requireSignature && cookie ? safeDecode(cookie[1]) : side.main.token;
}

export const API_KEY = "API key";
export const SESSION = "session cookie";
export const HOST = "somebody of the other side";

/** Somebody who is signed in where the request goes. */
export const hostCarrier = (side: Side): Carrier => ({
  name: HOST,
  side: side.name,
  cookies: cookiesOf(side).session,
});

/** The session of one side under the name that the cookie has on another. */
export function renamedCarrier(home: Side, place: Side): Carrier[] {
  const [own] = cookiesOf(home).session;
  const [other] = cookiesOf(place).session;
  if (!own || !other || own[0] === other[0]) return [];
  const cookies: Cookie[] = [[other[0], own[1]]];
  const name = "session cookie under the other side's name";
  return [{ name, side: home.name, cookies, namesTenant: true }];
}
