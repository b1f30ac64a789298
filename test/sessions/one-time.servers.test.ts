import { emailOTP } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import { createTriplets, EMAIL } from "../scope/triplets";
import { mapStorage, STORAGES } from "./stores";

const PLACES = ["a", "b", "platform"] as const;
type Place = (typeof PLACES)[number];

/** One e-mail in two tenants and on the platform, and every one-time password by where it was sent. */
async function createPeople(secondaryStorage = mapStorage().storage) {
  const otps = new Map<string | null, string>();
  const plugin = emailOTP({
    sendVerificationOTP: async ({ otp }) => void otps.set(getTenantId(), otp),
  });
  const triplets = await createTriplets({ plugins: [plugin], auth: { secondaryStorage } });
  const ids: Record<Place, string | null> = { a: triplets.a, b: triplets.b, platform: null };
  const at = (place: Place) => {
    const id = ids[place];
    return triplets.instance.browser(id === null ? {} : { "x-tenant-id": id });
  };
  return { ...triplets, otps, ids, at };
}

describe.each(STORAGES)("one-time secrets in %s", (_, storage) => {
  it("R6: the OTPs of one e-mail do not collide, and each is good in its own place", async () => {
    const { otps, ids, at, people } = await createPeople(storage());
    for (const place of PLACES) {
      const body = { email: EMAIL, type: "sign-in" };
      expect((await at(place).post("/email-otp/send-verification-otp", body)).status).toBe(200);
    }
    // Three were sent, and none took the place of another.
    expect([...otps.keys()]).toEqual([ids.a, ids.b, null]);
    for (const place of PLACES) {
      const otp = otps.get(ids[place]);
      const { status, data } = await at(place).post<{ user: { id: string } }>(
        "/sign-in/email-otp",
        { email: EMAIL, otp },
      );
      expect([status, data.user.id], place).toEqual([200, people[place].user.id]);
    }
  });

  it("R6: an OTP is good nowhere else, and a try elsewhere does not use it up", async () => {
    const { otps, ids, at, people } = await createPeople(storage());
    const body = { email: EMAIL, type: "sign-in" };
    await at("a").post("/email-otp/send-verification-otp", body);
    const otp = otps.get(ids.a);
    for (const elsewhere of ["b", "platform"] as const) {
      const refused = await at(elsewhere).post("/sign-in/email-otp", { email: EMAIL, otp });
      expect([refused.status, refused.code], elsewhere).toEqual([400, "INVALID_OTP"]);
      expect(refused.headers.getSetCookie().join(), elsewhere).not.toMatch(/session_token=[^;]/);
    }
    const { data } = await at("a").post<{ user: { id: string } }>("/sign-in/email-otp", {
      email: EMAIL,
      otp,
    });
    expect(data.user.id).toBe(people.a.user.id);
    const again = await at("a").post("/sign-in/email-otp", { email: EMAIL, otp });
    expect([again.status, again.code]).toEqual([400, "INVALID_OTP"]);
  });

  it("R6: reset tokens of one e-mail change the password in their own place only", async () => {
    const { mails, ids, at, people, instance } = await createPeople(storage());
    for (const place of PLACES) {
      await at(place).post("/request-password-reset", { email: EMAIL, redirectTo: "/reset" });
    }
    expect(mails.map(({ sentIn }) => sentIn)).toEqual([ids.a, ids.b, null]);
    const tokens = mails.map(({ url }) => new URL(url).pathname.split("/").at(-1) ?? "");
    const passwordOf = async (userId: string) => {
      const where = `select password from "account" where "userId" = ?`;
      return (await instance.database.query(where, [userId]))[0]?.password;
    };
    for (const [i, place] of PLACES.entries()) {
      for (const elsewhere of PLACES) {
        // A request that names no tenant follows the sealed token into its tenant.
        if (elsewhere === place || elsewhere === "platform") continue;
        const body = { token: tokens[i], newPassword: "a password of somewhere else" };
        const { status, code } = await at(elsewhere).post("/reset-password", body);
        expect([status, code], `${place} at ${elsewhere}`).toEqual([400, "INVALID_TOKEN"]);
      }
    }
    for (const [i, place] of PLACES.entries()) {
      const newPassword = `a new password of ${place}`;
      const body = { token: tokens[i], newPassword };
      expect((await at(place).post("/reset-password", body)).status, place).toBe(200);
      expect(await passwordOf(people[place].user.id)).toBe(`hashed:${newPassword}`);
    }
  });

  it("threat: token not consumed atomically: one reset token, 20 at once, one success", async () => {
    const { mails, at } = await createPeople(storage());
    await at("a").post("/request-password-reset", { email: EMAIL });
    const token = new URL(mails[0]?.url ?? "").pathname.split("/").at(-1);
    const tries = Array.from({ length: 20 }, (_, i) =>
      at("a").post("/reset-password", { token, newPassword: `a new password ${i}` }),
    );
    const statuses = (await Promise.all(tries)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 400)).toHaveLength(19);
  });
});

it("one-time secrets also kept in the database are confined there as well", async () => {
  const { entries, storage } = mapStorage();
  const triplets = await createTriplets({
    auth: { secondaryStorage: storage, verification: { storeInDatabase: true } },
  });
  const { instance, mails, a, b } = triplets;
  const browser = instance.browser({ "x-tenant-id": a });
  await browser.post("/request-password-reset", { email: EMAIL });
  const token = new URL(mails[0]?.url ?? "").pathname.split("/").at(-1);
  expect(await instance.rows("verification", `"tenantId" = ?`, [a])).toBe(1);
  // Redis may have forgotten it: then the database answers.
  for (const key of entries.keys()) if (key.includes("verification:")) entries.delete(key);
  const body = { token, newPassword: "a password of somewhere else" };
  const elsewhere = await instance.browser({ "x-tenant-id": b }).post("/reset-password", body);
  expect([elsewhere.status, elsewhere.code]).toEqual([400, "INVALID_TOKEN"]);
  expect((await browser.post("/reset-password", body)).status).toBe(200);
});
