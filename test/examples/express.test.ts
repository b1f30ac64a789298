import { expect, test } from "vitest";
import { PASSWORD } from "../support/instance";
import { browse, close, expectTwoTenants, portOf, stubEnvironment } from "./http";

test("Express: each path is a tenant, and one browser has a session at several", async () => {
  stubEnvironment();
  const { server } = await import("../../examples/express/server");
  const port = await portOf(server);
  const origin = `http://localhost:${port}`;
  const visit = (slug: string) => browse(port, origin, { "x-tenant-slug": slug });
  const at = (slug: string) => ({ visit: () => visit(slug), me: `${origin}/t/${slug}/me` });
  await expectTwoTenants(at("acme"), at("globex"));

  const person = { email: "al@example.com", password: PASSWORD };
  const window = visit("acme");
  await window.post("/sign-in/email", person);
  const other = window.fork({ "x-tenant-slug": "globex" });
  await other.post("/sign-in/email", person);
  for (const { me } of [at("acme"), at("globex")]) {
    expect((await other.get(me)).data.email).toBe(person.email);
  }
  await close(server);
});
