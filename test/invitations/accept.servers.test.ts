import { createAuthMiddleware, getSessionFromCtx } from "better-auth/api";
import { describe, expect, it, onTestFinished } from "vitest";
import { runInTenant } from "../../src/index";
import { INVITATION_HEADER } from "../../src/invitations/index";
import { createDatabase, databases } from "../support/database";
import { PASSWORD } from "../support/instance";
import { createInviting, INVITED } from "../support/inviting";
import { outcome } from "../support/world";

const body = { name: "Ada", email: INVITED, password: PASSWORD };

describe.each([
  ["verification required", { requireEmailVerification: true }],
  ["no sign-in after sign-up", { autoSignIn: false }],
])("where better-auth hides that an address is taken: %s", (name, settings) => {
  const create = () =>
    createInviting({
      auth: {
        emailAndPassword: { enabled: true, ...settings },
        emailVerification: { sendOnSignUp: true },
      },
    });

  it("a token that was mailed proves the address: no second mail", async () => {
    const app = await create();
    const { token } = await app.invite("acme");
    const { data } = await app.accept(token);
    expect(data.user).toMatchObject({ email: INVITED, emailVerified: true });
    expect(data.session === null).toBe(name.startsWith("no sign-in"));
    expect(app.mails).toEqual([]);
  });

  it("one that was not mailed proves nothing, and better-auth goes on as always", async () => {
    const app = await create();
    const { token } = await app.invite("acme", INVITED, { send: false });
    const { data } = await app.accept(token);
    expect(data).toMatchObject({ token: null, user: { emailVerified: false } });
    expect(app.mails).toMatchObject([{ kind: "verification", to: INVITED }]);
    expect(await app.statusOf("acme")).toEqual(["accepted"]);
  });

  it("a sign-up whose answer was made up accepts nothing", async () => {
    const app = await create();
    const { token } = await app.invite("acme", INVITED, { send: false });
    await runInTenant(app.ids.acme, () => app.api.signUpEmail({ body }));
    const made = await app.accept(token);
    expect(made.data).toMatchObject({ token: null, user: { email: INVITED } });
    expect(await app.users("acme")).toBe(1);
    expect(await app.statusOf("acme")).toEqual(["pending"]);
    const headers = { [INVITATION_HEADER]: token };
    const eve = { ...body, email: "eve@example.com" };
    const other = await app.at("acme").post("/sign-up/email", eve, { headers });
    expect(outcome(other)).toEqual([403, "INVITATION_EMAIL_MISMATCH"]);
  });
});

it("somebody who is signed in elsewhere accepts, also where a hook has read their session", async () => {
  const read = createAuthMiddleware(async (ctx) => void (await getSessionFromCtx(ctx)));
  const app = await createInviting({ auth: { hooks: { before: read } } });
  const browser = app.browser();
  await app.accept((await app.invite("acme")).token, {}, browser);
  expect(await app.whoIs(browser, "acme")).toMatchObject({ tenantId: app.ids.acme });
  const { token } = await app.invite("globex");
  expect((await app.open(token, browser)).status).toBe(200);
  // What is named still counts.
  const named = await app.open(token, app.at("acme", browser));
  expect(outcome(named)).toEqual([404, "INVITATION_NOT_FOUND"]);
  const { data } = await app.accept(token, {}, browser);
  expect(data.user.tenantId).toBe(app.ids.globex);
  expect(await app.whoIs(browser, "globex")).toMatchObject({ tenantId: app.ids.globex });
});

describe("R12: what the application says about sign-up counts for accepting", () => {
  it("disabled", async () => {
    const app = await createInviting({ auth: { disabledPaths: ["/sign-up/email"] } });
    const { token } = await app.invite("acme");
    const { data } = await app.open(token);
    expect(data.emailAndPassword).toEqual({ enabled: true, signUp: false });
    expect((await app.accept(token)).status).toBe(404);
    expect(await app.statusOf("acme")).toEqual(["pending"]);
  });

  const one = { "/sign-up/email": { window: 60, max: 1 } };
  const two = { "/tenant/invitation/accept": { window: 60, max: 2 } };
  it.each([
    ["a rule for sign-up", one, [404, 429]],
    ["a rule of its own", { ...one, ...two }, [404, 404, 429]],
    ["no rule", {}, [404, 404, 404, 429]],
  ])("limited by %s", async (name, customRules, statuses) => {
    const app = await createInviting({ auth: { rateLimit: { enabled: true, customRules } } });
    // better-auth counts in the process: each case comes from an address of its own.
    const browser = app.browser({ "x-forwarded-for": `10.9.8.${name.length}` });
    const answers: number[] = [];
    for (const _ of statuses) answers.push((await app.accept("x", {}, browser)).status);
    expect(answers).toEqual(statuses);
  });

  it("guarded and answered by a plugin's middleware", async () => {
    const guarded: string[] = [];
    let refuses = true;
    const guard = (path: string) => ({
      path,
      middleware: createAuthMiddleware(async () => {
        guarded.push(path);
        // Not the one that guards the acceptance as well: the router asks that itself.
        if (!refuses || path === "/**") return undefined;
        return new Response("not now", { status: 418 });
      }),
    });
    const middlewares = ["/sign-up/*", "/sign-up/email", "/**"].map(guard) as never;
    const app = await createInviting({ plugins: [{ id: "guard", middlewares }] });
    const { token } = await app.invite("acme");
    expect((await app.accept(token)).status).toBe(418);
    expect(await app.statusOf("acme")).toEqual(["pending"]);
    guarded.length = 0;
    refuses = false;
    expect((await app.accept(token)).status).toBe(200);
    expect(guarded.sort()).toEqual(["/**", "/sign-up/*", "/sign-up/email"]);
    // The server's own code is not guarded, here as there.
    refuses = true;
    const other = await app.invite("globex");
    const { user } = await app.api.acceptTenantInvitation({ body: { ...body, ...other } });
    expect(user.tenantId).toBe(app.ids.globex);
  });
});

it("without transactions, nobody stays who came by an invitation that was revoked midway", async () => {
  const database = await createDatabase("sqlite");
  onTestFinished(() => database.close());
  database.option.transaction = false;
  let revoke = async () => {};
  const before = async () => await revoke();
  const app = await createInviting({
    database,
    auth: { databaseHooks: { user: { create: { before } } } },
  });
  const { id, token } = await app.invite("acme");
  revoke = async () => {
    await database.query(`update "tenantInvitation" set status = 'revoked' where id = ?`, [id]);
  };
  expect(outcome(await app.accept(token))).toEqual([404, "INVITATION_NOT_FOUND"]);
  expect(await app.users("acme")).toBe(0);
});

const CROWD = 50;
const times = <T>(run: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: CROWD }, (_, index) => run(index)));

describe.each(databases)("races on %s", (database) => {
  it("50 acceptances of one token at once, by the link and at sign-up: one user", async () => {
    const app = await createInviting({ database });
    const { token } = await app.invite("acme");
    const headers = { [INVITATION_HEADER]: token };
    const answers = await times<{ status: number }>((index) =>
      index % 2 ? app.accept(token) : app.at("acme").post("/sign-up/email", body, { headers }),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(await app.users("acme")).toBe(1);
    expect(await app.rows("session")).toBe(1);
    expect(await app.statusOf("acme")).toEqual(["accepted"]);
    expect(app.events.filter(({ type }) => type === "invitation:accepted")).toHaveLength(1);
    const second = await app.invite("globex");
    const accepted = (await times(() => app.accept(second.token))).map(outcome);
    const late = accepted.filter(([status]) => status !== 200);
    expect(late).toEqual(accepted.slice(1).map(() => [409, "INVITATION_ALREADY_ACCEPTED"]));
    expect(await app.users("globex")).toBe(1);
  });

  it("50 invitations of one address at once: one that is pending, one link that is good", async () => {
    const app = await createInviting({ database });
    const operator = await app.operator();
    const tenantId = app.ids.acme;
    const sent = await times(() =>
      operator.post<{ id: string }>("/tenant/invitation/create", { tenantId, email: INVITED }),
    );
    expect(new Set(sent.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(sent.map(({ data }) => data.id)).size).toBe(1);
    expect(await app.statusOf("acme")).toEqual(["pending"]);
    const links = await Promise.all(app.sent.map(({ token }) => app.open(token)));
    expect(links).toHaveLength(CROWD);
    expect(links.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  it("accepted and revoked at once: a user with an accepted one, or nobody", async () => {
    const app = await createInviting({ database });
    const operator = await app.operator();
    for (let round = 0; round < 8; round++) {
      const email = `person-${round}@example.com`;
      const { id, token } = await app.invite("acme", email);
      const answers = await Promise.all([
        app.accept(token),
        operator.post("/tenant/invitation/revoke", { id }),
      ]);
      const [accepted, revoked] = answers.map(({ status }) => status === 200);
      expect(accepted).not.toBe(revoked);
      expect(await app.users("acme", email)).toBe(accepted ? 1 : 0);
    }
  });
});
