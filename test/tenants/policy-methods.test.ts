import { describe, expect, it } from "vitest";
import type { SignInMethod } from "../../src/index";
import type { Browser } from "../support/browser";
import { codeOf, createWays, STORES } from "./ways-in";

const METHODS: SignInMethod[] = [
  "password",
  "social",
  "social:google",
  "social:gitlab",
  "social:corp",
  "magic-link",
  "email-otp",
  "phone",
  "passkey",
  "siwe",
  "anonymous",
  "device",
];

const isSignedIn = async (browser: Browser) =>
  (await browser.get<object | null>("/get-session")).data !== null;

const includes = (method: SignInMethod, way: SignInMethod | null) =>
  way === method || (method === "social" && way?.startsWith("social:") === true);

describe.each(STORES)("R14: sessions in %s", (store) => {
  it("without a policy, every way leads in", async () => {
    const { ways, at } = await createWays(store);
    for (const { name, run } of ways) {
      const answer = await run(at());
      expect([name, codeOf(answer), answer.status < 400]).toEqual([name, undefined, true]);
    }
  });

  it.each([
    ["from the start", true],
    ["since the last step but one", false],
  ])("with a method, %s, that way leads in and no other", async (_, fromStart) => {
    const { ways, at, setPolicy, count } = await createWays(store);
    for (const method of METHODS) {
      for (const { name, method: way, run } of ways) {
        const label = `${name}, with ${method}`;
        await setPolicy(fromStart ? { methods: [method] } : null);
        const before = [await count("session"), await count("user")];
        const browser = at();
        const answer = await run(browser, () => setPolicy({ methods: [method] }));
        if (includes(method, way)) {
          expect([label, codeOf(answer), answer.status < 400]).toEqual([label, undefined, true]);
          continue;
        }
        expect([label, codeOf(answer)]).toEqual([label, "SIGN_IN_METHOD_NOT_ALLOWED"]);
        // Nothing is left behind: no session, and nobody who could never sign in.
        expect([label, await count("session"), await count("user")]).toEqual([label, ...before]);
        browser.keepCookies(answer.headers);
        expect([label, await isSignedIn(browser)]).toEqual([label, false]);
      }
    }
  });
});
