import { deviceAuthorization } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { TenantAuthOptions } from "../../src/index";
import type { Browser } from "../support/browser";
import { createPlaces, ELSEWHERE, type Place } from "./places";

interface Codes {
  device_code: string;
  user_code: string;
}

async function createDevicePlaces(tenant: TenantAuthOptions = { scopedModels: ["deviceCode"] }) {
  const plugins = [deviceAuthorization()];
  const places = await createPlaces(plugins, { tenant });
  const { at } = places;
  const ask = async (place: Place) => {
    const answer = await at(place).post<Codes>("/device/code", { client_id: "tv" });
    expect(answer.status).toBe(200);
    return answer.data;
  };
  const redeem = (place: Place, { device_code }: Codes) =>
    at(place).post<{ error?: string; access_token?: string }>("/device/token", {
      grant_type: "urn:ietf:params:oauth:grant-type:device_code",
      device_code,
      client_id: "tv",
    });
  /** Opens the page of the code, which claims it, and approves. */
  const approve = async (browser: Browser, { user_code }: Codes) => {
    await browser.get("/device", { query: { user_code } });
    return browser.post<{ error?: string }>("/device/approve", { userCode: user_code });
  };
  return { ...places, ask, redeem, approve };
}

describe("deviceAuthorization with a scoped deviceCode", () => {
  it("signs a device in, inside a tenant", async () => {
    const { ask, approve, redeem, signUp, ids, rows } = await createDevicePlaces();
    const { browser, user } = await signUp("a");
    const codes = await ask("a");
    expect((await approve(browser, codes)).status).toBe(200);
    const answer = await redeem("a", codes);
    expect(answer.status).toBe(200);
    const where = 'token = ? and "userId" = ? and "tenantId" = ?';
    expect(await rows("session", where, [answer.data.access_token, user.id, ids.a])).toBe(1);
  });

  it.each(ELSEWHERE)("R6: a code of A cannot be approved on %s", async (place) => {
    const { ask, approve, redeem, signUp, unchanged } = await createDevicePlaces();
    const { browser } = await signUp(place);
    const codes = await ask("a");
    const refused = await unchanged(() => approve(browser, codes));
    expect([refused.status, refused.data.error]).toEqual([400, "invalid_request"]);
    expect((await redeem("a", codes)).data.error).toBe("authorization_pending");
  });

  it.each(ELSEWHERE)("R6: an approved code of A cannot be redeemed on %s", async (place) => {
    const { ask, approve, redeem, signUp, unchanged } = await createDevicePlaces();
    const { browser } = await signUp("a");
    const codes = await ask("a");
    await approve(browser, codes);
    const refused = await unchanged(() => redeem(place, codes));
    expect([refused.status, refused.data.error]).toEqual([400, "invalid_grant"]);
    expect((await redeem("a", codes)).status).toBe(200);
  });
});

describe("deviceAuthorization with a shared deviceCode", () => {
  it.each(ELSEWHERE)("R8: an approved code of A signs nobody in on %s", async (place) => {
    const { ask, approve, redeem, signUp, rows } = await createDevicePlaces({
      sharedModels: ["deviceCode"],
    });
    const { browser } = await signUp("a");
    const codes = await ask("a");
    await approve(browser, codes);
    const refused = await redeem(place, codes);
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(refused.data.access_token).toBe(undefined);
    expect(await rows("session")).toBe(1);
  });

  it("R8: a code of A that somebody at B approves signs nobody in at A", async () => {
    const { ask, approve, redeem, signUp, rows, ids } = await createDevicePlaces({
      sharedModels: ["deviceCode"],
    });
    const { browser } = await signUp("b");
    const codes = await ask("a");
    await approve(browser, codes);
    const refused = await redeem("a", codes);
    expect(refused.data.access_token).toBe(undefined);
    expect(await rows("session", '"tenantId" = ?', [ids.a])).toBe(0);
  });
});
