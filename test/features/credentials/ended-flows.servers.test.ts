// Flows that were started before all sessions of a user ended, and are continued afterwards.
import { apiKey } from "@better-auth/api-key";
import { passkey } from "@better-auth/passkey";
import { deviceAuthorization, emailOTP, magicLink, twoFactor } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { databases } from "../../support/database";
import { PASSWORD } from "../../support/instance";
import { totpFrom } from "../../support/totp";
import { createWorld, type Place, type World } from "../../support/world";
import { enroll, registerPasskey, signInByPasskey } from "../policy/two-factor";

const THIEF = "thief@evil.example";
const NEW_PASSWORD = "another good password";
const PLACES = ["acme", "platform"] as const;

const open = (database = databases[0]) =>
  createWorld({
    ...(database && { database }),
    auth: {
      user: { changeEmail: { enabled: true, sendChangeEmailConfirmation: undefined as never } },
      emailAndPassword: { enabled: true, revokeSessionsOnPasswordReset: true },
    },
    plugins: (send) => [
      twoFactor(),
      passkey({ rpID: "localhost" }),
      deviceAuthorization({ interval: "1s" }),
      apiKey({ enableSessionForAPIKeys: true }),
      magicLink({ sendMagicLink: send("magic") }),
      emailOTP({ sendVerificationOTP: send("code") }),
    ],
    tenant: { scopedModels: ["passkey", "deviceCode", "apikey"] },
  });

async function resetPassword(world: World, place: Place, email: string) {
  const browser = world.at(place);
  await browser.post("/request-password-reset", { email, redirectTo: "/page" });
  const { token } = world.lastMail("reset");
  const body = { token, newPassword: NEW_PASSWORD };
  expect((await browser.post("/reset-password", body)).status).toBe(200);
}

describe.each(PLACES)("takeover: at %s", (place) => {
  it.each<[end: string, act: (world: World, email: string) => Promise<unknown>]>([
    ["a password reset", (world, email) => resetPassword(world, place, email)],
    [
      "an administrator who ends the sessions",
      async (world, email) => {
        const admin = await world.as("admin", place);
        const { person } = await world.signIn(place, email);
        await admin.post("/admin/revoke-user-sessions", { userId: person.id });
      },
    ],
  ])(
    "a change of the email that an ended session has asked for ends with it: %s",
    async (_, act) => {
      const world = await open();
      for (const isEnded of [true, false]) {
        const jane = await world.signUp(place, `jane-${isEnded}@example.com`);
        await world.write("user", { emailVerified: true }, { id: jane.id });
        await jane.post("/change-email", { newEmail: `${isEnded}-${THIEF}`, callbackURL: "/in" });
        const { url, to } = world.lastMail("verification");
        expect(to).toBe(`${isEnded}-${THIEF}`);
        if (isEnded) await act(world, jane.email);
        const thief = isEnded ? world.at(place) : jane;
        const { location } = await thief.get(url);
        const who = await world.whoIs(thief, place);
        if (isEnded) expect([location, who]).toEqual([expect.stringContaining("error="), null]);
        else expect(who).toMatchObject({ id: jane.id, email: `${isEnded}-${THIEF}` });
      }
    },
  );

  it("a sign-in that waits for its second factor ends with a password reset", async () => {
    const world = await open();
    const jane = await world.signUp(place, "jane@example.com");
    const { totpURI } = await enroll(jane);
    const thief = world.at(place);
    for (const isEnded of [true, false]) {
      const password = isEnded ? PASSWORD : NEW_PASSWORD;
      const { data } = await thief.post("/sign-in/email", { email: jane.email, password });
      expect(data).toMatchObject({ twoFactorRedirect: true });
      if (isEnded) await resetPassword(world, place, jane.email);
      const answer = await thief.post("/two-factor/verify-totp", { code: await totpFrom(totpURI) });
      expect(answer.status).toBe(isEnded ? 401 : 200);
      expect((await world.whoIs(thief, place))?.id).toBe(isEnded ? undefined : jane.id);
    }
  });

  it.each(["a magic link", "a mailed code"])(
    "who signed up with another person's address keeps no way in once that person proves it by %s",
    async (way) => {
      const world = await open();
      const email = "boss@partner.example";
      const squatter = await world.signUp(place, email);
      const { authenticator } = await registerPasskey(squatter, true);
      const { data } = await squatter.post<{ key: string }>("/api-key/create", {});
      await squatter.post("/change-email", { newEmail: THIEF, callbackURL: "/in" });
      const change = world.lastMail("verification");
      const byKey = () =>
        world.at(place).get("/get-session", { headers: { "x-api-key": data.key } });
      expect((await byKey()).status).toBe(200);

      const boss = world.at(place);
      if (way === "a magic link") {
        await boss.post("/sign-in/magic-link", { email });
        await boss.get(world.lastMail("magic").url);
      } else {
        await boss.post("/email-otp/send-verification-otp", { email, type: "sign-in" });
        await boss.post("/sign-in/email-otp", { email, otp: world.lastMail("code").code });
      }
      expect(await world.whoIs(boss, place)).toMatchObject({ email });

      const thief = world.at(place);
      expect((await signInByPasskey(thief, authenticator)).status).toBeGreaterThanOrEqual(400);
      expect((await byKey()).status).toBeGreaterThanOrEqual(400);
      await thief.get(change.url);
      for (const browser of [thief, squatter]) expect(await world.whoIs(browser, place)).toBe(null);
      // The owner's own, from after the proof, stay.
      await registerPasskey(boss, true);
      await boss.post("/sign-in/magic-link", { email });
      await boss.get(world.lastMail("magic").url);
      const { data: passkeys } = await boss.get<object[]>("/passkey/list-user-passkeys");
      expect(passkeys).toHaveLength(1);
    },
  );
});

describe.each(databases)("on %s", (database) => {
  it("a session that ends all others twice at once stays", async () => {
    const world = await open(database);
    for (const place of PLACES) {
      const jane = await world.signUp(place, "jane@example.com");
      const { person: other } = await world.signIn(place, jane.email);
      const answers = await Promise.all(
        [1, 2, 3].map(() => world.at(place, jane).post("/revoke-other-sessions")),
      );
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(await world.whoIs(jane)).toMatchObject({ id: jane.id });
      expect(await world.whoIs(other)).toBe(null);
    }
  });
});
