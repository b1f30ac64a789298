import { siwe } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { createPlaces, ELSEWHERE, expectRefused, PLACES, type Place } from "./places";

const WALLET = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";

/** The wallet table is looked up by address, which everybody can know: it belongs in the scope. */
async function createWalletPlaces() {
  let count = 0;
  const places = await createPlaces(
    [
      siwe({
        domain: "localhost:3000",
        getNonce: async () => `nonce000${++count}`,
        verifyMessage: async ({ signature }) => signature === "good",
      }),
    ],
    { tenant: { scopedModels: ["walletAddress"] } },
  );
  const ask = async (place: Place) =>
    (await places.at(place).post<{ nonce: string }>("/siwe/nonce")).data.nonce;
  const verify = (browser: Browser, nonce: string) =>
    browser.post("/siwe/verify", { message: messageWith(nonce), signature: "good" });
  return { ...places, ask, verify };
}

const messageWith = (nonce: string) =>
  [
    `localhost:3000 wants you to sign in with your Ethereum account:\n${WALLET}\n`,
    "Sign in\n",
    "URI: http://localhost:3000",
    "Version: 1",
    "Chain ID: 1",
    `Nonce: ${nonce}`,
    `Issued At: ${new Date().toISOString()}`,
  ].join("\n");

describe("siwe", () => {
  it("the same wallet is three people in three places, each time", async () => {
    const { at, ask, verify, whoIs, ids, rows } = await createWalletPlaces();
    for (const _visit of ["first", "second"]) {
      for (const place of PLACES) {
        const browser = at(place);
        expect((await verify(browser, await ask(place))).status).toBe(200);
        expect(await whoIs(browser, place)).toMatchObject({ tenantId: ids[place] });
      }
    }
    expect(await rows("user")).toBe(3);
    expect(await rows("walletAddress")).toBe(3);
  });

  it.each(ELSEWHERE)("R6: a nonce of A is refused on %s, and stays good at A", async (place) => {
    const { at, ask, verify, unchanged } = await createWalletPlaces();
    const nonce = await ask("a");
    const refused = await unchanged(() => verify(at(place), nonce));
    expectRefused(refused, 401, "UNAUTHORIZED_INVALID_OR_EXPIRED_NONCE");
    expect((await verify(at("a"), nonce)).status).toBe(200);
  });
});
