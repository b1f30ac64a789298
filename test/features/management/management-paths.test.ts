import { describe, expect, it } from "vitest";
import { PASSWORD } from "../../support/instance";
import { outcome, shareWorld } from "../../support/world";

/** Other ways to write a path. Some are the same URL after all, most are no path of ours. */
const tricks = (path: string) => [
  ...`${path} /${path} //${path} ${path}/ ${path}// ${path}/. ${path}/x/.. /.${path} /ok/..${path}
  /ok/%2e%2e${path} /ok/..%2f${path.slice(1)} ${path}%20 ${path}%00 ${path};a=b ${path}.json
  /api/auth${path} /callback${path} ${path.toUpperCase()}`.split(/\s+/),
  path.replace(/\/(?=[^/]*$)/, "%2f"),
  ...["/tenant//", "/tenant%2F", "/tenant%5C", "/tenant\\", "/%74enant/", "/Tenant/"].map((odd) =>
    path.replace("/tenant/", odd),
  ),
];

describe.each([false, true])("threat: path tricks, with skipTrailingSlashes: %s", (skips) => {
  const auth = { advanced: { disableOriginCheck: false, skipTrailingSlashes: skips } };
  const world = shareWorld({ auth });
  const isOneOf = (trick: string, status: number, ...expected: number[]) =>
    expect([trick, expected.includes(status)]).toEqual([trick, true]);

  it("management stays closed", async () => {
    const ordinary = await world.as("jane", "platform");
    const tenantId = world.ids.acme;
    const config = { tenantId, providerId: "google", clientId: "id", clientSecret: "secret" };
    await world.unchanged(async () => {
      for (const trick of tricks("/tenant/oauth-config/register")) {
        isOneOf(trick, (await world.at(null).post(trick, config)).status, 401, 404);
        isOneOf(trick, (await ordinary.fork().post(trick, config)).status, 403, 404);
      }
      for (const trick of tricks("/tenant/get")) {
        const { status, data } = await ordinary.get(trick, { query: { id: tenantId } });
        isOneOf(trick, status, 403, 404);
        expect(JSON.stringify(data)).not.toMatch(/acme/i);
      }
    });
  });

  it("a sign-in by any spelling is in the tenant it names, or is none", async () => {
    const { email } = await world.as("jane", "acme");
    const { email: elsewhere } = await world.as("only-here", "platform");
    const body = { email, password: PASSWORD, tenantId: world.ids.acme };
    for (const trick of tricks("/tenant/sign-in/email")) {
      const answer = await world.at(null).post(trick, body);
      isOneOf(trick, answer.status, 200, 404);
      if (answer.status === 200)
        expect(answer.data.user).toMatchObject({ tenantId: body.tenantId });
    }
    // R2: better-auth's own paths are in the tenant of the header.
    for (const trick of tricks("/sign-in/email")) {
      const { status } = await world.at("acme").post(trick, { ...body, email: elsewhere });
      isOneOf(trick, status, 401, 404);
    }
    const signIn = await world.at(null).post("/tenant/sign-in/email/", body);
    const list = await world.at(null).get("/tenant/list/");
    expect([signIn.status, list.status]).toEqual(skips ? [200, 401] : [404, 404]);
  });

  it.each(["/tenant/sign-up/email", "/tenant/sign-in/email"])(
    "requests forged by another site: %s is no way in",
    async (path) => {
      const visitor = await world.as("visitor", "acme");
      const { email } = path.includes("sign-in") ? visitor : { email: "new@example.com" };
      const body = { name: "N", email, password: PASSWORD, tenantId: world.ids.acme };
      const evil = { origin: "https://evil.example" };
      const navigation = { ...evil, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
      await world.unchanged(async () => {
        for (const [browser, code] of [
          [visitor.fork(evil), "INVALID_ORIGIN"],
          [world.browser(evil), "INVALID_ORIGIN"],
          [world.browser(navigation), "CROSS_SITE_NAVIGATION_LOGIN_BLOCKED"],
        ] as const) {
          expect(outcome(await browser.post(path, body))).toEqual([403, code]);
        }
      });
    },
  );
});
