import type { BetterAuthOptions } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { magicLink } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import { createPlaces, EMAIL } from "../plugins/places";
import { createMailbox } from "../scope/mailbox";
import { mapStorage } from "../sessions/stores";
import { createInstance, type InstanceOptions, PASSWORD } from "../support/instance";
import {
  CACHES,
  createMailPlaces,
  expectResetLinksLeadHome,
  expectSessionsApart,
  expectVerificationLinksLeadHome,
} from "./checks";
import { bringing } from "./orders";

type Arrange = NonNullable<InstanceOptions["arrange"]>;

/** The plugin that brings options, before ours and behind it. */
const SIDES: [name: string, arrange: Arrange][] = [
  ["before ours", (ours, [admin, ...others]) => [...others, ours, ...(admin ? [admin] : [])]],
  ["behind ours", (ours, others) => [ours, ...others]],
];

/** E-mails are globally unique here, since sign-up would fail before the rest could. */
const tenant = { keepEmailGloballyUnique: true };

describe.each(SIDES)("R11: a plugin %s whose init brings", (_, arrange) => {
  const place = (brought: object, auth: Partial<BetterAuthOptions> = {}) =>
    createPlaces([bringing(brought)], { arrange, tenant, auth });

  it("secondaryStorage: sessions stay apart", async () => {
    await expectSessionsApart(await place({ secondaryStorage: mapStorage().storage }));
  });

  it("secondaryStorage: one-time codes stay apart", async () => {
    const { storage, entries } = mapStorage();
    const { auth, mails } = createMailbox();
    const { at, signUp } = await place({ secondaryStorage: storage }, auth);
    await signUp("a", EMAIL);
    await at("a").post("/request-password-reset", { email: EMAIL });
    const token = new URL(mails.at(-1)?.url ?? "").pathname.split("/").at(-1);
    expect(entries.size).toBeGreaterThan(0);
    const body = { token, newPassword: "a new password" };
    expect((await at("b").post("/reset-password", body)).status).toBe(400);
    expect((await at("a").post("/reset-password", body)).status).toBe(200);
  });

  it.each(CACHES)("session.cookieCache: sessions in %s stay apart", async (_, session) => {
    await expectSessionsApart(await place({ session }));
  });

  it("senders of better-auth's mails: links lead back into their tenant", async () => {
    const { mails, auth } = createMailbox();
    const { emailVerification } = auth;
    const { sendResetPassword } = auth.emailAndPassword;
    const brought = { emailVerification, emailAndPassword: { sendResetPassword } };
    const places = await place(brought);
    await expectResetLinksLeadHome({ ...places, mails });
  });

  it("the mail that confirms a deletion: its link works where nothing names a tenant", async () => {
    const urls: string[] = [];
    const deleteUser = {
      enabled: true,
      sendDeleteAccountVerification: async ({ url }: { url: string }) => void urls.push(url),
    };
    const { signUp, rows } = await place({ user: { deleteUser } });
    const { browser, user } = await signUp("a");
    expect((await browser.post("/delete-user", {})).status).toBe(200);
    // The same person, in a window that says nothing.
    await browser.fork({}).get(urls.at(-1) ?? "");
    expect(await rows("user", "id = ?", [user.id])).toBe(0);
    expect(urls.at(-1)).not.toMatch(/token=[A-Za-z0-9]{32}(&|$)/);
  });

  it("hooks: they run inside the tenant that a request names", async () => {
    const seen: unknown[] = [];
    const note = (side: string) =>
      createAuthMiddleware(async () => void seen.push([side, getTenantId()]));
    const hooks = { before: note("before"), after: note("after") };
    const { at, ids } = await place({ hooks });
    seen.length = 0;
    await at("a").post("/sign-in/email", { email: EMAIL, password: PASSWORD });
    expect(seen).toEqual([
      ["before", ids.a],
      ["after", ids.a],
    ]);
  });

  it("databaseHooks: they run inside the tenant of their rows", async () => {
    const seen: unknown[] = [];
    const after = async () => void seen.push(getTenantId());
    const databaseHooks = { user: { create: { after } }, session: { create: { after } } };
    const { signUp, ids } = await place({ databaseHooks });
    await signUp("a");
    expect(seen).toEqual([ids.a, ids.a]);
  });

  it("another plugin: its hooks run inside the tenant as well", async () => {
    const seen: unknown[] = [];
    const handler = createAuthMiddleware(async () => void seen.push(getTenantId()));
    const late = { id: "late", hooks: { before: [{ matcher: () => true, handler }] } };
    const { at, ids } = await place({ plugins: [late] });
    seen.length = 0;
    await at("a").post("/sign-in/email", { email: EMAIL, password: PASSWORD });
    expect(new Set(seen)).toEqual(new Set([ids.a]));
  });
});

describe.each(SIDES)("R11: magicLink %s", (_, arrange) => {
  it("R6: its links lead back into their tenant", async () => {
    const urls: string[] = [];
    const plugin = magicLink({ sendMagicLink: async ({ url }) => void urls.push(url) });
    const options = { arrange, tenant };
    const { at, whoIs, ids } = await createPlaces([plugin], options);
    await at("a").post("/sign-in/magic-link", { email: EMAIL });
    const stranger = at("platform");
    await stranger.get(urls.at(-1) ?? "");
    expect(await whoIs(stranger, "platform")).toMatchObject({ tenantId: ids.a });
  });
});

describe("R11: a sender that nobody brings", () => {
  it("is not needed: links of the application's own senders lead home", async () => {
    const places = await createMailPlaces({ plugins: [bringing({ appName: "Mine" })] });
    await expectVerificationLinksLeadHome(places);
  });
});

describe("R11: a secondary storage", () => {
  const start = (secondaryStorage: BetterAuthOptions["secondaryStorage"]) =>
    createInstance({ auth: { secondaryStorage } });

  it("that is frozen is refused at start, with a message", async () => {
    const frozen = Object.freeze(mapStorage().storage);
    await expect(start(frozen)).rejects.toThrow(/tenantAuth\(\).*secondaryStorage/i);
  });

  it("that is frozen and comes with a plugin behind ours is refused at start", async () => {
    const frozen = Object.freeze(mapStorage().storage);
    const starting = createInstance({ plugins: [bringing({ secondaryStorage: frozen })] });
    await expect(starting).rejects.toThrow(/tenantAuth\(\).*secondaryStorage/i);
  });

  it("whose methods cannot be replaced is refused at start", async () => {
    const { storage } = mapStorage();
    for (const method of Object.keys(storage)) {
      Object.defineProperty(storage, method, { writable: false, configurable: false });
    }
    await expect(start(storage)).rejects.toThrow(/tenantAuth\(\).*secondaryStorage/i);
  });

  it("that takes no new properties is refused at start, or confined", async () => {
    const storage = Object.preventExtensions(new ClassStorage());
    const outcome = await createPlaces([], { auth: { secondaryStorage: storage } }).catch(String);
    if (typeof outcome === "string") expect(outcome).toMatch(/secondaryStorage/i);
    else await expectSessionsApart(outcome);
  });

  it("that is an instance of a class works, with fields that only it can see", async () => {
    const storage = new ClassStorage();
    await expectSessionsApart(await createPlaces([], { auth: { secondaryStorage: storage } }));
    expect(storage.size).toBeGreaterThan(0);
  });
});

/** A storage as libraries ship them: methods on the prototype, state that is private. */
class ClassStorage {
  readonly #inner = mapStorage();
  get size() {
    return this.#inner.entries.size;
  }
  get(key: string) {
    return this.#inner.storage.get(key);
  }
  set(key: string, value: string, ttl?: number) {
    return this.#inner.storage.set(key, value, ttl);
  }
  delete(key: string) {
    return this.#inner.storage.delete(key);
  }
  getAndDelete(key: string) {
    return this.#inner.storage.getAndDelete(key);
  }
  increment(key: string, ttl: number) {
    return this.#inner.storage.increment(key, ttl);
  }
}
