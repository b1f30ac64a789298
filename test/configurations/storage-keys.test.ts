import { apiKey } from "@better-auth/api-key";
import { emailOTP, magicLink, oneTimeToken, phoneNumber } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { runInTenant } from "../../src/index";
import { createPlaces, ELSEWHERE, EMAIL, type Place, type SessionAnswer } from "../plugins/places";
import { fakeGoogleAndGitHub } from "../support/providers";
import { createStorage, STORAGE_KINDS, type StorageKind } from "./storages";

/** better-auth's API keys are strings in the storage, so it does not take one that parses them. */
const KEY_STORAGES = STORAGE_KINDS.slice(0, 2);

const MODES = [
  ["in secondary storage", {}],
  ["in secondary storage, with the database behind it", { fallbackToDatabase: true }],
] as const;

interface Verifier {
  verifyApiKey(input: { body: { key: string } }): Promise<{ valid: boolean }>;
}

async function createKeys(kind: StorageKind, mode: { fallbackToDatabase?: true }) {
  const options = { storage: "secondary-storage", ...mode } as const;
  const entries = new Map<string, string>();
  const places = await createPlaces([apiKey({ enableSessionForAPIKeys: true, ...options })], {
    tenant: { scopedModels: ["apikey"] },
    auth: { secondaryStorage: createStorage(kind, entries) },
  });
  const person = await places.signUp("a");
  const { data, status } = await person.browser.post<{ id: string; key: string }>(
    "/api-key/create",
    { name: "Robot" },
  );
  expect(status).toBe(200);
  const verifier = places.instance.auth.api as unknown as Verifier;
  return {
    ...places,
    entries,
    person,
    key: data,
    withKey: { headers: { "x-api-key": data.key } },
    verify: () => verifier.verifyApiKey({ body: { key: data.key } }),
  };
}

describe.each(MODES)("R10: API keys %s", (_, mode) => {
  describe.each(KEY_STORAGES)("that $name", (kind) => {
    it("a key of A is a session at A", async () => {
      const { at, withKey, person } = await createKeys(kind, mode);
      const { data } = await at("a").get<SessionAnswer>("/get-session", withKey);
      expect(data.user.id).toBe(person.user.id);
      const { data: keys } = await person.browser.get<{ total: number }>("/api-key/list");
      expect(keys.total).toBe(1);
    });

    it.each(ELSEWHERE)("R3: a key of A is no key on %s", async (place) => {
      const { at, withKey } = await createKeys(kind, mode);
      const session = await at(place).get("/get-session", withKey);
      expect([session.status, session.code]).toEqual([401, "INVALID_API_KEY"]);
      const change = await at(place).post("/update-user", { name: "Moved" }, withKey);
      expect(change.status).toBe(401);
      expect((await at("a").get<SessionAnswer>("/get-session", withKey)).data.user).toBeDefined();
    });

    it("R3: the server verifies it inside its tenant only", async () => {
      const { verify, ids } = await createKeys(kind, mode);
      expect((await runInTenant(ids.b ?? "", verify)).valid).toBe(false);
      expect((await verify()).valid).toBe(false);
      expect((await runInTenant(ids.a ?? "", verify)).valid).toBe(true);
    });

    it.each(ELSEWHERE)("R3: it cannot be seen or touched by id on %s", async (place) => {
      const { signUp, key, at, withKey } = await createKeys(kind, mode);
      const { browser } = await signUp(place);
      const got = await browser.get("/api-key/get", { query: { id: key.id } });
      expect(got.status).toBe(404);
      const body = { keyId: key.id, name: "Stolen" };
      for (const path of ["/api-key/update", "/api-key/delete"]) {
        expect((await browser.post(path, body)).status, path).toBe(404);
      }
      expect((await at("a").get<SessionAnswer>("/get-session", withKey)).data.user).toBeDefined();
    });

    it("no key works once its tenant is deleted", async () => {
      const { instance, ids, at, withKey, verify } = await createKeys(kind, mode);
      await instance.api.deleteTenant({ body: { tenantId: ids.a ?? "" } });
      for (const place of ["a", "b", "platform"] as const) {
        const { data } = await at(place).get<Partial<SessionAnswer> | null>(
          "/get-session",
          withKey,
        );
        expect(data?.user, place).toBe(undefined);
      }
      expect((await verify()).valid).toBe(false);
      expect((await runInTenant(ids.a ?? "", verify)).valid).toBe(false);
    });
  });
});

describe("threat: rate limit reset by rotation", () => {
  it("limits in secondary storage count all tenants together", async () => {
    const auth = {
      secondaryStorage: createStorage({}),
      rateLimit: { enabled: true, storage: "secondary-storage" },
    } as const;
    const { at } = await createPlaces([], { auth });
    const statuses: number[] = [];
    for (const place of ["a", "b", "platform", "a", "b"] as const) {
      const body = { email: EMAIL, password: "wrong password" };
      statuses.push((await at(place).post("/sign-in/email", body)).status);
    }
    expect(statuses).toEqual([401, 401, 401, 429, 429]);
  });
});

describe.each(STORAGE_KINDS)("R6: one-time codes in a storage that $name", (kind) => {
  function createCodes() {
    const sent: { to: string; code: string }[] = [];
    const send = (to: string, code: string) => void sent.push({ to, code });
    let next = 100_000;
    const plugins = [
      emailOTP({
        generateOTP: () => String(++next),
        sendVerificationOTP: async ({ email, otp }) => send(email, otp),
      }),
      phoneNumber({ sendOTP: ({ phoneNumber, code }) => send(phoneNumber, code) }),
      magicLink({ sendMagicLink: async ({ email, url }) => send(email, url) }),
      oneTimeToken(),
    ];
    const auth = {
      secondaryStorage: createStorage(kind),
      socialProviders: { google: { clientId: "shared-client", clientSecret: "shared-secret" } },
    };
    return createPlaces(plugins, { auth }).then((places) => ({ ...places, sent }));
  }

  it("a code of A is none at B or on the platform, and is good at A", async () => {
    const { at, signUp, sent, whoIs, ids } = await createCodes();
    for (const place of ["a", "b", "platform"] as const) await signUp(place);
    await at("a").post("/email-otp/send-verification-otp", { email: EMAIL, type: "sign-in" });
    const body = { email: EMAIL, otp: sent.at(-1)?.code };
    for (const place of ELSEWHERE) {
      expect((await at(place).post("/sign-in/email-otp", body)).status, place).toBe(400);
    }
    const tab = at("a");
    expect((await tab.post("/sign-in/email-otp", body)).status).toBe(200);
    expect(await whoIs(tab, "a")).toMatchObject({ tenantId: ids.a });
  });

  it("one-time tokens of A are none at B, and are good at A", async () => {
    const { at, signUp, ids } = await createCodes();
    const { browser } = await signUp("a");
    const made = await browser.get<{ token: string }>("/one-time-token/generate");
    const body = { token: made.data.token };
    for (const place of ELSEWHERE) {
      expect((await at(place).post("/one-time-token/verify", body)).status, place).toBe(400);
    }
    const { data } = await at("a").post<SessionAnswer>("/one-time-token/verify", body);
    expect(data.session.tenantId).toBe(ids.a);
  });

  /** A code that is sent in the same scope, behind a sign-in with an id token. */
  async function signInAndSend(place: Place) {
    const places = await createCodes();
    const { googleIdToken } = fakeGoogleAndGitHub();
    const { api } = places.instance;
    const otp = api as unknown as {
      sendVerificationOTP(input: { body: { email: string; type: "sign-in" } }): Promise<unknown>;
    };
    const idToken = { token: googleIdToken({ aud: "shared-client" }) };
    const signIn = async () => {
      await api.signInSocial({ body: { provider: "google", idToken } });
      await otp.sendVerificationOTP({ body: { email: "alice@example.com", type: "sign-in" } });
    };
    const tenantId = places.ids[place];
    await (tenantId ? runInTenant(tenantId, signIn) : signIn());
    return { ...places, body: { email: "alice@example.com", otp: places.sent.at(-1)?.code } };
  }

  it("a code that follows a sign-in with an id token stays in its tenant", async () => {
    const { at, body, rows } = await signInAndSend("a");
    for (const place of ELSEWHERE) {
      expect((await at(place).post("/sign-in/email-otp", body)).status, place).toBe(400);
    }
    expect((await at("a").post("/sign-in/email-otp", body)).status).toBe(200);
    expect(await rows("user")).toBe(1);
  });

  it("on the platform such a code is the platform's", async () => {
    const { at, body } = await signInAndSend("platform");
    expect((await at("a").post("/sign-in/email-otp", body)).status).toBe(400);
    expect((await at("platform").post("/sign-in/email-otp", body)).status).toBe(200);
  });
});
