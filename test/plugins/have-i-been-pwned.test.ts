import { createHash } from "node:crypto";
import { haveIBeenPwned } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { interceptFetch } from "../support/providers";
import { createPlaces, EMAIL, expectRefused } from "./places";

const PWNED = "password1234";
const GOOD = "nobody has ever used this";

const sha1 = (text: string) => createHash("sha1").update(text).digest("hex").toUpperCase();
const range = (text: string) =>
  `https://api.pwnedpasswords.com/range/${sha1(text).slice(0, 5)}` as const;

async function createGuardedPlaces() {
  interceptFetch({
    [range(PWNED)]: () => `${sha1(PWNED).slice(5)}:4711`,
    [range(GOOD)]: () => `${"0".repeat(35)}:1`,
  });
  return createPlaces([haveIBeenPwned()]);
}

describe("haveIBeenPwned", () => {
  it.each(["/sign-up/email", "/tenant/sign-up/email"])("guards %s in a tenant", async (path) => {
    const { at, rows, ids } = await createGuardedPlaces();
    const person = { name: "Somebody", email: EMAIL };
    const refused = await at("a").post(path, { ...person, password: PWNED });
    expectRefused(refused, 400, "PASSWORD_COMPROMISED");
    expect(await rows("user")).toBe(0);
    expect((await at("a").post(path, { ...person, password: GOOD })).status).toBe(200);
    expect(await rows("user", '"tenantId" = ?', [ids.a])).toBe(1);
  });

  it("guards a change of the password inside a tenant", async () => {
    const { at, unchanged } = await createGuardedPlaces();
    const browser = at("a");
    const person = { name: "Somebody", email: EMAIL, password: GOOD };
    await browser.post("/tenant/sign-up/email", person);
    const change = { currentPassword: GOOD, newPassword: PWNED };
    const refused = await unchanged(() => browser.post("/change-password", change));
    expectRefused(refused, 400, "PASSWORD_COMPROMISED");
  });
});
