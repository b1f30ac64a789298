import { deviceAuthorization } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { ELSEWHERE, shareWorld, type Where, type World } from "../support/world";

interface Codes {
  device_code: string;
  user_code: string;
}

const ask = async (world: World) =>
  (await world.at("acme").post<Codes>("/device/code", { client_id: "tv" })).data;

const redeem = (world: World, where: Where, { device_code }: Codes) =>
  world.at(where).post<{ error?: string; access_token?: string }>("/device/token", {
    grant_type: "urn:ietf:params:oauth:grant-type:device_code",
    device_code,
    client_id: "tv",
  });

/** Opens the page of the code, which claims it, and approves. */
async function approve(browser: Browser, { user_code }: Codes) {
  await browser.get("/device", { query: { user_code } });
  return browser.post<{ error?: string }>("/device/approve", { userCode: user_code });
}

describe("deviceAuthorization with a scoped deviceCode", () => {
  const tenant = { scopedModels: ["deviceCode"] };
  const world = shareWorld({ plugins: [deviceAuthorization()], tenant });

  it("R6: signs a device in inside its tenant, after others have tried in vain", async () => {
    const { acme, ...others } = await world.janes();
    const [pending, codes] = [await ask(world), await ask(world)];
    for (const place of ELSEWHERE) {
      const refused = await world.unchanged(() => approve(others[place], pending));
      expect([refused.status, refused.data.error]).toEqual([400, "invalid_request"]);
    }
    expect((await redeem(world, "acme", pending)).data.error).toBe("authorization_pending");
    expect((await approve(acme, codes)).status).toBe(200);
    for (const place of ELSEWHERE) {
      const refused = await world.unchanged(() => redeem(world, place, codes));
      expect([refused.status, refused.data.error]).toEqual([400, "invalid_grant"]);
    }
    const { status, data } = await redeem(world, "acme", codes);
    expect(status).toBe(200);
    const sessions = await world.rowsIn("acme", "session");
    const made = sessions.find(({ token }) => token === data.access_token);
    expect(made).toMatchObject({ userId: acme.id });
  });
});

describe("deviceAuthorization with a shared deviceCode", () => {
  const tenant = { sharedModels: ["deviceCode"] };
  const world = shareWorld({ plugins: [deviceAuthorization()], tenant });

  it.each([
    ["acme", "globex"],
    ["acme", "platform"],
    ["globex", "acme"],
  ])("R8: a code of Acme that somebody on %s approves signs nobody in on %s", async (by, where) => {
    const person = await world.as("jane", by);
    const sessions = await world.rows("session");
    const codes = await ask(world);
    await approve(person, codes);
    const refused = await redeem(world, where, codes);
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(refused.data.access_token).toBe(undefined);
    expect(await world.rows("session")).toBe(sessions);
  });
});
