import {
  bearer,
  deviceAuthorization,
  magicLink,
  oneTimeToken,
  organization,
  phoneNumber,
  username,
} from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { Answer, Browser } from "../../support/browser";
import { servers } from "../../support/database";
import { newcomer, PASSWORD } from "../../support/instance";
import {
  approveDevice,
  createWorld,
  type Person,
  type Place,
  shareMade,
  type World,
} from "../../support/world";
import { collate } from "./collations";

/*
 * Tokens, codes and names by which better-auth finds a row: in another case, with an accent or with a
 * trailing space they are others. Emails: `look-alikes.servers.test.ts`.
 */

const PLACES = ["acme", "platform"] as const;

const swapCase = (text: string) =>
  text.replace(/[a-z]/gi, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  );

/** A session token of a tenant begins with the tenant, which better-auth has not drawn. */
const alikeToken = (token: string) => {
  const start = token.indexOf("~") + 1;
  return token.slice(0, start) + swapCase(token.slice(start));
};

/** A value, values that look like it, and a request that works with the value alone. */
interface Case {
  value: string;
  others: string[];
  use(value: string): Promise<Answer<unknown>>;
  /** Whether the request did what it does with the value itself. */
  worked(answer: Answer<unknown>): boolean | Promise<boolean>;
}

const isOk = ({ status }: Answer<unknown>) => status === 200;
const alikeNames = (name: string) => [
  name.replace("a", "á"),
  name.replace("a", "ａ"),
  `${name} `,
  `${name}\u200b`,
];

const alikeNumbers = (phone: string) => [
  phone.replace("1", "１"),
  phone.replace("1", "¹"),
  `${phone} `,
  `${phone}\u200b`,
];

async function givePhone(world: World, place: Place, { id }: Person, phone: string) {
  const stored = place === "platform" ? phone : `${world.ids.acme}~${phone}`;
  await world.write("user", { phoneNumber: stored, phoneNumberVerified: true }, { id });
}

type Make = (world: World, place: Place, person: Person) => Promise<Case>;

const isSignedIn = (world: World, browser: Browser) => async () =>
  (await world.whoIs(browser)) !== null;

const CASES: Record<string, Make> = {
  "a bearer token": async (world, place, { token }) => ({
    value: token,
    others: [alikeToken(token), `${token}%20`],
    use: (value) =>
      world.at(place).get("/get-session", { headers: { authorization: `Bearer ${value}` } }),
    worked: ({ data }) => data !== null,
  }),
  "a reset token": async (world, place, person) => {
    const browser = world.at(place);
    await browser.post("/request-password-reset", { email: person.email });
    const { token } = world.lastMail("reset");
    return {
      value: token,
      // In a tenant it is sealed, as hexadecimal digits.
      others: place === "platform" ? [swapCase(token), `${token} `] : [`${token} `],
      use: (value) => browser.post("/reset-password", { token: value, newPassword: PASSWORD }),
      worked: isOk,
    };
  },
  "a magic link": async (world, place, person) => {
    const browser = world.at(place);
    await browser.post("/sign-in/magic-link", { email: person.email });
    const { token } = world.lastMail("link");
    return {
      value: token,
      others: place === "platform" ? [swapCase(token), `${token} `] : [`${token} `],
      use: (value) => browser.get("/magic-link/verify", { query: { token: value } }),
      worked: isSignedIn(world, browser),
    };
  },
  "a one-time token": async (world, place, person) => {
    const { data } = await person.get<{ token: string }>("/one-time-token/generate");
    return {
      value: data.token,
      others: [alikeToken(data.token), `${data.token} `],
      use: (token) => world.at(place).post("/one-time-token/verify", { token }),
      worked: isOk,
    };
  },
  "a device code": async (world, place, person) => {
    const browser = world.at(place);
    const redeemed = await approveDevice(browser, person);
    return {
      value: redeemed.device_code,
      others: [alikeToken(redeemed.device_code), `${redeemed.device_code} `],
      use: (device_code) => browser.post("/device/token", { ...redeemed, device_code }),
      worked: isOk,
    };
  },
  "the username of a sign-in": async (world, place) => {
    const name = `jane.${place}`;
    const body = { ...newcomer(), username: name };
    expect((await world.at(place).post("/sign-up/email", body)).status).toBe(200);
    const signIn = (value: string) =>
      world.at(place).post("/sign-in/username", { username: value, password: PASSWORD });
    return { value: name, others: alikeNames(name), use: signIn, worked: isOk };
  },
  "the phone number of a sign-in": async (world, place, person) => {
    const value = "+15550001";
    await givePhone(world, place, person, value);
    return {
      value,
      others: alikeNumbers(value),
      use: (phone) =>
        world.at(place).post("/sign-in/phone-number", { phoneNumber: phone, password: PASSWORD }),
      worked: isOk,
    };
  },
  "the phone number of a forgotten password": async (world, place, person) => {
    const value = "+15550002";
    await givePhone(world, place, person, value);
    return {
      value,
      others: alikeNumbers(value),
      async use(phone) {
        world.mails.length = 0;
        const body = { phoneNumber: phone };
        return world.at(place).post("/phone-number/request-password-reset", body);
      },
      worked: () => world.mails.length > 0,
    };
  },
  "the slug of an organization": async (_world, place, person) => {
    const slug = `alpha-${place}`;
    await person.post("/organization/create", { name: "Alpha", slug });
    return {
      value: slug,
      others: [...alikeNames(slug), slug.toUpperCase()],
      use: (organizationSlug) => person.post("/organization/set-active", { organizationSlug }),
      worked: isOk,
    };
  },
};

const COLLATIONS = ["utf8mb4_general_ci", "uca1400_nopad_ai_ci"];

describe.skipIf(!servers.asked).each(COLLATIONS)("look-alikes on MariaDB, %s", (collation) => {
  const world = shareMade(async (database) => {
    await collate(database, collation);
    return createWorld({
      database,
      tenant: {
        scopedModels: ["deviceCode", "organization", "member", "invitation"],
      },
      plugins: (send) => [
        bearer(),
        magicLink({ sendMagicLink: send("link") }),
        oneTimeToken(),
        deviceAuthorization(),
        organization(),
        username({ usernameValidator: () => true }),
        phoneNumber({ sendOTP: send("code"), sendPasswordResetOTP: send("phone reset") }),
      ],
    });
  }, "mysql");

  const cases = PLACES.flatMap((place) => Object.keys(CASES).map((name) => [place, name] as const));
  it.each(cases)("at %s, %s works exactly as it is", async (place, name) => {
    const person = await world.signUp(place, `${crypto.randomUUID()}@example.com`);
    await world.write("user", { emailVerified: true }, { id: person.id });
    const made = await CASES[name]?.(world, place, person);
    if (!made) throw new Error(name);
    for (const other of made.others) {
      const before = await world.everythingIn(place);
      const answer = await made.use(other);
      expect([other, answer.status < 500, await made.worked(answer)]).toEqual([other, true, false]);
      expect((await world.everythingIn(place)).session).toEqual(before.session);
    }
    // The control.
    const answer = await made.use(made.value);
    expect([answer.data, await made.worked(answer)]).toEqual([answer.data, true]);
  });
});
