import { captcha } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
import { interceptFetch } from "../support/providers";
import { createPlaces, EMAIL, expectRefused } from "./places";

const SITE_VERIFY = "https://challenges.cloudflare.com/turnstile/v0/siteverify";

/** Turnstile, which takes the answer "human" for good. */
async function createGuardedPlaces() {
  const asked = interceptFetch({
    [SITE_VERIFY]: (body) => ({ success: body.toString().includes("human") }),
  });
  const plugins = [captcha({ provider: "cloudflare-turnstile", secretKey: "key" })];
  return { ...(await createPlaces(plugins)), asked };
}

const solved = (answer: string) => ({ headers: { "x-captcha-response": answer } });
const person = { name: "Somebody", email: EMAIL, password: PASSWORD };

describe("captcha", () => {
  it.each(["/sign-up/email", "/tenant/sign-up/email", "/sign-in/email", "/tenant/sign-in/email"])(
    "guards %s in a tenant",
    async (path) => {
      const { at, rows, asked } = await createGuardedPlaces();
      expectRefused(await at("a").post(path, person), 400, "MISSING_RESPONSE");
      expect(asked).toEqual([]);
      const wrong = await at("a").post(path, person, solved("robot"));
      expectRefused(wrong, 403, "VERIFICATION_FAILED");
      expect(await rows("user")).toBe(0);
    },
  );

  it.each([
    "/tenant/sign-in/email/",
    "//tenant/sign-in/email",
    "/tenant//sign-in/email",
    "/tenant/sign-in//email",
    "/tenant%2Fsign-in/email",
    "/tenant/sign-in/email?x=/tenant/sign-in/email",
  ])("threat: %s is no way around it", async (path) => {
    const { at, rows } = await createGuardedPlaces();
    await at("a").post("/tenant/sign-up/email", person, solved("human"));
    const refused = await at("a").post(path, person);
    expect([400, 404]).toContain(refused.status);
    expect(refused.headers.getSetCookie()).toEqual([]);
    expect(await rows("session")).toBe(1);
  });

  it("lets people through who solved it, by either path", async () => {
    const { at, ids, whoIs, asked } = await createGuardedPlaces();
    const browser = at("a");
    const signedUp = await browser.post("/tenant/sign-up/email", person, solved("human"));
    expect(signedUp.status).toBe(200);
    for (const path of ["/sign-in/email", "/tenant/sign-in/email"]) {
      const window = at("a");
      expect((await window.post(path, person, solved("human"))).status).toBe(200);
      expect(await whoIs(window, "a")).toMatchObject({ tenantId: ids.a });
    }
    // A solution is good once at the provider, so it is asked once for each request.
    expect(asked).toHaveLength(3);
  });

  it("guards this plugin's own sign-in with the tenant in the body or in the query", async () => {
    const { at, ids } = await createGuardedPlaces();
    const path = "/tenant/sign-in/email";
    const inBody = await at("platform").post(path, { ...person, tenantId: ids.a });
    expectRefused(inBody, 400, "MISSING_RESPONSE");
    const query = { tenantId: ids.a ?? "" };
    const inQuery = await at("platform").post(path, person, { query });
    expectRefused(inQuery, 400, "MISSING_RESPONSE");
  });
});
