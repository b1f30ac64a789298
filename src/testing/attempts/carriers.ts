import { isolationOf } from "../../core/isolation";
import { decodeComponent } from "../../core/utils";
import type { Side } from "../sides/side";
import type { World } from "../sides/world";
import type { Carrier } from "./requests";

type Cookie = [name: string, value: string];

export const API_KEY = "API key";
export const CACHED = "cached session cookie";
export const CACHE_ALONE = "cached session alone";
export const HOST = "a user of the other side";
export const SESSION = "session cookie";
export const SIGNED_OUT: Carrier = { name: "no credential", side: undefined };

const sessionCookiesOf = ({ main: { browser, token } }: Side): Cookie[] =>
  [...browser.cookies].filter(([, value]) => decodeComponent(value).startsWith(`${token}.`));

/** The session of the main user. As `HOST`, of the side that the request goes to. */
export const sessionOf = (side: Side, name = SESSION): Carrier => ({
  name,
  side: side.name,
  cookies: sessionCookiesOf(side),
});

/** Everything that proves who a user is who is signed in at home. */
export function carriersOf({ subject }: World, home: Side): Carrier[] {
  const { name: side, apiKey, oneTimes, sessions, main } = home;
  const session = sessionCookiesOf(home);
  const all: Cookie[] = [...main.browser.cookies];
  // A value that is too long for one cookie is in several: "name.0", "name.1".
  const cached = all.filter(([name]) => name.includes("session_data"));
  const carriers: Carrier[] = [sessionOf(home)];
  if (cached.length) {
    carriers.push(
      { name: CACHED, side, cookies: [...session, ...cached] },
      // Without its token better-auth does not look at the cache, and must not start to.
      { name: CACHE_ALONE, side: undefined, cookies: cached },
    );
  }
  const everyCookie = [...oneTimes.flatMap(({ cookies = [] }) => [...cookies]), ...all];
  carriers.push({ name: "every cookie", side, cookies: everyCookie });
  carriers.push(...sessions.map((one) => ({ ...one, side })));
  const bearer = subject.plugins.find(({ id }) => id === "bearer");
  if (bearer) {
    // If the plugin requires a signature, the token as it is in the cookie.
    const [cookie] = bearer.options?.requireSignature ? session : [];
    const token = cookie ? decodeComponent(cookie[1]) : main.token;
    const headers = { authorization: `Bearer ${token}` };
    carriers.push({ name: "bearer token", side, headers, namesTenant: true });
  }
  if (apiKey) {
    // The row of an API key leads into its tenant. A shared key has none, and needs a named tenant.
    const isScoped = isolationOf(subject.ctx)?.isolatedModel("apikey") !== undefined;
    const leads = isScoped ? side : undefined;
    const headers = { "x-api-key": apiKey };
    carriers.push({ name: API_KEY, side: undefined, leads, headers, namesTenant: true });
  }
  return carriers;
}

/** The session of one side under the name that the cookie has on another. */
export function renamedCarrier(home: Side, place: Side): Carrier[] {
  const [own] = sessionCookiesOf(home);
  const [other] = sessionCookiesOf(place);
  if (!own || !other || own[0] === other[0]) return [];
  const cookies: Cookie[] = [[other[0], own[1]]];
  const name = "session cookie under the other side's name";
  return [{ name, side: home.name, cookies, namesTenant: true }];
}
