import { siwe } from "better-auth/plugins";
import { expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { PLACES, shareWorld, type Where } from "../support/world";

const WALLET = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";

let count = 0;
const plugins = [
  siwe({
    domain: "localhost:3000",
    getNonce: async () => `nonce000${++count}`,
    verifyMessage: async ({ signature }) => signature === "good",
  }),
];
// The wallet table is looked up by address, which everybody can know: it belongs in the scope.
const world = shareWorld({ plugins, tenant: { scopedModels: ["walletAddress"] } });

const ask = async (where: Where) =>
  (await world.at(where).post<{ nonce: string }>("/siwe/nonce")).data.nonce;

const verify = (browser: Browser, nonce: string) => {
  const message = [
    `localhost:3000 wants you to sign in with your Ethereum account:\n${WALLET}\n`,
    "Sign in\n",
    "URI: http://localhost:3000",
    "Version: 1",
    "Chain ID: 1",
    `Nonce: ${nonce}`,
    `Issued At: ${new Date().toISOString()}`,
  ].join("\n");
  return browser.post("/siwe/verify", { message, signature: "good" });
};

it("siwe: the same wallet is three people in three places, each time", async () => {
  for (const place of [...PLACES, ...PLACES]) {
    const browser = world.at(place);
    expect((await verify(browser, await ask(place))).status).toBe(200);
    expect(await world.whoIs(browser)).toMatchObject({ tenantId: world.ids[place] });
  }
  expect([await world.rows("user"), await world.rows("walletAddress")]).toEqual([3, 3]);
});

it("R6: a nonce of Acme is refused elsewhere, and stays good there", async () => {
  const nonce = await ask("acme");
  const code = "UNAUTHORIZED_INVALID_OR_EXPIRED_NONCE";
  await world.goodAtAcmeOnly((browser) => verify(browser, nonce), 401, code);
});
