import { oneTimeToken } from "better-auth/plugins";
import { expect, it } from "vitest";
import { expectRefused, shareWorld } from "../support/world";

const world = shareWorld({ plugins: [oneTimeToken()] });

it("R6: oneTimeToken hands a session over inside its tenant only", async () => {
  const jane = await world.as("jane", "acme");
  const { data } = await jane.get<{ token: string }>("/one-time-token/generate");
  await world.goodAtAcmeOnly(async (browser) => {
    const answer = await browser.post("/one-time-token/verify", data);
    const who = answer.status === 200 ? { id: jane.id, tenantId: world.ids.acme } : {};
    expect((await world.whoIs(browser)) ?? {}).toMatchObject(who);
    return answer;
  }, 400);
});

it("R5: a session of Acme gets no token elsewhere", async () => {
  const elsewhere = world.at("globex", await world.as("jane", "acme"));
  const refused = await world.unchanged(() => elsewhere.get("/one-time-token/generate"));
  expectRefused(refused, 401, "UNAUTHORIZED");
});
