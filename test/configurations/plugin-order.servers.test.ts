import type { BetterAuthPlugin } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { admin, jwt } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import { createPlaces, EMAIL } from "../plugins/places";
import { mapStorage } from "../sessions/stores";
import { createDatabase } from "../support/database";
import { createPlainInstance, type InstanceOptions, PASSWORD } from "../support/instance";
import {
  CACHES,
  createMailPlaces,
  expectResetLinksLeadHome,
  expectSessionsApart,
  expectSignUpWorks,
  expectVerificationLinksLeadHome,
  keysInOrder,
} from "./checks";
import { manyPlugins, ORDERS, SHUFFLED, STARTING } from "./orders";

type Arrange = NonNullable<InstanceOptions["arrange"]>;

/** The admin plugin is part of every instance; here it must not be what stands before ours. */
const SIDES: [name: string, arrange: Arrange][] = [
  ["before ours", (ours, [adminPlugin, ...plugins]) => [...plugins, ours, ...some(adminPlugin)]],
  ["behind ours", (ours, others) => [ours, ...others]],
];
const some = (plugin?: BetterAuthPlugin) => (plugin ? [plugin] : []);
const ADMIN_FIRST: Arrange = (ours, others) => [...others, ours];

describe.each(STARTING)("R11: %s", (name, create) => {
  // It is there already.
  const plugins = () => (name === "admin" ? [] : [create()]);
  describe.each(SIDES)("%s", (side, arrange) => {
    const arranged = {
      arrange: name === "admin" && side === "before ours" ? ADMIN_FIRST : arrange,
    };

    it("people sign up and in, in tenants and on the platform", async () => {
      await expectSignUpWorks(await createPlaces(plugins(), arranged));
    });

    it("R5: sessions in secondary storage stay apart", async () => {
      const auth = { secondaryStorage: mapStorage().storage };
      await expectSessionsApart(await createPlaces(plugins(), { ...arranged, auth }));
    });

    // The other encodings are tried below, with many plugins at once.
    it.each(CACHES.slice(0, 1))("R5: sessions in %s stay apart", async (_, session) => {
      await expectSessionsApart(await createPlaces(plugins(), { ...arranged, auth: { session } }));
    });

    it("R6: reset links lead back into their tenant", async () => {
      await expectResetLinksLeadHome(await createMailPlaces({ ...arranged, plugins: plugins() }));
    });

    it.skipIf(name === "emailOTP")("R6: verification links lead back", async () => {
      const places = await createMailPlaces({ ...arranged, plugins: plugins() });
      await expectVerificationLinksLeadHome(places);
    });
  });
});

describe.each([...ORDERS, ...SHUFFLED])("R11: many plugins, ours %s", (_, arrange) => {
  it("people sign up and in, in tenants and on the platform", async () => {
    await expectSignUpWorks(await createPlaces(manyPlugins(), { arrange }));
  });

  it("R5: sessions in secondary storage stay apart", async () => {
    const auth = { secondaryStorage: mapStorage().storage };
    await expectSessionsApart(await createPlaces(manyPlugins(), { arrange, auth }));
  });

  it.each(CACHES)("R5: sessions in %s stay apart", async (_, session) => {
    await expectSessionsApart(await createPlaces(manyPlugins(), { arrange, auth: { session } }));
  });

  it("R6: reset links lead back into their tenant", async () => {
    await expectResetLinksLeadHome(await createMailPlaces({ arrange, plugins: manyPlugins() }));
  });

  it("R6: verification links lead back into their tenant", async () => {
    const places = await createMailPlaces({ arrange, plugins: manyPlugins() });
    await expectVerificationLinksLeadHome(places);
  });
});

describe.each(ORDERS)("R11: cached cookies that the jwt plugin signs, ours %s", (_, arrange) => {
  it("R5: sessions stay apart", async () => {
    const session = {
      cookieCache: { enabled: true, maxAge: 300, strategy: "jwt" },
    } as const;
    const plugins = [jwt({ sessionCookieCache: true })];
    await expectSessionsApart(await createPlaces(plugins, { arrange, auth: { session } }));
  });
});

// Sign-up works here in every order even where the rest is lost, so each hole shows by itself.
describe.each(ORDERS)("R11: with e-mails that are globally unique, ours %s", (_, arrange) => {
  const arranged = { arrange, tenant: { keepEmailGloballyUnique: true } };

  it("R5: sessions in secondary storage stay apart", async () => {
    const auth = { secondaryStorage: mapStorage().storage };
    await expectSessionsApart(await createPlaces([], { ...arranged, auth }));
  });

  it.each(CACHES)("R5: sessions in %s stay apart", async (_, session) => {
    await expectSessionsApart(await createPlaces([], { ...arranged, auth: { session } }));
  });

  it("R6: reset links lead back into their tenant", async () => {
    await expectResetLinksLeadHome(await createMailPlaces(arranged));
  });

  it("R4: the application's hooks.before knows the tenant that a request names", async () => {
    const seen: unknown[] = [];
    const before = createAuthMiddleware(async () => void seen.push(getTenantId()));
    const { at, ids } = await createPlaces([], { ...arranged, auth: { hooks: { before } } });
    seen.length = 0;
    await at("a").post("/sign-in/email", { email: EMAIL, password: PASSWORD });
    expect(seen).toEqual([ids.a]);
  });

  it("threat: the order of keys does not tell whether an e-mail is taken", async () => {
    const auth = { emailAndPassword: { enabled: true, requireEmailVerification: true } };
    const { at } = await createPlaces([], { ...arranged, auth });
    const body = { name: "Somebody", email: EMAIL, password: PASSWORD };
    const first = await at("a").post("/sign-up/email", body);
    const second = await at("a").post("/sign-up/email", body);
    expect(keysInOrder(second.data)).toEqual(keysInOrder(first.data));
  });
});

describe("threat: accounts can be probed by the order of keys", () => {
  const emailAndPassword = { enabled: true, requireEmailVerification: true };
  const body = { name: "Somebody", email: EMAIL, password: PASSWORD };

  it("better-auth itself answers alike", async () => {
    const database = await createDatabase("sqlite");
    const plain = await createPlainInstance(database, { emailAndPassword }, [admin()]);
    const first = await plain.browser().post("/sign-up/email", body);
    const second = await plain.browser().post("/sign-up/email", body);
    expect(keysInOrder(second.data)).toEqual(keysInOrder(first.data));
    await database.close();
  });

  it.each([...ORDERS, ...SHUFFLED])("so do tenants, ours %s", async (_, arrange) => {
    const places = await createPlaces([], { arrange, auth: { emailAndPassword } });
    const ways = [
      ["/tenant/sign-up/email", { tenantId: places.ids.a }, "platform"],
      ["/sign-up/email", {}, "b"],
      ["/sign-up/email", {}, "platform"],
    ] as const;
    for (const [path, naming, place] of ways) {
      const first = await places.at(place).post(path, { ...body, ...naming });
      const second = await places.at(place).post(path, { ...body, ...naming });
      expect([first.status, second.status], path).toEqual([200, 200]);
      expect(keysInOrder(second.data), path).toEqual(keysInOrder(first.data));
    }
  });
});
