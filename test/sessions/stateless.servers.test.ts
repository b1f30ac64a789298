import { betterAuth } from "better-auth";
import { expect, it } from "vitest";
import { tenantAuth } from "../../src/index";
import { Browser } from "../support/browser";
import { BASE_URL, PASSWORD } from "../support/instance";
import type { SessionAnswer } from "./stores";

const EMAIL = "same@example.com";

/** Without a `database` better-auth keeps its rows in memory, and sessions in an encrypted cookie. */
async function createStateless() {
  const auth = betterAuth({
    secret: "a test secret that is long enough for everybody",
    baseURL: "http://localhost:3000",
    emailAndPassword: {
      enabled: true,
      password: { hash: async (password) => password, verify: async () => true },
    },
    session: { cookieCache: { enabled: true, strategy: "jwe", refreshCache: true } },
    logger: { disabled: true },
    plugins: [tenantAuth()],
  });
  const browser = (headers?: Record<string, string>) =>
    new Browser(auth.handler, BASE_URL, headers);
  const createTenant = async (slug: string) =>
    (await auth.api.createTenant({ body: { name: slug, slug } })).id;
  const [a, b] = [await createTenant("aa"), await createTenant("bb")];
  const signUp = async (tenantId: string | null) => {
    const window = browser();
    const path = tenantId === null ? "/sign-up/email" : "/tenant/sign-up/email";
    const body = { name: "S", email: EMAIL, password: PASSWORD, ...(tenantId ? { tenantId } : {}) };
    const { status, data } = await window.post<{ user: { id: string } }>(path, body);
    expect(status).toBe(200);
    return { window, id: data.user.id };
  };
  return { auth, browser, a, b, signUp };
}

it("R4, R5: without a database a session in an encrypted cookie is its own tenant's", async () => {
  const { a, b, signUp } = await createStateless();
  const people = [
    { ...(await signUp(a)), at: a, elsewhere: [b] },
    { ...(await signUp(b)), at: b, elsewhere: [a] },
    { ...(await signUp(null)), at: null, elsewhere: [a, b] },
  ];
  for (const { window, id, at, elsewhere } of people) {
    const own = await window.get<SessionAnswer>("/get-session");
    expect([own.data.user.id, own.data.session.tenantId]).toEqual([id, at]);
    for (const tenantId of elsewhere) {
      const there = window.fork({ "x-tenant-id": tenantId });
      expect((await there.get("/get-session")).data).toBeNull();
      const used = await there.post("/update-user", { name: "Across" });
      expect([used.status, used.code]).toEqual([401, "UNAUTHORIZED"]);
      // The session token is there as well, so what was cached can be read again at home.
      const { data } = await there.fork({}).get<SessionAnswer>("/get-session");
      expect(data.user).toMatchObject({ id, name: "S" });
    }
  }
});

it("threat: sessions survive deletion: a cookie of a deleted tenant is dead", async () => {
  const { auth, a, b, signUp } = await createStateless();
  const [victim, survivor] = [await signUp(a), await signUp(b)];
  await auth.api.deleteTenant({ body: { tenantId: a } });
  expect((await victim.window.fork().get("/get-session")).data).toBeNull();
  const used = await victim.window.fork().post("/update-user", { name: "Still here" });
  expect([used.status, used.code]).toEqual([401, "UNAUTHORIZED"]);
  const { data } = await survivor.window.get<SessionAnswer>("/get-session");
  expect(data.user.id).toBe(survivor.id);
});
