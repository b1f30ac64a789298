import { createHook } from "node:async_hooks";
import { expect, it, onTestFinished } from "vitest";
import type { Browser } from "./support/browser";
import { createDatabase } from "./support/database";
import { createInstance, createPlainInstance, PASSWORD } from "./support/instance";

/*
 * How many promises a request makes, more than better-auth alone. The number is exact, where a time
 * is not: see `npm run bench` for those.
 */

/** The promises that are created while a function runs. */
async function promisesIn(run: () => Promise<unknown>): Promise<number> {
  let count = 0;
  const hook = createHook({
    init: (_id, type) => {
      if (type === "PROMISE") count++;
    },
  });
  hook.enable();
  await run();
  hook.disable();
  return count;
}

/** The least of several runs: the first ones prepare statements and fill caches. */
async function least(run: (round: number) => Promise<unknown>): Promise<number> {
  const counts: number[] = [];
  for (let round = 0; round < 5; round++) counts.push(await promisesIn(() => run(round)));
  return Math.min(...counts);
}

/** `prefix` is "/tenant" for tenant routes, which name the tenant in their body. */
async function measure(browser: () => Browser, prefix = "", tenantId?: string) {
  const person = (name: string) => ({
    email: `${name}@example.com`,
    name,
    password: PASSWORD,
    ...(tenantId && { tenantId }),
  });
  const { name: _, ...credentials } = person("me");
  const signUp = (name: string) => browser().post(`${prefix}/sign-up/email`, person(name));
  const signIn = (window: Browser) => window.post(`${prefix}/sign-in/email`, credentials);
  const me = browser();
  await signUp("me");
  await signIn(me);
  return {
    "get-session": await least(() => me.get("/get-session")),
    "sign-in": await least(() => signIn(browser())),
    "sign-up": await least((round) => signUp(`user-${round}`)),
  };
}

it("a request makes few promises more than in better-auth alone", async () => {
  const auth = { logger: { level: "error" } } as const;
  const plain = await createDatabase("sqlite");
  onTestFinished(() => plain.close());
  const alone = await measure((await createPlainInstance(plain, auth)).browser);
  const { browser, createTenant } = await createInstance({ auth });
  const platform = await measure(browser);
  const tenant = await measure(browser, "/tenant", (await createTenant()).id);
  const limits = { platform: [18, 30, 40], tenant: [18, 40, 60] };
  for (const [place, counts] of Object.entries({ platform, tenant })) {
    const more = Object.entries(counts).map(([name, count]) => count - alone[name as "sign-in"]);
    const isWithin = more.map((count, index) => count <= (limits[place as "tenant"][index] ?? 0));
    expect([place, more, isWithin]).toEqual([place, more, [true, true, true]]);
  }
});
