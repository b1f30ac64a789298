import type { BetterAuthOptions } from "better-auth";
import { describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import {
  createWorld,
  PLACES,
  type Place,
  passwordOf,
  shareWorld,
  type World,
} from "../support/world";

const NEW_PASSWORD = "a brand new password";

/** Callbacks of the application, which write down where they run. */
const called: [name: string, tenantId: string | null][] = [];
const note = (name: string) => async () => void called.push([name, getTenantId()]);
const auth = {
  emailAndPassword: {
    enabled: true,
    onPasswordReset: note("onPasswordReset"),
    onExistingUserSignUp: note("onExistingUserSignUp"),
  },
  emailVerification: {
    sendOnSignUp: true,
    beforeEmailVerification: note("beforeEmailVerification"),
    afterEmailVerification: note("afterEmailVerification"),
  },
  user: {
    deleteUser: {
      enabled: true,
      beforeDelete: note("beforeDelete"),
      afterDelete: note("afterDelete"),
    },
  },
} satisfies Partial<BetterAuthOptions>;
const emailAndPassword = { ...auth.emailAndPassword, requireEmailVerification: true };

const world = shareWorld({ auth });
const verifying = shareWorld({ auth: { ...auth, emailAndPassword } });
const mailing = shareWorld({ auth, deletionByMail: true });

/** Runs a step and answers which callbacks ran, each of which has to have run in the place. */
async function observe({ mails, ids }: World, place: Place, step: () => Promise<unknown>) {
  called.length = 0;
  mails.length = 0;
  await step();
  const sent = mails.map(({ kind, sentIn }) => [kind, sentIn] as const);
  const all = [...sent, ...called];
  expect(all.map(([, tenantId]) => tenantId)).toEqual(all.map(() => ids[place]));
  return all.map(([name]) => name);
}

describe.each(PLACES)("getTenantId() at %s", (place) => {
  const somebody = { name: "New", email: "new@example.com", password: "another password" };

  it("in sendOnSignUp, and in onExistingUserSignUp", async () => {
    const signUp = (at: World) =>
      observe(at, place, () => at.at(place).post("/sign-up/email", somebody));
    expect(await signUp(world)).toEqual(["verification"]);
    expect(await signUp(verifying)).toEqual(["verification"]);
    expect(await verifying.unchanged(() => signUp(verifying))).toEqual(["onExistingUserSignUp"]);
  });

  it("in beforeEmailVerification and afterEmailVerification, by the link alone", async () => {
    const { email, window } = await world.namesakes();
    await window(place).post("/send-verification-email", { email });
    const { url } = world.lastMail("verification");
    const click = () => world.browser().get(url);
    const both = ["beforeEmailVerification", "afterEmailVerification"];
    expect(await observe(world, place, click)).toEqual(both);
  });

  it("in the mail for the new address that follows a confirmation link, and behind that", async () => {
    const { email, window } = await world.namesakes();
    await world.database.query(`update "user" set "emailVerified" = 1 where email = ?`, [email]);
    const ask = () => window(place).post("/change-email", { newEmail: `new-${email}` });
    expect(await observe(world, place, ask)).toEqual(["change"]);
    const first = world.lastMail("change").url;
    const confirm = () => world.browser().get(first);
    expect(await observe(world, place, confirm)).toEqual(["verification"]);
    const second = world.lastMail("verification").url;
    const click = () => world.browser().get(second);
    expect(await observe(world, place, click)).toEqual(["afterEmailVerification"]);
  });

  it("in beforeDelete and afterDelete, by password and by link", async () => {
    const both = ["beforeDelete", "afterDelete"];
    const me = (await world.namesakes()).window(place);
    const leave = () => me.post("/delete-user", { password: passwordOf(place) });
    expect(await observe(world, place, leave)).toEqual(both);

    const other = (await mailing.namesakes()).window(place);
    const ask = () => other.post("/delete-user");
    expect(await observe(mailing, place, ask)).toEqual(["deletion"]);
    const { url } = mailing.lastMail("deletion");
    expect(await observe(mailing, place, () => other.get(url))).toEqual(both);
  });

  it("in onPasswordReset, by the token alone", async () => {
    const { email } = await world.namesakes();
    const ask = () => world.at(place).post("/request-password-reset", { email });
    expect(await observe(world, place, ask)).toEqual(["reset"]);
    const body = { token: world.lastMail("reset").token, newPassword: NEW_PASSWORD };
    const reset = () => world.browser().post("/reset-password", body);
    expect(await observe(world, place, reset)).toEqual(["onPasswordReset"]);
  });
});

it("senders can look the tenant up: a call from the server's own code is trusted", async () => {
  const names: string[] = [];
  const sendResetPassword = async () => {
    const id = getTenantId();
    const tenant = id ? await world.api.getTenant({ query: { id } }) : null;
    names.push(tenant?.name ?? "the platform");
  };
  const options = { emailAndPassword: { enabled: true, sendResetPassword } };
  const world: World = await createWorld({ auth: options });
  for (const place of ["acme", "platform"] as const) {
    const { email } = await world.as("jane", place);
    await world.at(place).post("/request-password-reset", { email });
  }
  expect(names).toEqual(["ACME", "the platform"]);
});
