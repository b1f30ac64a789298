import { expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
import { type Place, shareWorld } from "../support/world";

const world = shareWorld();

it.each<[place: Place, taken: Place[], status: number]>([
  ["platform", ["acme"], 200],
  ["platform", ["platform"], 400],
  ["acme", ["globex", "platform"], 200],
  ["acme", ["acme"], 400],
])(
  "an operator on %s creates a user whose e-mail exists on %j: %i",
  async (place, taken, status) => {
    const email = `${place}-${taken.join("-")}@example.com`;
    for (const other of taken) await world.signUp(other, email);
    const window = world.at(place, await world.operator());
    const body = { email, name: "New", password: PASSWORD };
    const answer = await window.post<{ user?: object }>("/admin/create-user", body);
    expect(answer.status).toBe(status);
    if (status !== 200) return;
    expect(answer.data.user).toMatchObject({ tenantId: world.ids[place] });
    expect((await world.signIn(place, email)).status).toBe(200);
  },
);

it("an operator gives a user of the platform an e-mail that exists in a tenant", async () => {
  const { email } = await world.signUp("acme", "moved@example.com");
  const { id } = await world.signUp("platform", "other@example.com");
  const change = { userId: id, data: { email } };
  expect((await (await world.operator()).post("/admin/update-user", change)).status).toBe(200);
  for (const place of ["acme", "platform"] as const) {
    const having = (await world.rowsIn(place, "user")).filter((user) => user.email === email);
    expect(having, place).toHaveLength(1);
  }
});
