import { createHash } from "node:crypto";
import { haveIBeenPwned } from "better-auth/plugins";
import { expect, it } from "vitest";
import { interceptFetch } from "../support/providers";
import { expectRefused, shareWorld } from "../support/world";

const PWNED = "password1234";
const GOOD = "nobody has ever used this";

const sha1 = (text: string) => createHash("sha1").update(text).digest("hex").toUpperCase();
const range = (text: string) =>
  `https://api.pwnedpasswords.com/range/${sha1(text).slice(0, 5)}` as const;

const world = shareWorld({ plugins: [haveIBeenPwned()] });

it.each(["/sign-up/email", "/tenant/sign-up/email"])(
  "haveIBeenPwned guards %s in a tenant, and a change of the password",
  async (path) => {
    interceptFetch({
      [range(PWNED)]: () => `${sha1(PWNED).slice(5)}:4711`,
      [range(GOOD)]: () => `${"0".repeat(35)}:1`,
    });
    const browser = world.at("acme");
    const person = { name: "Somebody", email: `${path.length}@example.com` };
    const change = { currentPassword: GOOD, newPassword: PWNED };
    const signUp = (password: string) => browser.post(path, { ...person, password });
    expectRefused(await world.unchanged(() => signUp(PWNED)), 400, "PASSWORD_COMPROMISED");
    expect((await signUp(GOOD)).status).toBe(200);
    const refused = await world.unchanged(() => browser.post("/change-password", change));
    expectRefused(refused, 400, "PASSWORD_COMPROMISED");
  },
);
