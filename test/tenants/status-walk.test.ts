import { expect, onTestFinished, test, vi } from "vitest";
import { STORAGE_KINDS } from "../configurations/storages";
import type { Variant } from "../matrix/instance";
import {
  type Carrier,
  carriersOf,
  NOBODY,
  namingAtHome,
  namingsFor,
  type Sent,
  send,
  type Try,
} from "../matrix/requests";
import type { OneTime } from "../matrix/sides";
import { createMatrixWorld, type MatrixWorld } from "../matrix/world";
import { hear } from "../support/secret-spy";

const [storage] = STORAGE_KINDS;

const VARIANTS: [string, Variant][] = [
  ["sessions in the database", {}],
  ["sessions in encrypted cookies", { cookieCache: "jwe" }],
  ["sessions in secondary storage", storage ? { storage } : {}],
  ["tenants by host, cached sessions", { hosts: true, cookieCache: "compact" }],
];

/** Ways in that have to be among those that are found, or the walk proves nothing. */
const WAYS_IN = [
  "/device/token",
  "/magic-link/verify",
  "/passkey/verify-authentication",
  "/phone-number/verify",
  "/sign-in/anonymous",
  "/sign-in/email",
  "/sign-in/email-otp",
  "/sign-in/phone-number",
  "/sign-in/username",
  "/sign-up/email",
  "/siwe/verify",
  "/tenant/callback/:id",
  "/tenant/sign-in/email",
  "/tenant/sign-in/social",
  "/tenant/sign-up/email",
  "/two-factor/verify-backup-code",
  "/two-factor/verify-otp",
  "/verify-email",
];

const isFull = process.env.MATRIX === "full";

test.each(isFull ? VARIANTS : VARIANTS.filter((_, index) => index % 2 === 0))(
  "R10: no endpoint makes a session in a suspended tenant, and each is told (%s)",
  { timeout: 600_000 },
  async (title, variant) => {
    const world = await createWorld(variant);
    const tenantId = String(world.sides.a.tenantId);
    const setStatus = (status: "active" | "suspended") =>
      world.instance.api.updateTenant({ body: { tenantId, status } });
    const ways = new Set<string>();
    const problems: string[] = [];
    for (const attempt of attemptsAt(
      world,
      VARIANTS.findIndex(([name]) => name === title),
    )) {
      const name = titleOf(attempt);
      await setStatus("suspended");
      if (attempt.carrier === NOBODY) {
        // The same at the tenant as it is afterwards, when nobody is signed in any more.
        await setStatus("active");
        const control = await send(world.instance, attempt);
        if (await makesSession(world, control)) ways.add(attempt.endpoint.path);
        await world.watch.changesOf([]);
        await setStatus("suspended");
      }
      const users = await world.instance.rows("user");
      const sent = await send(world.instance, attempt);
      if (!isTold(attempt, sent)) problems.push(`${name}: ${sent.status} ${sent.body}`);
      if (await makesSession(world, sent)) problems.push(`${name}: a session`);
      if ((await world.instance.rows("user")) > users) problems.push(`${name}: a user`);
      await world.watch.changesOf([]);
    }
    expect(problems).toEqual([]);
    expect([...ways].sort()).toEqual(expect.arrayContaining(WAYS_IN));
  },
);

/** Every endpoint, with every credential of the tenant's people, and what is shown once. */
function* attemptsAt({ endpoints, sides, instance }: MatrixWorld, offset: number): Generator<Try> {
  const { a: home } = sides;
  // The state is put back after each request, and what is in it may have been ended.
  const carriers: Carrier[] = [NOBODY, ...carriersOf(home)];
  for (const [index, endpoint] of endpoints.entries()) {
    const at = { endpoint, home, place: home, naming: namingAtHome(home) };
    const once = [...home.oneTime, ...newcomers].filter(({ home }) => home === endpoint.path);
    // All of it takes minutes; without it, each variant tries credentials at other endpoints.
    const isTried = isFull || (index + offset) % 4 === 0;
    for (const carrier of isTried ? carriers : [NOBODY]) yield { ...at, carrier };
    for (const oneTime of once) {
      const carrier = oneTime.homeNeedsSession ? carriers[1] : NOBODY;
      for (const naming of instance.addressOf("aa").host ? [] : namingsFor(home, home, endpoint)) {
        yield { ...at, naming, oneTime, carrier: carrier ?? NOBODY };
      }
      yield { ...at, oneTime, carrier: carrier ?? NOBODY };
      // A link leads into its tenant without a word about it.
      if (oneTime.sealed) yield { ...at, naming: "nothing", oneTime, carrier: NOBODY };
    }
  }
}

/** Somebody who is not there yet. */
const newcomers: OneTime[] = ["/sign-up/email", "/tenant/sign-up/email"].map((path) => {
  const values = { email: "newcomer@example.com", username: "newcomer" };
  return { name: "newcomer", values, home: path };
});

const titleOf = ({ endpoint, naming, carrier, oneTime }: Try) =>
  `${endpoint.method} ${endpoint.path} (${naming}, ${oneTime?.name ?? carrier.name})`;

const isOwn = (path: string) => path.startsWith("/tenant/") && !/\/sign-(in|up)\//.test(path);

function isTold({ endpoint: { path, method }, carrier, oneTime }: Try, sent: Sent): boolean {
  const isRefused = sent.status === 403 && sent.code === "TENANT_SUSPENDED";
  if (path === "/get-session") return sent.body === "null" || sent.status === 405;
  if (path === "/tenant/callback/:id") {
    // A provider's form is turned into a GET before anything else.
    if (method === "POST") return sent.status === 302 || isRefused;
    return sent.location?.includes(oneTime ? "error=tenant_suspended" : "error=") === true;
  }
  // These run on the platform: better-auth's own callback, and management, which names a target.
  // There the tenant's own people are nobody, and their keys are none.
  const onPlatform = path === "/callback/:id" || isOwn(path);
  if (onPlatform && carrier.name === "API key") return sent.status === 401;
  if (path === "/callback/:id") return sent.status === 302;
  if (path === "/tenant/sign-in-methods") return sent.body.includes('"status":"suspended"');
  return isOwn(path) ? sent.status === 401 : isRefused;
}

/** Whether a cookie of a session was set, or a session is kept where none was. */
async function makesSession({ instance, sides }: MatrixWorld, { told }: Sent) {
  if (/session_token=[^;\s]/.test(told)) return true;
  const { tenantId } = sides.a;
  const kept = [...instance.entries.values()].filter((value) => {
    const label = value.includes("tenantAuth") ? JSON.parse(value).tenantAuth : undefined;
    return label?.session && label.tenantId === tenantId;
  });
  if (kept.length > 0 || !instance.context.tables.session) return kept.length > 0;
  return (await instance.rows("session", '"tenantId" = ?', [tenantId])) > 0;
}

async function createWorld(variant: Variant) {
  const original = globalThis.setTimeout;
  // better-auth takes half a second for some answers, so that their time tells nothing.
  const hasty = vi
    .spyOn(globalThis, "setTimeout")
    .mockImplementation(((run: () => void, delay = 0, ...rest: []) =>
      original(run, delay <= 500 ? 0 : delay, ...rest)) as typeof setTimeout);
  const quiet = vi
    .spyOn(console, "error")
    .mockImplementation((...args) => hear("console", ...args));
  onTestFinished(() => {
    hasty.mockRestore();
    quiet.mockRestore();
  });
  return createMatrixWorld(variant);
}
