import type { BetterAuthPlugin } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import {
  admin,
  anonymous,
  bearer,
  emailOTP,
  genericOAuth,
  haveIBeenPwned,
  jwt,
  lastLoginMethod,
  magicLink,
  multiSession,
  openAPI,
  phoneNumber,
  twoFactor,
  username,
} from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { getTenantId } from "../src/index";
import { createDatabase } from "./support/database";
import { createPlainInstance, type InstanceOptions, PASSWORD } from "./support/instance";
import { combine, everyCase, ORDERS, SHUFFLED } from "./support/matrix";
import { CACHES, mapStorage, SORTS } from "./support/stores";
import {
  createWorld,
  EMAIL,
  expectSessionsApart,
  PLACES,
  queryOf,
  shareWorld,
  type World,
} from "./support/world";

type Arrange = NonNullable<InstanceOptions["arrange"]>;

/** Better-auth's plugins that do something at start, and where they can stand. */
const STARTING: [name: string, create: () => BetterAuthPlugin][] = [
  ["admin", () => admin()],
  ["username", () => username()],
  ["phoneNumber", () => phoneNumber({ sendOTP: () => {} })],
  ["lastLoginMethod", () => lastLoginMethod()],
  ["lastLoginMethod in the database", () => lastLoginMethod({ storeInDatabase: true })],
  [
    "emailOTP",
    () => emailOTP({ overrideDefaultEmailVerification: true, sendVerificationOTP: async () => {} }),
  ],
  ["haveIBeenPwned", () => haveIBeenPwned({ enabled: false })],
  ["genericOAuth", () => genericOAuth({ config: [] })],
  ["jwt", () => jwt()],
  ["openAPI", () => openAPI()],
];

/** The admin plugin is part of every instance; it must not be what stands before ours. */
const SIDES: [name: string, arrange: Arrange][] = [
  ["before ours", (ours, [adminPlugin, ...rest]) => [...rest, ours, ...some(adminPlugin)]],
  ["behind ours", (ours, others) => [ours, ...others]],
];
const some = (plugin?: BetterAuthPlugin) => (plugin ? [plugin] : []);
const ADMIN_FIRST: Arrange = (ours, others) => [...others, ours];

/** Many plugins at once, for the orders that mix them. */
const manyPlugins = (): BetterAuthPlugin[] => [
  ...STARTING.filter(([name]) => !/^(admin|emailOTP|lastLoginMethod)$/.test(name)).map(
    ([, create]) => create(),
  ),
  anonymous(),
  bearer(),
  multiSession(),
  twoFactor(),
];

/** A neighbour of the official plugins that an application wrote: its `init` brings options. */
const bringing = (options: object): BetterAuthPlugin => ({
  id: "brings-options",
  init: () => ({ options }),
});

/** One address in both tenants and on the platform is three people, who sign up and in. */
async function expectSignInWorks(world: World) {
  const people = await world.janes();
  for (const place of PLACES) {
    const { status, person } = await world.signIn(place);
    expect(status, place).toBe(200);
    const expected = { id: people[place].id, email: EMAIL, tenantId: world.ids[place] };
    expect(await world.whoIs(person), place).toEqual(expected);
  }
}

/** R6: a reset link of Acme, opened where nothing names a tenant, changes the password there alone. */
async function expectResetLinksLeadHome(world: World) {
  const { email } = await world.as("reset", "acme");
  await world.at("acme").post("/request-password-reset", { email, redirectTo: "/new-password" });
  const stranger = world.at("platform");
  const { location } = await stranger.get(world.lastMail("reset").url);
  expect(location).toMatch(/\/new-password\?token=/);
  const { token } = queryOf(location);
  const reset = await stranger.post("/reset-password", { token, newPassword: "a new password" });
  expect(reset.status).toBe(200);
  expect((await world.signIn("acme", email, "a new password")).status).toBe(200);
  expect((await world.signIn("acme", email)).status).toBe(401);
}

/** R6: a verification link of Acme verifies the address at Acme alone. */
async function expectVerificationLinksLeadHome(world: World) {
  await world.janes();
  await world.at("acme").post("/send-verification-email", { email: EMAIL });
  await world.at("platform").get(world.lastMail("verification").url);
  for (const place of PLACES) {
    const verified = (await world.rowsIn(place, "user")).filter((row) => row.emailVerified);
    expect(verified.map(({ email }) => email)).toEqual(place === "acme" ? [EMAIL] : []);
  }
}

/** Whether the application's hooks.before knows the tenant that a request names. */
const noting = (seen: unknown[], side?: string) =>
  createAuthMiddleware(async () => void seen.push(side ? [side, getTenantId()] : getTenantId()));

const signInAtAcme = ({ at }: World) =>
  at("acme").post("/sign-in/email", { email: EMAIL, password: PASSWORD });

const STARTED = STARTING.flatMap(([name, create], plugin) =>
  SIDES.map(([side, arrange], n) => {
    const isAdmin = name === "admin";
    return {
      name: `${name} ${side}`,
      // It is there already.
      plugins: isAdmin ? [] : [create()],
      arrange: isAdmin && n === 0 ? ADMIN_FIRST : arrange,
      store: SORTS[(plugin + n) % SORTS.length] ?? { name: "the database" },
      hasLinks: name !== "emailOTP",
    };
  }),
);

const MIXED = combine([...ORDERS, ...SHUFFLED], SORTS).map(([[name, arrange], store]) => ({
  name: `many plugins, ours ${name}`,
  plugins: manyPlugins(),
  arrange,
  store,
  hasLinks: true,
}));

/** Both sides of each plugin, where every case is tried; otherwise one after the other in turn. */
const TRIED = STARTED.filter((_, n) => everyCase || n % 4 === 0 || n % 4 === 3);

describe.each([...TRIED, ...MIXED])(
  "R11: $name, sessions in $store.name",
  ({ hasLinks, ...options }) => {
    const world = shareWorld(options);
    it("people sign up and in, in tenants and on the platform", () => expectSignInWorks(world));
    it("R5: sessions stay apart", () => expectSessionsApart(world));
    it("R6: reset links lead back into their tenant", () => expectResetLinksLeadHome(world));
    it.runIf(hasLinks)("R6: verification links lead back into their tenant", () =>
      expectVerificationLinksLeadHome(world),
    );
  },
);

it.each(ORDERS)(
  "R5, R11: cached cookies that jwt signs stay apart, ours %s",
  async (_, arrange) => {
    const [, store] = CACHES;
    const plugins = [jwt({ sessionCookieCache: true })];
    await expectSessionsApart(await createWorld({ plugins, arrange, ...(store && { store }) }));
  },
);

// Sign-up works here in every order even where the rest is lost, so each hole shows by itself.
describe.each(
  combine(ORDERS, SORTS.slice(1)).map(([[name, arrange], store]) => ({ name, arrange, store })),
)(
  "R11: with e-mails that are globally unique, ours $name, sessions in $store.name",
  ({ arrange, store }) => {
    const seen: unknown[] = [];
    const world = shareWorld({
      arrange,
      store,
      tenant: { keepEmailGloballyUnique: true },
      auth: { hooks: { before: noting(seen) } },
    });
    it("R5: sessions stay apart", () => expectSessionsApart(world));
    it("R6: reset links lead back into their tenant", () => expectResetLinksLeadHome(world));
    it("R4: hooks.before knows the tenant that a request names", async () => {
      seen.length = 0;
      await signInAtAcme(world);
      expect(seen).toEqual([world.ids.acme]);
    });
  },
);

describe.each(SIDES)("R11: a plugin %s whose init brings", (_, arrange) => {
  const tenant = { keepEmailGloballyUnique: true };

  it.each(CACHES)("a session.cookieCache: sessions in $name stay apart", async ({ session }) => {
    const plugins = [bringing({ session })];
    await expectSessionsApart(await createWorld({ arrange, tenant, plugins }));
  });

  it("a secondaryStorage: sessions and one-time codes stay apart", async () => {
    const { storage: secondaryStorage, entries } = mapStorage();
    const plugins = [bringing({ secondaryStorage })];
    const world = await createWorld({ arrange, tenant, plugins });
    await expectSessionsApart(world);
    entries.clear();
    const { email } = await world.as("only-acme", "acme");
    await world.at("acme").post("/request-password-reset", { email });
    expect(entries.size).toBe(1);
    const body = { token: world.lastMail("reset").token, newPassword: "a new password" };
    expect((await world.at("globex").post("/reset-password", body)).status).toBe(400);
    expect((await world.at("acme").post("/reset-password", body)).status).toBe(200);
  });

  describe("everything else", () => {
    const seen: unknown[] = [];
    const after = async () => void seen.push(["row", getTenantId()]);
    const handler = noting(seen, "plugin");
    const world = shareWorld({
      arrange,
      tenant,
      auth: {
        emailAndPassword: { enabled: true, sendResetPassword: undefined },
        emailVerification: { sendVerificationEmail: undefined },
      },
      plugins: (send) => [
        magicLink({ sendMagicLink: send("link") }),
        bringing({
          emailAndPassword: { sendResetPassword: send("reset") },
          emailVerification: { sendVerificationEmail: send("verification") },
          user: { deleteUser: { sendDeleteAccountVerification: send("deletion") } },
          hooks: { before: noting(seen, "before"), after: noting(seen, "after") },
          databaseHooks: { user: { create: { after } }, session: { create: { after } } },
          plugins: [{ id: "late", hooks: { before: [{ matcher: () => true, handler }] } }],
        }),
      ],
    });

    it("senders of better-auth's mails: links lead back into their tenant", async () => {
      await expectResetLinksLeadHome(world);
      const { email, id } = await world.as("verified", "acme");
      await world.at("acme").post("/send-verification-email", { email });
      await world.at("platform").get(world.lastMail("verification").url);
      const users = await world.rowsIn("acme", "user");
      expect(users.find((user) => user.id === id)?.emailVerified).toBe(1);
    });

    it("the mail that confirms a deletion: its link works where nothing names a tenant", async () => {
      const person = await world.signUp("acme", "leaving@example.com");
      expect((await person.post("/delete-user")).status).toBe(200);
      const { url } = world.lastMail("deletion");
      // The same person, in a window that says nothing.
      await world.at("platform", person).get(url);
      const ids = (await world.rowsIn("acme", "user")).map(({ id }) => id);
      expect(ids).not.toContain(person.id);
      expect(url).not.toMatch(/token=[A-Za-z0-9]{32}(&|$)/);
    });

    it("hooks, its own and those of another plugin: they run inside the tenant", async () => {
      const { acme } = world.ids;
      seen.length = 0;
      await signInAtAcme(world);
      expect(seen.filter((entry) => String(entry).startsWith("plugin"))).not.toEqual([]);
      expect(new Set(seen.map(String))).toEqual(
        new Set([`plugin,${acme}`, `before,${acme}`, `after,${acme}`]),
      );
    });

    it("databaseHooks: they run inside the tenant of their rows", async () => {
      seen.length = 0;
      await world.signUp("globex", "rows@example.com");
      const { globex } = world.ids;
      expect(seen.filter((entry) => String(entry).startsWith("row"))).toEqual([
        ["row", globex],
        ["row", globex],
      ]);
    });

    it("R6: beside it, magic links lead back into their tenant", async () => {
      await world.at("acme").post("/sign-in/magic-link", { email: "link@example.com" });
      const stranger = world.at("platform");
      await stranger.get(world.lastMail("link").url);
      expect(await world.whoIs(stranger)).toMatchObject({ tenantId: world.ids.acme });
    });
  });
});

describe("threat: accounts can be probed by the order of keys", () => {
  const emailAndPassword = { enabled: true, requireEmailVerification: true };
  const person = (email: string) => ({ name: "Somebody", email, password: PASSWORD });

  /** The names in an answer, in their order, objects inside included. */
  const keys = (value: unknown): unknown =>
    typeof value === "object" && value !== null
      ? Object.entries(value).map(([key, inner]) => [key, keys(inner)])
      : "";

  it("better-auth itself answers alike", async () => {
    const database = await createDatabase("sqlite");
    const plain = await createPlainInstance(database, { emailAndPassword });
    const first = await plain.browser().post("/sign-up/email", person(EMAIL));
    const second = await plain.browser().post("/sign-up/email", person(EMAIL));
    expect(keys(second.data)).toEqual(keys(first.data));
    await database.close();
  });

  const CASES = combine([...ORDERS, ...SHUFFLED], [true, false]);
  it.each(CASES.map(([[name, arrange], unique]) => ({ name, arrange, unique })))(
    "so do tenants, ours $name (e-mails globally unique: $unique)",
    async ({ arrange, unique }) => {
      const { at, ids } = await createWorld({
        arrange,
        auth: { emailAndPassword },
        tenant: { keepEmailGloballyUnique: unique },
      });
      for (const [path, naming, place] of [
        ["/tenant/sign-up/email", { tenantId: ids.acme }, "platform"],
        ["/sign-up/email", {}, "globex"],
        ["/sign-up/email", {}, "platform"],
      ] as const) {
        const body = { ...person(`probed-${place}${path.length}@example.com`), ...naming };
        const first = await at(place).post(path, body);
        const second = await at(place).post(path, body);
        expect([first.status, second.status], path).toEqual([200, 200]);
        expect(keys(second.data), path).toEqual(keys(first.data));
      }
    },
  );
});
