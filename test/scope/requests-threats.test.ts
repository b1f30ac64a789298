import { describe, expect, it } from "vitest";
import { createInstance, PASSWORD } from "../support/instance";
import { createMailbox } from "./mailbox";

const EMAIL = "same@example.com";

/** Five tenants and the platform, with the same e-mail in each of them. */
async function createNeighbours() {
  const { mails, auth } = createMailbox();
  const instance = await createInstance({
    auth,
    tenant: { resolveTenantId: ({ headers }) => headers?.get("x-resolve") },
  });
  const create = async (slug: string) => {
    const { id } = await instance.createTenant(slug);
    return { id, ...(await instance.signUp(id, EMAIL)) };
  };
  return {
    instance,
    mails,
    inResolver: await create("in-resolver"),
    inBody: await create("in-body"),
    inQuery: await create("in-query"),
    inHeader: await create("in-header"),
    inSession: await create("in-session"),
    platform: { id: null, ...(await instance.signUp(null, EMAIL)) },
  };
}

type Neighbours = Awaited<ReturnType<typeof createNeighbours>>;

async function namesByTenant({ instance }: Neighbours) {
  const rows = await instance.database.query(`select name, "tenantId" from "user"`);
  return Object.fromEntries(rows.map(({ name, tenantId }) => [tenantId || null, name]));
}

describe("threat: checked one id, acted on another", () => {
  it("R1: /tenant/* acts on the winner of resolver, body, query, header and session", async () => {
    const world = await createNeighbours();
    const { instance, inResolver, inBody, inQuery, inHeader, inSession } = world;
    const cases: { winner: typeof inBody; headers: Record<string, string>; body: object }[] = [
      {
        winner: inResolver,
        headers: { "x-resolve": inResolver.id },
        body: { tenantId: inBody.id },
      },
      { winner: inBody, headers: {}, body: { tenantId: inBody.id } },
      { winner: inQuery, headers: {}, body: {} },
    ];
    for (const { winner, headers, body } of cases) {
      const window = inSession.browser.fork({ ...headers, "x-tenant-id": inHeader.id });
      const before = await instance.rows("session");
      const answer = await window.post<{
        user: { id: string; tenantId: string };
        session: { userId: string; tenantId: string };
      }>(
        "/tenant/sign-in/email",
        { email: EMAIL, password: PASSWORD, ...body },
        { query: { tenantId: inQuery.id } },
      );
      expect(answer.status).toBe(200);
      expect(answer.data.user).toMatchObject({ id: winner.user.id, tenantId: winner.id });
      expect(answer.data.session).toMatchObject({ userId: winner.user.id, tenantId: winner.id });
      expect(await instance.rows("session")).toBe(before + 1);
      const where = `"tenantId" = ? and "userId" = ?`;
      expect(await instance.rows("session", where, [winner.id, winner.user.id])).toBe(2);
    }
  });

  it("R1, R5: elsewhere it is the winner of resolver, query and header, and the session must fit it", async () => {
    const world = await createNeighbours();
    const { inResolver, inBody, inQuery, inHeader, inSession, mails } = world;
    const before = await namesByTenant(world);
    const body = { tenantId: inBody.id };
    const cases = [
      { winner: inResolver, resolved: inResolver.id },
      { winner: inQuery, resolved: "" },
    ];
    for (const { winner, resolved } of cases) {
      const headers = { "x-resolve": resolved, "x-tenant-id": inHeader.id };
      const query = { tenantId: inQuery.id };
      const stranger = inSession.browser.fork(headers);
      const update = await stranger.post("/update-user", { ...body, name: "Mine" }, { query });
      expect([update.status, update.code]).toEqual([401, "UNAUTHORIZED"]);
      const removal = await stranger.post(
        "/change-password",
        { ...body, currentPassword: PASSWORD, newPassword: "another password" },
        { query },
      );
      expect(removal.status).toBe(401);
      expect(await namesByTenant(world)).toEqual(before);
      await stranger.post("/request-password-reset", { ...body, email: EMAIL }, { query });
      expect(mails.splice(0)).toMatchObject([{ userId: winner.user.id, sentIn: winner.id }]);
      // The same request with a session that fits acts on the winner, and on nobody else.
      const friend = winner.browser.fork(headers);
      const own = await friend.post("/update-user", { name: `By ${winner.id}` }, { query });
      expect(own.status).toBe(200);
      before[winner.id] = `By ${winner.id}`;
      expect(await namesByTenant(world)).toEqual(before);
    }
  });

  it("R3: nobody is moved by a tenantId in the body of a profile or a sign-up", async () => {
    const world = await createNeighbours();
    const { instance, inBody, inSession } = world;
    const before = await namesByTenant(world);
    await inSession.browser.post("/update-user", { name: "Moved", tenantId: inBody.id });
    const after = await namesByTenant(world);
    expect(after).toEqual({ ...before, [inSession.id]: after[inSession.id] });
    await instance.browser({ "x-tenant-id": inSession.id }).post("/sign-up/email", {
      name: "New",
      email: "new@example.com",
      password: PASSWORD,
      tenantId: inBody.id,
    });
    expect(await instance.rows("user", `"tenantId" = ?`, [inBody.id])).toBe(1);
    const elsewhere = `email = 'new@example.com' and "tenantId" <> ?`;
    expect(await instance.rows("user", elsewhere, [inSession.id])).toBe(0);
  });

  it("R7: management acts on the winner too, and only an operator gets there", async () => {
    const { instance, inBody, inQuery, inHeader, inSession } = await createNeighbours();
    const operator = await instance.operator();
    const headers = { "x-tenant-id": inHeader.id };
    const query = { tenantId: inQuery.id };
    const body = {
      tenantId: inBody.id,
      providerId: "google",
      clientId: "i",
      clientSecret: "s",
    };
    const path = "/tenant/oauth-config/register";
    const stranger = await inSession.browser.fork(headers).post(path, body, { query });
    expect([stranger.status, stranger.code]).toEqual([403, "TENANT_MANAGEMENT_NOT_ALLOWED"]);
    expect(await instance.rows("tenantOauthConfig")).toBe(0);
    const answer = await operator.browser.fork(headers).post(path, body, { query });
    expect([answer.status, answer.data.tenantId]).toEqual([200, inBody.id]);
    expect(await instance.rows("tenantOauthConfig")).toBe(1);
  });
});

describe("threat: unsigned cookie trusted", () => {
  it("R4: a cookie that claims a tenant without a signature is not heard", async () => {
    const { instance, inSession, platform, mails } = await createNeighbours();
    const { id, browser } = inSession;
    const [name = "", value = ""] =
      [...browser.cookies].find(([cookie]) => cookie.endsWith("session_token")) ?? [];
    expect(value).toContain(".");
    const token = decodeURIComponent(value).split(".")[0];
    const forged = [
      `tenantId=${id}; x-tenant-id=${id}; tenant=${id}; tenant_id=${id}`,
      `better-auth.tenant=${id}; better-auth.tenantId=${id}; better-auth.tenant_id=${id}`,
      `${name}=${token}`,
      `${name}=${token}.`,
      `${name}=${encodeURIComponent(`${token}.${"A".repeat(43)}=`)}`,
      `${name}=${token}; better-auth.session_data=${btoa(
        JSON.stringify({ session: { session: { tenantId: id, token }, user: { tenantId: id } } }),
      )}`,
    ];
    const send = (cookie: string) => {
      const window = instance.browser({ cookie });
      return {
        session: () => window.get("/get-session"),
        list: () => window.get("/list-sessions"),
        reset: () => window.post("/request-password-reset", { email: EMAIL }),
      };
    };
    for (const cookie of forged) {
      const { session, list, reset } = send(cookie);
      const answer = await session();
      expect([answer.status, answer.data], cookie).toEqual([200, null]);
      expect((await list()).status, cookie).toBe(401);
      await reset();
      expect(mails.splice(0), cookie).toMatchObject([{ userId: platform.user.id, sentIn: null }]);
    }
    // The same with the signature: the test would notice if none of these were cookies at all.
    await send(`${name}=${value}`).reset();
    expect(mails).toMatchObject([{ userId: inSession.user.id, sentIn: id }]);
  });
});

describe("threat: forged Host sticks", () => {
  const forgeries: Record<string, string>[] = [
    { host: "evil.example" },
    { "x-forwarded-host": "evil.example", "x-forwarded-proto": "https" },
  ];

  it.each(["http://localhost:3000", undefined])("with baseURL %s", async (baseURL) => {
    const { mails, auth } = createMailbox();
    const instance = await createInstance({ auth: { ...auth, baseURL } });
    const { id } = await instance.createTenant();
    // Signed up by the server, so that the forged requests are the first ones over HTTP.
    await instance.api.signUpEmailTenant({
      body: { tenantId: id, name: "Somebody", email: EMAIL, password: PASSWORD },
    });
    await instance.api.registerTenantOAuthConfig({
      body: { tenantId: id, providerId: "google", clientId: "i", clientSecret: "s" },
    });
    const browser = instance.browser({ "x-tenant-id": id });
    for (const headers of forgeries) {
      const evil = { headers: { ...headers, origin: "http://evil.example" } };
      const base = "http://evil.example/api/auth";
      await browser.post(`${base}/request-password-reset`, { email: EMAIL }, evil);
      await browser.post(`${base}/tenant/sign-in/social`, { provider: "google" }, evil);
      mails.length = 0;
      await browser.post("/request-password-reset", { email: EMAIL });
      expect(mails).toHaveLength(1);
      expect(new URL(mails[0]?.url ?? "").origin).toBe("http://localhost:3000");
      const social = await browser.post<{ url: string }>("/tenant/sign-in/social", {
        provider: "google",
      });
      expect(new URL(social.data.url).searchParams.get("redirect_uri")).toBe(
        "http://localhost:3000/api/auth/tenant/callback/google",
      );
    }
  });
});
