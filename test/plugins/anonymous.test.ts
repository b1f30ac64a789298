import { anonymous } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import type { Browser } from "../support/browser";
import { PASSWORD } from "../support/instance";
import { shareSocialWorld } from "../support/social";
import { expectRefused, PLACES } from "../support/world";

const links: { from: unknown; to: unknown; tenantId: string | null }[] = [];
const plugin = anonymous({
  onLinkAccount: ({ anonymousUser, newUser }) =>
    void links.push({
      from: anonymousUser.user.id,
      to: (newUser.user as { email: string }).email,
      tenantId: getTenantId(),
    }),
});

const world = shareSocialWorld({ plugins: [plugin] });

async function signInAnonymously(browser: Browser): Promise<string> {
  const answer = await browser.post<{ user: { id: string } }>("/sign-in/anonymous");
  expect(answer.status).toBe(200);
  links.length = 0;
  return answer.data.user.id;
}

describe("anonymous", () => {
  it.each(PLACES)("signs in on %s, and is nobody at another tenant", async (place) => {
    const browser = world.at(place);
    const id = await signInAnonymously(browser);
    expect(await world.whoIs(browser)).toMatchObject({ id, tenantId: world.ids[place] });
    const elsewhere = place === "acme" ? "globex" : "acme";
    expect(await world.whoIs(browser, elsewhere)).toBe(null);
  });

  it.each(["/sign-up/email", "/tenant/sign-up/email", "/sign-in/email", "/tenant/sign-in/email"])(
    "links on %s",
    async (path) => {
      const email = `${path.replaceAll("/", "-")}@example.com`;
      if (path.includes("in/")) await world.signUp("acme", email);
      const browser = world.at("acme");
      const id = await signInAnonymously(browser);
      const body = { name: "Somebody", email, password: PASSWORD };
      expect((await browser.post(path, body)).status).toBe(200);
      expect(links).toEqual([{ from: id, to: email, tenantId: world.ids.acme }]);
      expect(await world.rows("user", "id = ?", [id])).toBe(0);
    },
  );

  it("R3: nobody is linked, or deleted, by a sign-up or a social sign-in at another tenant", async () => {
    const browser = world.at("acme");
    const id = await signInAnonymously(browser);
    for (const path of ["/sign-up/email", "/tenant/sign-up/email"]) {
      const email = `${path.length}@example.com`;
      const body = { name: "Somebody", email, password: PASSWORD };
      expect((await world.at("globex", browser).post(path, body)).status).toBe(200);
    }
    const unnamed = world.at("platform", browser);
    await world.signInAtProvider(unnamed, "globex");
    expect(await world.whoIs(unnamed, "globex")).toMatchObject({ email: "alice@example.com" });
    expect(links).toEqual([]);
    expect(await world.rows("user", "id = ?", [id])).toBe(1);
  });

  it("R5: is not deleted by a request at another tenant", async () => {
    const browser = world.at("acme");
    await signInAnonymously(browser);
    const elsewhere = world.at("globex", browser);
    const refused = await world.unchanged(() => elsewhere.post("/delete-anonymous-user"));
    expectRefused(refused, 401, "UNAUTHORIZED");
    expect((await browser.post("/delete-anonymous-user")).status).toBe(200);
  });

  it("links on social sign-in inside the tenant", async () => {
    const browser = world.at("acme");
    const id = await signInAnonymously(browser);
    await world.signInAtProvider(browser, "acme");
    const { email, tenantId } = (await world.whoIs(browser)) ?? {};
    expect([email, tenantId]).toEqual(["alice@example.com", world.ids.acme]);
    expect(links).toEqual([{ from: id, to: email, tenantId }]);
    expect(await world.rows("user", "id = ?", [id])).toBe(0);
  });
});
