import type { AuthContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { bearer, magicLink } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { checkIsolation } from "../../src/testing/index";
import { createInstance, type Instance, type InstanceOptions } from "../support/instance";
import { mapStorage } from "../support/stores";

const LONG = { timeout: 120_000 };

const check = ({ auth }: Pick<Instance, "auth">, paths: string[]) =>
  checkIsolation(auth, { extent: { paths }, progress: false });

/** Nothing leaks, and everything is tried. */
async function holds(options: InstanceOptions, ...paths: string[]) {
  const { leaks, failures, untried } = await check(await createInstance(options), paths);
  expect({ leaks, failures, untried }).toEqual({ leaks: [], failures: [], untried: [] });
}

describe("sessions in secondary storage alone, and cached in cookies", () => {
  const stored = (version: () => string): InstanceOptions => ({
    auth: {
      secondaryStorage: mapStorage().storage,
      session: { cookieCache: { enabled: true, version } },
    },
  });

  it("are tried", LONG, () =>
    holds(
      stored(() => "1"),
      "/get-session",
    ),
  );

  it("are reported as untried if better-auth ignores the cached cookie", LONG, async () => {
    let version = 0;
    const everNew = await createInstance(stored(() => String(++version)));
    const { untried } = await check(everNew, ["/get-session"]);
    expect(untried).toMatchObject([
      { what: "cached session cookie of a", reason: expect.stringContaining("is not looked at") },
      {
        what: "cached session cookie of platform",
        reason: expect.stringContaining("is not looked at"),
      },
    ]);
  });
});

it("sends bearer tokens with a signature where they need one", LONG, () =>
  holds({ plugins: [bearer({ requireSignature: true })] }, "/sign-up/", "/get-session"),
);

describe("tasks in the background", () => {
  const advanced = { backgroundTasks: { handler: () => {} } };
  const mails = { enabled: true, sendResetPassword: async () => {} };

  it("bring the mails that are tried", LONG, () =>
    holds(
      { auth: { advanced, emailAndPassword: mails } },
      "/request-password-reset",
      "/reset-password",
    ),
  );

  /** Does something in the background of every answer. */
  const behind = (task: (context: AuthContext) => Promise<unknown>): InstanceOptions => {
    const handler = createAuthMiddleware(async ({ context }) =>
      context.runInBackground(task(context as unknown as AuthContext)),
    );
    const hooks = { after: [{ matcher: () => true, handler }] };
    return { plugins: [{ id: "behind", hooks }] };
  };

  it("count as done by the request that has started them", LONG, () => {
    const note = async ({ internalAdapter }: AuthContext) => {
      await new Promise((done) => setTimeout(done, 20));
      const expiresAt = new Date(Date.now() + 60_000);
      await internalAdapter.createVerificationValue({ identifier: "i", value: "v", expiresAt });
    };
    return holds(behind(note), "/ok", "/sign-up/");
  });

  it("hold up a few requests, where they never end", LONG, async () => {
    const instance = await createInstance(behind(() => new Promise(() => {})));
    const { counts, milliseconds } = await check(instance, ["/get-session"]);
    expect(counts.attempts).toBeGreaterThan(20);
    expect(milliseconds).toBeLessThan(15_000);
  });
});

it("says what to do about a hook that refuses sessions", LONG, async () => {
  const session = { create: { before: async () => false as const } };
  const instance = await createInstance({ auth: { databaseHooks: { session } } });
  const report = check(instance, ["/get-session"]);
  await expect(report).rejects.toThrow("`databaseHooks.session.create.before` returned false");
  expect(await instance.rows("tenant")).toBe(0);
});

describe("a platform with a policy", () => {
  it("that lets nobody sign up is tried all the same", LONG, () =>
    holds(
      { tenant: { platformPolicy: { signUp: "closed" } } },
      "/sign-up/",
      "/sign-in/email",
      "/get-session",
    ),
  );

  it("without passwords needs a word", LONG, async () => {
    const closed = await createInstance({
      plugins: [magicLink({ sendMagicLink: async () => {} })],
      tenant: { platformPolicy: { methods: ["magic-link"] } },
    });
    await expect(check(closed, ["/get-session"])).rejects.toThrow(/platformPolicy/);
  });
});
