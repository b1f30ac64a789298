import { symmetricEncrypt } from "better-auth/crypto";
import { magicLink } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { INVITATION_HEADER } from "../../src/invitations/index";
import { PASSWORD } from "../support/instance";
import { createInviting, INVITED, shareInviting } from "../support/inviting";
import { outcome, SUBDOMAINS } from "../support/world";

const NOT_FOUND = [404, "INVITATION_NOT_FOUND"];
const body = { name: "Eve", email: INVITED, password: PASSWORD };

describe("threat: an invitation as a key", () => {
  const app = shareInviting({
    plugins: (send) => [magicLink({ sendMagicLink: send("link") })],
    auth: { socialProviders: { google: { clientId: "id", clientSecret: "secret" } } },
  });

  it("of A at B: nothing, by link and by header", async () => {
    const [a, b] = [await app.home(), await app.home()];
    const { token } = await app.invite(a);
    const headers = { [INVITATION_HEADER]: token };
    const inB = { query: { tenantId: b } };
    const path = "/tenant/invitation/get";
    const atB = () => app.at(b);
    const answers = [
      await app.accept(token, {}, atB()),
      await app.accept(token, { tenantId: b }),
      await app.browser().post("/tenant/invitation/accept", { ...body, token }, inB),
      await app.open(token, atB()),
      await app.browser().get(path, { query: { token, tenantId: b } }),
      await atB().post("/sign-up/email", body, { headers }),
      await atB().post("/sign-in/social", { provider: "google" }, { headers }),
    ];
    expect(answers.map(outcome)).toEqual(answers.map(() => NOT_FOUND));
    const own = await app.browser().get(path, { query: { token, tenantId: a } });
    expect(own.status).toBe(200);
    expect([await app.users(a), await app.users(b)]).toEqual([0, 0]);
    expect(await app.statusOf(a)).toEqual(["pending"]);
  });

  it("on the platform: it leads into its tenant, and makes nobody there", async () => {
    const a = await app.home();
    const { token } = await app.invite(a);
    const headers = { [INVITATION_HEADER]: token };
    const signUp = await app.browser().post("/sign-up/email", body, { headers });
    expect(outcome(signUp)).toEqual([400, "TENANT_ID_REQUIRED"]);
    // Also in the browser of somebody of the platform.
    const accepted = await app.accept(token, {}, (await app.as("jane", "platform")).fork());
    expect(accepted.data.user.tenantId).toBe(a);
    expect(await app.users("platform")).toBe(0);
  });

  it("altered in any place, or something else that is sealed: nothing; and it is no other token", async () => {
    const a = await app.home();
    const { token, id } = await app.invite(a);
    const step = Math.max(1, Math.floor(token.length / 40));
    for (let at = 0; at < token.length; at += step) {
      const other = token[at] === "a" ? "b" : "a";
      const altered = token.slice(0, at) + other + token.slice(at + 1);
      expect([at, ...outcome(await app.open(altered))]).toEqual([at, ...NOT_FOUND]);
    }
    await app.at(a).post("/sign-in/magic-link", { email: INVITED, callbackURL: "/in" });
    const link = app.lastMail("link").token;
    const sealed = { token: `${id}.x`, tenantId: a, since: "1", path: "/tenant/invitation" };
    const key = app.context.secretConfig;
    const cipher = await symmetricEncrypt({ key, data: JSON.stringify(sealed) });
    const forged = `tenant~${cipher.replaceAll("$", "~")}`;
    const texts = [token.toUpperCase(), `${token}00`, token.slice(0, -2), "tenant~", "x"];
    for (const wrong of [...texts, link, forged, undefined, null, 1, {}, [token]]) {
      expect(outcome(await app.accept(wrong))).toEqual(NOT_FOUND);
    }
    const clicked = await app.browser().get("/magic-link/verify", { query: { token } });
    expect(clicked.location).toContain("INVALID_TOKEN");
    expect(await app.users(a)).toBe(0);
  });

  it("for another address: 403, whoever asks; an address alone lets nobody in", async () => {
    const a = await app.home();
    const { token } = await app.invite(a);
    const headers = { [INVITATION_HEADER]: token };
    const eve = { ...body, email: "eve@example.com" };
    for (const answer of [
      await app.accept(token, eve),
      await app.at(a).post("/sign-up/email", eve, { headers }),
    ]) {
      expect(outcome(answer)).toEqual([403, "INVITATION_EMAIL_MISMATCH"]);
    }
    expect(await app.users(a, "eve@example.com")).toBe(0);
    const unproven = await app.at(a).post("/sign-up/email", body);
    expect(outcome(unproven)).toEqual([403, "INVITATION_REQUIRED"]);
    const claimed = await app.at(a).post("/sign-up/email", { ...body, emailVerified: true });
    expect(claimed.status).toBeGreaterThanOrEqual(400);
    expect(await app.users(a)).toBe(0);
    const other = { ...body, email: INVITED.toUpperCase() };
    expect((await app.at(a).post("/sign-up/email", other, { headers })).status).toBe(200);
  });

  it("of a deleted tenant whose number was given again: nothing", async () => {
    const own = await createInviting({
      auth: { advanced: { database: { generateId: "serial" } } },
    });
    const { globex: tenantId } = own.ids;
    const { token } = await own.invite("globex");
    await own.api.deleteTenant({ body: { tenantId } });
    expect(outcome(await own.accept(token))).toEqual([404, "TENANT_NOT_FOUND"]);
    expect((await own.createTenant("next")).id).toBe(tenantId);
    expect((await own.accept(token)).status).toBe(404);
    expect(await own.users(tenantId)).toBe(0);
  });
});

describe("R9: where a link leads", () => {
  const invite = async (app: Pick<ReturnType<typeof shareInviting>, "ids" | "as">, more: object) =>
    (await app.as("admin", "platform")).post<{ url: string }>("/tenant/invitation/create", {
      tenantId: app.ids.acme,
      email: INVITED,
      send: false,
      ...more,
    });

  it("to the platform or to its tenant's own host, never to another tenant's", async () => {
    const app = await createInviting({
      hosts: SUBDOMAINS,
      auth: { trustedOrigins: ["http://*.example.com"] },
    });
    const own = await invite(app, { redirectTo: "http://acme.example.com/join" });
    expect(own.data.url).toMatch(/^http:\/\/acme\.example\.com\/join\?token=/);
    const other = await invite(app, { redirectTo: "http://globex.example.com/join" });
    expect(outcome(other)).toEqual([403, "INVALID_REDIRECT_URL"]);
    expect((await invite(app, { redirectTo: "http://example.com/join" })).status).toBe(200);
    // The tenant's own pages still do not act in the operator's name.
    const operator = await app.as("admin", "platform");
    const forged = await operator.post(
      "/tenant/invitation/create",
      { tenantId: app.ids.acme, email: INVITED },
      { headers: { origin: "http://acme.example.com" } },
    );
    expect(outcome(forged)).toEqual([403, "INVALID_ORIGIN"]);
    const { token } = await app.invite("acme");
    expect(outcome(await app.open(token, app.at("globex")))).toEqual(NOT_FOUND);
    for (const place of ["acme", "platform"]) {
      expect((await app.open(token, app.at(place))).status).toBe(200);
    }
  });

  it("with one token: a page that has one in its address already is refused", async () => {
    const app = await createInviting();
    for (const redirectTo of ["/join?token=x", "/join?a=b&token", "/join?%74oken=x"]) {
      const refused = [redirectTo, 400, "VALIDATION_ERROR"];
      expect([redirectTo, ...outcome(await invite(app, { redirectTo }))]).toEqual(refused);
    }
    const { data } = await invite(app, { redirectTo: "/join?tokens=x#here" });
    expect(data.url).toMatch(/\/join\?tokens=x&token=tenant[^#]+#here$/);
  });
});
