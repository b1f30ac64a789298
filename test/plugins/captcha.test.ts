import { captcha } from "better-auth/plugins";
import { beforeEach, describe, expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
import { interceptFetch } from "../support/providers";
import { EMAIL, expectRefused, shareWorld } from "../support/world";

const SITE_VERIFY = "https://challenges.cloudflare.com/turnstile/v0/siteverify";
const PATHS = [
  "/sign-up/email",
  "/tenant/sign-up/email",
  "/sign-in/email",
  "/tenant/sign-in/email",
];

const plugins = [captcha({ provider: "cloudflare-turnstile", secretKey: "key" })];
const world = shareWorld({ plugins });

const solved = (answer: string) => ({ headers: { "x-captcha-response": answer } });
const person = { name: "Somebody", email: EMAIL, password: PASSWORD };

describe("captcha", () => {
  let asked: unknown[] = [];
  beforeEach(() => {
    // Turnstile, which takes the answer "human" for good.
    asked = interceptFetch({
      [SITE_VERIFY]: (body) => ({ success: body.toString().includes("human") }),
    });
  });

  it.each(PATHS)("guards %s in a tenant, named by header, body or query", async (path) => {
    const tenantId = String(world.ids.acme);
    const unnamed = world.at("platform");
    await world.unchanged(async () => {
      for (const answer of [
        await world.at("acme").post(path, person),
        await unnamed.post(path, { ...person, tenantId }),
        await unnamed.post(path, person, { query: { tenantId } }),
      ]) {
        expectRefused(answer, 400, "MISSING_RESPONSE");
      }
      expect(asked).toEqual([]);
      const wrong = await world.at("acme").post(path, person, solved("robot"));
      expectRefused(wrong, 403, "VERIFICATION_FAILED");
    });
  });

  it("lets people through who solved it, by either path", async () => {
    const signedUp = await world.at("acme").post("/tenant/sign-up/email", person, solved("human"));
    expect(signedUp.status).toBe(200);
    for (const path of ["/sign-in/email", "/tenant/sign-in/email"]) {
      const window = world.at("acme");
      expect((await window.post(path, person, solved("human"))).status).toBe(200);
      expect(await world.whoIs(window)).toMatchObject({ tenantId: world.ids.acme });
    }
    // A solution is good once at the provider, so it is asked once for each request.
    expect(asked).toHaveLength(3);
  });

  it.each([
    "/tenant/sign-in/email/",
    "//tenant/sign-in/email",
    "/tenant//sign-in/email",
    "/tenant/sign-in//email",
    "/tenant%2Fsign-in/email",
    "/tenant/sign-in/email?x=/tenant/sign-in/email",
  ])("threat: %s is no way around it", async (path) => {
    // Somebody who could sign in.
    await world.at("globex").post("/tenant/sign-up/email", person, solved("human"));
    const refused = await world.unchanged(() => world.at("globex").post(path, person));
    expect([400, 404]).toContain(refused.status);
    expect(refused.headers.getSetCookie()).toEqual([]);
  });
});
