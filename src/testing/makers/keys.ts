import { WALLET_SIGNATURE } from "../instance/calm";
import { ok } from "../sides/browser";
import { createAuthenticator } from "./authenticator";
import type { Maker } from "./maker";

/** A key that people keep, for challenges of its own side and of others. */
export const passkey: Maker = {
  name: "passkey",
  paths: ["/passkey/generate-authenticate-options", "/passkey/verify-authentication"],
  async make(side) {
    const { subject, mark } = side.workshop;
    const home = "/passkey/verify-authentication";
    side.passkeyChallenge = async () => {
      const browser = side.fresh();
      const { challenge, rpId } = await ok<{ challenge: string; rpId: string }>(
        browser.get("/passkey/generate-authenticate-options"),
      );
      return { challenge, rpId, cookies: browser.cookies };
    };
    const first = await side.passkeyChallenge();
    const authenticator = await createAuthenticator(first.rpId);
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
    const { origin } = side.place;
    side.oneTimes.push({
      name: "passkey",
      values: { response: await authenticator.assert(first.challenge, origin) },
      cookies: first.cookies,
      home,
    });
    side.abroad.push(async (at) => {
      const { challenge = "", cookies } = (await at.passkeyChallenge?.()) ?? {};
      const response = await authenticator.assert(challenge, at.place.origin);
      const name = "passkey on a challenge of the other side";
      return { name, values: { response }, ...(cookies && { cookies }), home };
    });
  },
};

export const deviceCodes: Maker = {
  name: "device code",
  paths: ["/device/code", "/device/approve", "/device/token"],
  give: "a `validateClient` of deviceAuthorization() that knows the client of the kit",
  async make(side) {
    const { main, things, oneTimes, name } = side;
    const client_id = `device-client-${name}`;
    type Codes = { device_code: string; user_code: string };
    const start = () => ok<Codes>(side.fresh().post("/device/code", { client_id }));
    const approved = await start();
    await ok(main.browser.get("/device", { user_code: approved.user_code }));
    await ok(main.browser.post("/device/approve", { userCode: approved.user_code }));
    const claimed = await start();
    await ok(main.browser.get("/device", { user_code: claimed.user_code }));
    const pending = await start();
    Object.assign(things, {
      client_id,
      userCode: claimed.user_code,
      user_code: pending.user_code,
      // Without the tenant in front, which would lead into it.
      device_code: approved.device_code.split("~").at(-1),
    });
    oneTimes.push(
      {
        name: "device code",
        values: { device_code: approved.device_code, client_id },
        home: "/device/token",
        // It has the tenant in front.
        sealed: true,
      },
      {
        name: "user code",
        values: { user_code: pending.user_code, userCode: claimed.user_code },
        home: "/device",
        homeNeedsSession: true,
      },
    );
  },
};

export const wallet: Maker = {
  name: "wallet",
  paths: ["/siwe/nonce", "/siwe/verify"],
  async make(side) {
    const { subject } = side.workshop;
    const options = subject.plugins.find(({ id }) => id === "siwe")?.options ?? {};
    const domain = String((options as { domain?: string }).domain ?? "");
    const address = `0x${String(side.number).repeat(40)}`;
    const sign = async () => {
      const { nonce } = await ok<{ nonce: string }>(side.fresh().post("/siwe/nonce"));
      const lines = [
        `${domain} wants you to sign in with your Ethereum account:`,
        address,
        "",
        `URI: ${side.place.origin}`,
        "Version: 1",
        "Chain ID: 1",
        `Nonce: ${nonce}`,
      ];
      return { message: lines.join("\n"), signature: WALLET_SIGNATURE };
    };
    await ok(side.fresh().post("/siwe/verify", await sign()));
    side.oneTimes.push({ name: "wallet", values: await sign(), home: "/siwe/verify" });
  },
};

/** A key that is about to be added to somebody's account. */
export const newPasskey: Maker = {
  name: "new passkey",
  paths: ["/passkey/generate-register-options", "/passkey/verify-registration"],
  async make(side) {
    const { browser } = side.main;
    const before = new Set(browser.cookies.keys());
    const { challenge, rp } = await ok<{ challenge: string; rp: { id: string } }>(
      browser.get("/passkey/generate-register-options"),
    );
    const cookies = new Map([...browser.cookies].filter(([cookie]) => !before.has(cookie)));
    const authenticator = await createAuthenticator(rp.id);
    side.oneTimes.push({
      name: this.name,
      values: { response: await authenticator.register(challenge, side.place.origin) },
      cookies,
      home: "/passkey/verify-registration",
      homeNeedsSession: true,
    });
  },
};
