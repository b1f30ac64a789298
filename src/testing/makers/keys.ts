import { WALLET_SIGNATURE } from "../instance/calm";
import { ok } from "../sides/browser";
import { numberOf } from "../sides/side";
import { createAuthenticator } from "./authenticator";
import { maker } from "./maker";

/** A key that users keep, for challenges of its own side and of others. */
export const passkey = maker(
  "passkey",
  ["/passkey/generate-authenticate-options", "/passkey/verify-authentication"],
  async (side) => {
    const { subject, mark } = side.workshop;
    side.passkeyChallenge = async () => {
      const browser = side.fresh();
      const { challenge, rpId } = await ok<{ challenge: string; rpId: string }>(
        browser.get("/passkey/generate-authenticate-options"),
      );
      return { challenge, rpId, cookies: browser.cookies };
    };
    const { challenge, rpId, cookies } = await side.passkeyChallenge();
    const authenticator = await createAuthenticator(rpId);
    const data = {
      name: `passkey ${mark} of ${side.name}`,
      userId: side.main.userId,
      publicKey: authenticator.publicKey,
      credentialID: authenticator.id,
      counter: 0,
      deviceType: "singleDevice",
      backedUp: false,
      createdAt: new Date(),
    };
    const { id } = await side.inside(() =>
      subject.ctx.adapter.create<typeof data, { id: string }>({ model: "passkey", data }),
    );
    side.things.passkeyId = id;
    side.abroad.push(async (at) => {
      const { challenge = "", cookies } = (await at.passkeyChallenge?.()) ?? {};
      const response = await authenticator.assert(challenge, at.place.origin);
      const name = "passkey on a challenge of the other side";
      const home = "/passkey/verify-authentication";
      return { name, values: { response }, ...(cookies && { cookies }), home };
    });
    const response = await authenticator.assert(challenge, side.place.origin);
    return { values: { response }, cookies };
  },
);

export const deviceCodes = maker(
  "device code",
  ["/device/code", "/device/approve", "/device/token"],
  async (side) => {
    const { browser } = side.main;
    const client_id = `device-client-${side.name}`;
    type Codes = { device_code: string; user_code: string };
    const start = () => ok<Codes>(side.fresh().post("/device/code", { client_id }));
    const { device_code, ...approved } = await start();
    await ok(browser.get("/device", { user_code: approved.user_code }));
    await ok(browser.post("/device/approve", { userCode: approved.user_code }));
    const { user_code: userCode } = await start();
    await ok(browser.get("/device", { user_code: userCode }));
    const { user_code } = await start();
    // Without the tenant in front, which would lead into it.
    const bareCode = device_code.split("~").at(-1);
    Object.assign(side.things, { client_id, userCode, user_code, device_code: bareCode });
    const ofUser = { values: { user_code, userCode }, home: "/device", homeNeedsSession: true };
    return [
      // It has the tenant in front.
      { values: { device_code, client_id }, sealed: true },
      { name: "user code", ...ofUser },
    ];
  },
  { give: "a `validateClient` of deviceAuthorization() that knows the client of the kit" },
);

export const wallet = maker("wallet", ["/siwe/nonce", "/siwe/verify"], async (side) => {
  const { options } = side.workshop.subject.plugins.find(({ id }) => id === "siwe") ?? {};
  const address = `0x${String(numberOf(side.place)).repeat(40)}`;
  const sign = async () => {
    const { nonce } = await ok<{ nonce: string }>(side.fresh().post("/siwe/nonce"));
    const intro = `${options?.domain ?? ""} wants you to sign in with your Ethereum account:`;
    const details = `URI: ${side.place.origin}\nVersion: 1\nChain ID: 1\nNonce: ${nonce}`;
    return { message: `${intro}\n${address}\n\n${details}`, signature: WALLET_SIGNATURE };
  };
  await ok(side.fresh().post("/siwe/verify", await sign()));
  return { values: await sign() };
});

/** A key that is about to be added to an account. */
export const newPasskey = maker(
  "new passkey",
  ["/passkey/generate-register-options", "/passkey/verify-registration"],
  async ({ main: { browser }, place }) => {
    const before = new Set(browser.cookies.keys());
    const { challenge, rp } = await ok<{ challenge: string; rp: { id: string } }>(
      browser.get("/passkey/generate-register-options"),
    );
    const cookies = new Map([...browser.cookies].filter(([cookie]) => !before.has(cookie)));
    const authenticator = await createAuthenticator(rp.id);
    const response = await authenticator.register(challenge, place.origin);
    return { values: { response }, cookies, homeNeedsSession: true };
  },
);
