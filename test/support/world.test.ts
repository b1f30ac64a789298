import { readFileSync } from "node:fs";
import { bearer, magicLink } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { createWorld, DOMAINS, EMAIL, expectRefused, PLACES, SUBDOMAINS } from "./world";

it("R3: a session of Acme cannot be revoked at Globex, and is none there", async () => {
  const { as, at, unchanged, whoIs } = await createWorld();
  const jane = await as("jane", "acme");
  const other = await as("jane", "globex");
  await unchanged(() => other.post("/revoke-session", { token: jane.token }));
  expect(await whoIs(jane)).toMatchObject({ id: jane.id });
  expectRefused(await at("globex", jane).post("/update-user", { name: "X" }), 401, "UNAUTHORIZED");
});

it("what stands above is the example of CONTRIBUTING.md", () => {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
  const [, example = "?"] = /```ts\n(.*?)```/s.exec(read("../../CONTRIBUTING.md")) ?? [];
  expect(read("world.test.ts")).toContain(example);
});

describe.each([
  ["names", undefined],
  ["subdomains", SUBDOMAINS],
  ["domains", DOMAINS],
] as const)("a world told apart by %s", (_, hosts) => {
  it("has three Janes, each somebody at home only, an operator, and keeps mails", async () => {
    const world = await createWorld({
      ...(hosts && { hosts }),
      plugins: (send) => [bearer(), magicLink({ sendMagicLink: send("link") })],
    });
    const janes = await world.janes();
    for (const place of PLACES) {
      const expected = { id: janes[place].id, email: EMAIL, tenantId: world.ids[place] };
      expect(await world.whoIs(janes[place])).toEqual(expected);
      if (place !== "globex") expect(await world.whoIs(janes[place], "globex")).toBe(null);
      expect(await world.rowsIn(place, "user")).toHaveLength(1);
    }
    const operator = await world.as("admin", "platform");
    expect((await operator.get("/tenant/list")).status).toBe(200);
    expectRefused(await janes.acme.get("/tenant/list"), 403, "TENANT_MANAGEMENT_NOT_ALLOWED");
    await world.touchesOnly("acme", () =>
      world.at("acme").post("/sign-in/magic-link", { email: EMAIL }),
    );
    expect(world.lastMail("link")).toMatchObject({ to: EMAIL, sentIn: world.ids.acme });
    await world.unchanged(() =>
      world.at("globex").post("/sign-in/email", { email: EMAIL, password: "wrong" }),
    );
  });
});
