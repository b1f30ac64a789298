import { passkey } from "@better-auth/passkey";
import { createAuthEndpoint, requestPasswordReset } from "better-auth/api";
import { bearer } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { registerPasskey, signInByPasskey } from "../../features/policy/two-factor";
import { BASE_URL } from "../../support/instance";
import {
  createWorld,
  EMAIL,
  type Person,
  type Place,
  type SessionAnswer,
  shareWorld,
  type World,
} from "../../support/world";

const expireSessions = (world: World, { id }: Person) =>
  world.database.query(`update "session" set "expiresAt" = ? where "userId" = ?`, [
    new Date(Date.now() - 1000).toISOString(),
    id,
  ]);

describe("R4: a session takes its request into its tenant", () => {
  const world = shareWorld();

  it.each([
    ["that has expired", (person: Person) => expireSessions(world, person)],
    ["that was revoked", (person: Person) => world.at("acme", person).post("/sign-out")],
  ])("one %s leads to no tenant", async (_, end) => {
    const { acme, platform } = await world.strangers();
    await end(acme);
    const window = () => world.at("platform", acme);
    await window().post("/request-password-reset", { email: acme.email });
    expect(world.mails).toMatchObject([{ userId: platform.id, sentIn: null }]);
    expect((await window().get("/list-sessions")).status).toBe(401);
  });

  it("get-session cleans up an expired one, in a tenant as on the platform", async () => {
    for (const person of Object.values(await world.strangers())) {
      await expireSessions(world, person);
      const window = world.at("platform", person);
      const answer = await window.get("/get-session");
      expect([answer.status, answer.data]).toEqual([200, null]);
      expect(await world.rows("session", `"userId" = ?`, [person.id])).toBe(0);
      expect(window.cookieHeader()).toBe("");
    }
  });

  it("threat: unsigned cookie trusted: one that claims a tenant is not heard", async () => {
    const { acme, platform } = await world.strangers();
    const { email } = acme;
    const id = world.ids.acme;
    const name = "better-auth.session_token";
    const value = acme.cookies.get(name) ?? "";
    const token = decodeURIComponent(value).split(".")[0];
    expect(token).toBe(acme.token);
    const session = { session: { tenantId: id, token }, user: { tenantId: id } };
    const forged = [
      `tenantId=${id}; x-tenant-id=${id}; tenant=${id}; tenant_id=${id}`,
      `${name}=${token}`,
      `${name}=${encodeURIComponent(`${token}.${"A".repeat(43)}=`)}`,
      `${name}=${token}; better-auth.session_data=${btoa(JSON.stringify({ session }))}`,
    ];
    const reset = async (cookie: string) => {
      await world.browser({ cookie }).post("/request-password-reset", { email });
      return world.mails.splice(0);
    };
    for (const cookie of forged) {
      const window = world.browser({ cookie });
      const { status, data } = await window.get<SessionAnswer | null>("/get-session");
      expect([status, data], cookie).toEqual([200, null]);
      expect((await window.get("/list-sessions")).status, cookie).toBe(401);
      expect(await reset(cookie), cookie).toMatchObject([{ userId: platform.id, sentIn: null }]);
    }
    // The same with the signature: the test would notice if none of these were cookies at all.
    expect(await reset(`${name}=${value}`)).toMatchObject([{ userId: acme.id, sentIn: id }]);
  });

  it("a cookie without a name is none", async () => {
    const jane = await world.as("jane", "acme");
    const cookie = `better-auth.session_tokenX; ${jane.cookieHeader()}`;
    const { data } = await world.browser({ cookie }).get<SessionAnswer | null>("/get-session");
    expect(data?.user.id).toBe(jane.id);
  });

  it("signing out clears the cookie, also next to the bearer token of another tenant", async () => {
    const world = await createWorld({ plugins: [bearer()] });
    const { acme, globex } = await world.strangers();
    const authorization = `Bearer ${globex.token}`;
    const window = world.browser({ ...world.naming("acme"), authorization });
    for (const [name, value] of acme.cookies) window.cookies.set(name, value);
    expect((await window.get<SessionAnswer>("/get-session")).data.user.id).toBe(acme.id);
    expect((await window.post("/sign-out")).status).toBe(200);
    expect(window.cookieHeader()).toBe("");
  });

  it("both steps of a flow run in the same tenant, with the cookie of a session that is over", async () => {
    const world = await createWorld({
      plugins: [passkey({ rpID: "localhost" })],
      tenant: { scopedModels: ["passkey"] },
    });
    const { acme, platform } = await world.strangers();
    const { authenticator } = await registerPasskey(platform, true);
    const window = world.at("platform", acme);
    await acme.post("/sign-out");
    expect((await signInByPasskey(window, authenticator)).status).toBe(200);
    expect((await world.whoIs(window))?.id).toBe(platform.id);
  });

  it("an Authorization header that is no session leaves it to the cookie", async () => {
    const bearing = await createWorld({ plugins: [bearer()] });
    for (const { strangers, at, mails } of [world, bearing]) {
      const { acme } = await strangers();
      const { email, id } = acme;
      for (const authorization of ["Basic amFuZTpzZWNyZXQ=", "Bearer forged.signature"]) {
        const options = { headers: { authorization } };
        await at("platform", acme).post("/request-password-reset", { email }, options);
        expect(mails.splice(0), authorization).toMatchObject([{ userId: id }]);
      }
    }
  });
});

describe("R4: code of the application's own", () => {
  const body = { email: EMAIL };
  const relay = createAuthEndpoint("/relay", { method: "POST" }, (ctx) => {
    const headers = { cookie: ctx.headers?.get("cookie") ?? "" };
    return requestPasswordReset({ ...ctx, body, headers, asResponse: false });
  });
  const lookUp = createAuthEndpoint("/look-up", { method: "GET" }, ({ context, query }) =>
    context.internalAdapter.findSession(query?.token),
  );
  const own = { id: "own", endpoints: { relay, lookUp } };
  const world = shareWorld({ plugins: [own] });
  const reset = (input: object) => world.api.requestPasswordReset({ body, ...input });

  it.each<[string, Place, (headers: { cookie: string }) => Promise<unknown>]>([
    ["headers", "acme", (headers) => reset({ headers })],
    ["a request", "acme", (headers) => reset({ request: new Request(BASE_URL, { headers }) })],
    [
      "a cookie, from endpoint to endpoint",
      "acme",
      (headers) => world.browser(headers).post("/relay"),
    ],
    ["nothing", "platform", () => reset({})],
  ])("that passes on %s of a user of Acme works in %s", async (_, place, call) => {
    const janes = await world.janes();
    await call({ cookie: janes.acme.cookieHeader() });
    expect(world.mails).toMatchObject([{ userId: janes[place].id, sentIn: world.ids[place] }]);
  });

  it("that looks up a session of Acme for a caller without one finds none", async () => {
    const query = { token: (await world.as("jane", "acme")).token };
    const { status, data } = await world.browser().get("/look-up", { query });
    expect([status, data]).toEqual([200, null]);
    const api = world.api as unknown as { lookUp(input: object): Promise<unknown> };
    expect(await api.lookUp({ query })).toBe(null);
  });
});
