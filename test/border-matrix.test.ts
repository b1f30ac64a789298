import { expect, onTestFinished, test, vi } from "vitest";
import { attemptsIn, problemsOf } from "./matrix/attempts";
import { endpointsOf } from "./matrix/inputs";
import type { Variant } from "./matrix/instance";
import { type Carrier, carriersOf, NOBODY, send, type Try } from "./matrix/requests";
import type { OneTime, Side } from "./matrix/sides";
import { createMatrixWorld } from "./matrix/world";
import { hear } from "./support/secret-spy";

/** The tables of plugins that are looked up by more than the id of their user. */
const scopedModels = [
  "organization",
  "member",
  "team",
  "teamMember",
  "invitation",
  "deviceCode",
  "passkey",
  "apikey",
  "twoFactor",
  "walletAddress",
];

const MINUTES = 60_000;

const variants: [string, Variant, (carrier: Carrier) => boolean][] = [
  ["every credential", { cookieCache: false, scopedModels }, () => true],
  [
    "cached sessions",
    { cookieCache: true, scopedModels },
    ({ name }) => name.startsWith("cached") || name === "every cookie",
  ],
];

test.each(variants)(
  "R3, R4, R5, R6, R8: nothing crosses the border (%s)",
  { timeout: 15 * MINUTES },
  async (title, variant, carriers) => {
    const world = await createWorld(variant);
    const endpoints = new Set<string>();
    const credentials = new Set<string>();
    const problems: string[] = [];
    let combinations = 0;
    for (const attempt of attemptsIn(world, carriers)) {
      combinations++;
      endpoints.add(`${attempt.endpoint.method} ${attempt.endpoint.path}`);
      credentials.add(attempt.oneTime?.name ?? attempt.carrier.name);
      problems.push(...(await problemsOf(world, attempt)));
    }
    console.log(
      `border matrix (${title}): ${endpoints.size} endpoints, ${credentials.size} credentials, ${combinations} combinations`,
    );
    expect(problems).toEqual([]);
    expect(endpoints.size).toBe(endpointsOf(world.instance.auth.api).length);
  },
);

test.each(["a", "platform"] as const)(
  "at home every credential of the matrix works (%s)",
  { timeout: 2 * MINUTES },
  async (name) => {
    const world = await createWorld({ cookieCache: true, scopedModels });
    const { instance, watch } = world;
    const home = world.sides[name];
    const endpoints = endpointsOf(instance.auth.api);
    const atHome = (path: string, carrier: Carrier, oneTime?: OneTime): Try => {
      const endpoint = endpoints.find((candidate) => candidate.path === path);
      if (!endpoint) throw new Error(`no such endpoint: ${path}`);
      return { endpoint, home, place: home, naming: naming(home), carrier, oneTime };
    };

    const refused: string[] = [];
    const [session = NOBODY] = carriersOf(home);
    for (const carrier of carriersOf(home)) {
      const sent = await send(instance, atHome("/get-session", carrier));
      const works = sent.body.includes(home.userId);
      // The cache is nothing without the token.
      if (works === (carrier.name === "cached session alone")) refused.push(carrier.name);
    }
    for (const oneTime of home.oneTime) {
      const carrier = oneTime.homeNeedsSession ? session : NOBODY;
      const sent = await send(instance, atHome(oneTime.home, carrier, oneTime));
      const works = sent.status < 400 && !sent.location?.includes("error=");
      if (works === Boolean(oneTime.needsSeal))
        refused.push(`${oneTime.name}: ${sent.status} ${sent.location ?? sent.body}`);
      await watch.changesOf([]);
    }
    expect(refused).toEqual([]);
  },
);

test("the input of the matrix is good enough for every endpoint", async () => {
  const { instance, sides, watch } = await createWorld({ cookieCache: false, scopedModels });
  const [carrier = NOBODY] = carriersOf(sides.a);
  const invalid: string[] = [];
  for (const endpoint of endpointsOf(instance.auth.api)) {
    const home = sides.a;
    const attempt: Try = { endpoint, home, place: home, naming: naming(home), carrier };
    const { code, body } = await send(instance, attempt);
    if (code === "VALIDATION_ERROR") invalid.push(`${endpoint.path}: ${body}`);
    await watch.changesOf([]);
  }
  expect(invalid).toEqual([]);
});

const naming = ({ tenantId }: Side) => (tenantId === null ? "nothing" : "header");

async function createWorld(variant: Variant) {
  hurry();
  // Some plugins write to the console past better-auth's logger.
  const quiet = vi
    .spyOn(console, "error")
    .mockImplementation((...args) => hear("console", ...args));
  onTestFinished(() => quiet.mockRestore());
  return createMatrixWorld(variant);
}

/** better-auth takes half a second for some answers, so that their time tells nothing. */
function hurry() {
  const original = globalThis.setTimeout;
  const hasty = vi
    .spyOn(globalThis, "setTimeout")
    .mockImplementation(((run: () => void, delay = 0, ...rest: []) =>
      original(run, delay <= 500 ? 0 : delay, ...rest)) as typeof setTimeout);
  onTestFinished(() => hasty.mockRestore());
}
