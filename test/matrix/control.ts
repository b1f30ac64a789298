import { type Carrier, carriersOf, NOBODY, namingAtHome, send, type Try } from "./requests";
import type { OneTime, Side } from "./sides";
import type { MatrixWorld } from "./world";

/** The credentials that do not work at home, where every one of them should. */
export async function refusedAtHome(world: MatrixWorld, home: Side): Promise<string[]> {
  return [
    ...(await refusedSessions(world, home)),
    ...(await refusedCaches(world, home)),
    ...(await refusedOneTimes(world, home)),
  ];
}

async function refusedSessions(world: MatrixWorld, home: Side): Promise<string[]> {
  const refused: string[] = [];
  for (const carrier of carriersOf(home)) {
    const sent = await send(world.instance, atHome(world, home, "/get-session", carrier));
    const works = sent.body.includes(home.userId);
    // The cache is nothing without the token.
    if (works === (carrier.name === "cached session alone"))
      refused.push(`${carrier.name}: ${sent.body}`);
  }
  return refused;
}

/** A cached session speaks for itself: it is good without the one that it was made from. */
async function refusedCaches(world: MatrixWorld, home: Side): Promise<string[]> {
  const refused: string[] = [];
  await world.watch.forgetSessions();
  for (const carrier of carriersOf(home)) {
    if (carrier.name !== "cached session cookie") continue;
    const sent = await send(world.instance, atHome(world, home, "/get-session", carrier));
    if (!sent.body.includes(home.userId)) refused.push(`${carrier.name}, not from the cache`);
  }
  await world.watch.changesOf([]);
  return refused;
}

async function refusedOneTimes(world: MatrixWorld, home: Side): Promise<string[]> {
  const refused: string[] = [];
  const [session = NOBODY] = carriersOf(home);
  for (const oneTime of home.oneTime) {
    const carrier = oneTime.homeNeedsSession ? session : NOBODY;
    const sent = await send(world.instance, atHome(world, home, oneTime.home, carrier, oneTime));
    const works = sent.status < 400 && !sent.location?.includes("error=");
    if (works === Boolean(oneTime.needsSeal))
      refused.push(`${oneTime.name}: ${sent.status} ${sent.location ?? sent.body}`);
    await world.watch.changesOf([]);
  }
  return refused;
}

function atHome(
  { endpoints }: MatrixWorld,
  home: Side,
  path: string,
  carrier: Carrier,
  oneTime?: OneTime,
): Try {
  const endpoint = endpoints.find((candidate) => candidate.path === path);
  if (!endpoint) throw new Error(`no such endpoint: ${path}`);
  return { endpoint, home, place: home, naming: namingAtHome(home), carrier, oneTime };
}
