import { expect, it } from "vitest";
import { createWorld } from "../support/world";

const client = { clientId: "id", clientSecret: "secret" };

it("sign-in-methods answers what the policy allows, and not the policy", async () => {
  const { at, change } = await createWorld({
    auth: { socialProviders: { google: client, gitlab: client } },
  });
  const methods = async () => (await at("acme").get("/tenant/sign-in-methods")).data;
  expect(await methods()).toMatchObject({ emailAndPassword: { enabled: true, signUp: true } });
  await change("acme", { policy: { methods: ["social:gitlab"] } });
  expect(await methods()).toMatchObject({
    emailAndPassword: { enabled: false, signUp: false },
    providers: [{ id: "gitlab" }],
  });
  await change("acme", { policy: { signUp: "invited", methods: ["password"] } });
  expect(await methods()).toMatchObject({
    emailAndPassword: { enabled: true, signUp: false },
    providers: [],
  });
  expect(JSON.stringify(await methods())).not.toContain("polic");
});
