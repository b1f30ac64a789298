import { anonymous } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import type { Browser } from "../support/browser";
import { PASSWORD } from "../support/instance";
import { createSocialInstance } from "../support/social";
import { createPlaces, EMAIL, expectRefused, PLACES } from "./places";

type Link = { from: unknown; to: unknown; tenantId: string | null };

function linkingPlugin() {
  const links: Link[] = [];
  const plugin = anonymous({
    onLinkAccount: ({ anonymousUser, newUser }) =>
      void links.push({
        from: anonymousUser.user.id,
        to: (newUser.user as { email: string }).email,
        tenantId: getTenantId(),
      }),
  });
  return { links, plugin };
}

async function createAnonymousPlaces() {
  const { links, plugin } = linkingPlugin();
  const places = await createPlaces([plugin]);
  return { ...places, links };
}

async function signInAnonymously(browser: Browser): Promise<string> {
  const answer = await browser.post<{ user: { id: string } }>("/sign-in/anonymous");
  expect(answer.status).toBe(200);
  return answer.data.user.id;
}

const person = { name: "Somebody", email: EMAIL, password: PASSWORD };

describe("anonymous", () => {
  it("signs in inside a tenant, and is nobody elsewhere", async () => {
    const { at, whoIs, ids } = await createAnonymousPlaces();
    for (const place of PLACES) {
      const browser = at(place);
      const id = await signInAnonymously(browser);
      expect(await whoIs(browser, place)).toMatchObject({ id, tenantId: ids[place] });
      expect(await whoIs(browser, "b")).toEqual(place === "b" ? expect.anything() : null);
    }
  });

  it.each(["/sign-up/email", "/tenant/sign-up/email"])("links on %s", async (path) => {
    const { at, links, rows, ids } = await createAnonymousPlaces();
    const browser = at("a");
    const id = await signInAnonymously(browser);
    expect((await browser.post(path, person)).status).toBe(200);
    expect(links).toEqual([{ from: id, to: EMAIL, tenantId: ids.a }]);
    expect(await rows("user")).toBe(1);
  });

  it.each(["/sign-in/email", "/tenant/sign-in/email"])("links on %s", async (path) => {
    const { at, links, rows, ids, signUp } = await createAnonymousPlaces();
    await signUp("a");
    const browser = at("a");
    const id = await signInAnonymously(browser);
    expect((await browser.post(path, person)).status).toBe(200);
    expect(links).toEqual([{ from: id, to: EMAIL, tenantId: ids.a }]);
    expect(await rows("user", "id = ?", [id])).toBe(0);
  });

  it("R3: nobody of A is linked, or deleted, by a sign-up at B", async () => {
    const { at, naming, links, rows } = await createAnonymousPlaces();
    const browser = at("a");
    const id = await signInAnonymously(browser);
    for (const path of ["/sign-up/email", "/tenant/sign-up/email"]) {
      const elsewhere = browser.fork(naming("b"));
      const answer = await elsewhere.post(path, { ...person, email: `${path.length}@example.com` });
      expect(answer.status).toBe(200);
    }
    expect(links).toEqual([]);
    expect(await rows("user", "id = ?", [id])).toBe(1);
  });

  it("R5: is not deleted by a request at B", async () => {
    const { at, naming, unchanged } = await createAnonymousPlaces();
    const browser = at("a");
    await signInAnonymously(browser);
    const elsewhere = browser.fork(naming("b"));
    const refused = await unchanged(() => elsewhere.post("/delete-anonymous-user"));
    expectRefused(refused, 401, "UNAUTHORIZED");
    expect((await browser.post("/delete-anonymous-user")).status).toBe(200);
  });

  it("links on social sign-in inside the tenant", async () => {
    const { links, plugin } = linkingPlugin();
    const app = await createSocialInstance({ plugins: [plugin] });
    const { id: tenantId } = await app.createTenant();
    const browser = app.browser({ "x-tenant-id": tenantId });
    const id = await signInAnonymously(browser);
    await app.signIn(browser, tenantId);
    expect((await app.whoIs(browser, tenantId))?.user.email).toBe("alice@example.com");
    expect(links).toEqual([{ from: id, to: "alice@example.com", tenantId }]);
    expect(await app.rows("user")).toBe(1);
  });

  it("R3: a social sign-in at B links nobody of A", async () => {
    const { links, plugin } = linkingPlugin();
    const app = await createSocialInstance({ plugins: [plugin] });
    const a = await app.createTenant();
    const b = await app.createTenant();
    const browser = app.browser({ "x-tenant-id": a.id });
    const id = await signInAnonymously(browser);
    await app.signIn(browser.fork({}), b.id);
    expect(links).toEqual([]);
    expect(await app.rows("user", "id = ?", [id])).toBe(1);
  });
});
