import { oAuthProxy } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { Answer, Browser } from "../support/browser";
import { GLOBAL, type SocialOptions, type SocialWorld, shareSocialWorld } from "../support/social";

const PREVIEW = "http://localhost:3000";
const PRODUCTION = "http://production.example.com";

/** A preview that signs people in through production, both played by one instance. */
const sharePreview = (gitlab: SocialOptions["gitlab"] = {}) =>
  shareSocialWorld({
    gitlab,
    plugins: [oAuthProxy({ productionURL: PRODUCTION, currentURL: PREVIEW })],
    auth: {
      baseURL: {
        allowedHosts: ["localhost:3000", "production.example.com"],
        protocol: "http",
        fallback: PREVIEW,
      },
    },
  });

/** Follows redirects for as long as they lead to this server, perhaps with a tenant's name. */
async function follow(browser: Browser, url: string, query = {}): Promise<Answer> {
  let answer = await browser.get(url);
  for (let hops = 0; hops < 5 && answer.location?.includes("/api/auth/callback"); hops++) {
    answer = await browser.get(answer.location, { query });
  }
  return answer;
}

/** Addresses at the provider that a person may make of the one that the tenant sent. */
const callback = `${PRODUCTION}/api/auth/callback/gitlab`;
const CHANGES: [what: string, changes: Record<string, string>][] = [
  ["as it is", {}],
  ["with the platform's callback", { redirect_uri: callback }],
  ["with the platform's client", { client_id: GLOBAL.clientId }],
  ["with both of the platform", { client_id: GLOBAL.clientId, redirect_uri: callback }],
];

/** Goes the changed way to Acme, and comes back to each of the two callbacks, named and not. */
async function goChanged(world: SocialWorld, changes: Record<string, string>) {
  const attempts: { answer: Answer; made: number; by: (string | undefined)[] }[] = [];
  for (const path of ["/tenant/callback/gitlab", "/callback/gitlab"]) {
    for (const name of [{ tenantId: world.ids.acme }, {}]) {
      const browser = world.at(null);
      const { data, status } = await world.start(browser, "acme");
      expect(status).toBe(200);
      const url = new URL(data.url);
      for (const change of Object.entries(changes)) url.searchParams.set(...change);
      const back = new URL(await world.idp.authorize(url.href, "alice"));
      back.pathname = `/api/auth${path}`;
      const [exchanges, sessions] = [world.idp.exchanges().length, await world.rows("session")];
      const answer = await follow(browser, back.href, name);
      const made = (await world.rows("session")) - sessions;
      const by = world.idp.exchanges().slice(exchanges);
      attempts.push({ answer, made, by: by.map(({ params }) => params.client_id) });
    }
  }
  return attempts;
}

describe("root 14: oAuthProxy and a tenant's flow", () => {
  const world = sharePreview();

  it.each(CHANGES)("%s: is never completed with the platform's client", async (_, changes) => {
    const { clientId } = await world.configure("acme");
    const attempts = await world.touchesOnly("acme", () => goChanged(world, changes));
    for (const { made, by } of attempts.filter((attempt) => attempt.made > 0)) {
      expect([made, by]).toEqual([1, [clientId]]);
    }
  });

  it("control: the platform's own flow works through it", async () => {
    const browser = world.at(null);
    const { data } = await world.start(browser, null);
    const answer = await follow(browser, await world.idp.authorize(data.url, "alice"));
    expect([answer.status, answer.location]).toEqual([302, "/welcome"]);
    expect(world.idp.exchanges().at(-1)?.params.client_id).toBe(GLOBAL.clientId);
    expect(await world.whoIs(browser)).toMatchObject({ email: "alice@example.com" });
  });
});

describe.each([
  ["for all", { disableSignUp: true }, {}],
  ["for the tenant", {}, { disableSignUp: true }],
])("root 14: oAuthProxy where sign-up is off %s", (_, gitlab, options) => {
  const world = sharePreview(gitlab);

  it.each(CHANGES)("%s: the tenant's flow is not completed", async (_, changes) => {
    await world.configure("acme", { options });
    const attempts = await goChanged(world, changes);
    expect([await world.rows("user"), await world.rows("session")]).toEqual([0, 0]);
    for (const { answer } of attempts) {
      expect(answer.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
    }
  });
});
