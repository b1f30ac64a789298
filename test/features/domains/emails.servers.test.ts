import { createAuthEndpoint } from "better-auth/api";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { tenantInvitations } from "../../../src/features/invitations/index";
import { databases } from "../../support/database";
import { PASSWORD } from "../../support/instance";
import { createWorld, outcome } from "../../support/world";
import { createDomains, type DomainWorld, shareDomains } from "./world";

const NOT_ALLOWED = [403, "EMAIL_DOMAIN_NOT_ALLOWED"];
const signUpBody = (email: string) => ({ name: "Ada", email, password: PASSWORD });

describe.each(databases)('emailDomains: "verified" on %s', (database) => {
  it("follows the list at once, and is shown to managers as it was set", async () => {
    const world = await createDomains({
      database,
      plugins: [tenantInvitations({ sendInvitationEmail: () => {} })],
    });
    const policy = { emailDomains: "verified" } as const;
    expect((await world.change("acme", { policy })).policy).toEqual(policy);
    const signUp = async (email: string) =>
      outcome(await world.at("acme").post("/sign-up/email", signUpBody(email)));
    const invite = async (email: string) => {
      const body = { tenantId: world.ids.acme, email };
      return outcome(await (await world.operator()).post("/tenant/invitation/create", body));
    };
    const email = (n: number) => `ada-${n}@acme.com`;
    expect(await signUp(email(1))).toEqual(NOT_ALLOWED);
    const { record } = await world.add("acme", "acme.com");
    expect(await signUp(email(1))).toEqual(NOT_ALLOWED);
    expect(await invite(email(1))).toEqual(NOT_ALLOWED);
    world.dns.publish(record);
    await world.verify("acme", "acme.com");
    expect(await signUp(email(1))).toEqual([200, undefined]);
    expect(await invite(email(2))).toEqual([200, undefined]);
    expect(await signUp("ada@sub.acme.com")).toEqual(NOT_ALLOWED);
    // Without a verified address there is no session.
    expect(await world.rowsIn("acme", "session")).toEqual([]);
    const [user] = await world.rowsIn("acme", "user");
    expect(user?.email).toBe(email(1));
    // Globex takes the domain, and with it who may join.
    await world.change("globex", { policy });
    await world.own("globex", "acme.com");
    expect(await signUp(email(3))).toEqual(NOT_ALLOWED);
    const there = world.at("globex").post("/sign-up/email", signUpBody(email(3)));
    expect((await there).status).toBe(200);
    await world.remove("globex", "acme.com");
    const after = world.at("globex").post("/sign-up/email", signUpBody(email(4)));
    expect(outcome(await after)).toEqual(NOT_ALLOWED);
  });
});

describe('an unverified address under emailDomains: "verified"', () => {
  const DAY = 24 * 60 * 60;
  it.each<[string, (world: DomainWorld) => unknown]>([
    ["removed", (world) => world.remove("acme", "acme.com")],
    ["claimed by another tenant", (world) => world.own("globex", "acme.com")],
    [
      "gone from DNS",
      async (world) => {
        world.dns.records.clear();
        await world.gone("acme.com", 8 * DAY);
        expect(await world.verify("acme", "acme.com")).toMatchObject({ verified: false });
      },
    ],
  ])("gets no session when the domain is %s", async (_, lose) => {
    const world = await createDomains();
    await world.change("acme", { policy: { emailDomains: "verified" } });
    await world.own("acme", "acme.com");
    const signIn = async (email: string) =>
      outcome(await world.at("acme").post("/sign-in/email", { email, password: PASSWORD }));
    for (const email of ["ceo@acme.com", "ada@acme.com"]) {
      await world.at("acme").post("/sign-up/email", signUpBody(email));
    }
    await world.write("user", { emailVerified: true }, { email: "ada@acme.com" });
    expect(await signIn("ceo@acme.com")).toEqual([403, "EMAIL_NOT_VERIFIED"]);
    await lose(world);
    expect(await signIn("ceo@acme.com")).toEqual([403, "EMAIL_NOT_VERIFIED"]);
    expect(await world.rowsIn("acme", "session")).toEqual([]);
    // Who has proven the address stays.
    expect(await signIn("ada@acme.com")).toEqual([200, undefined]);
  });

  it("gets none by a plugin's sign-in either, is sent a link, and is let in by it", async () => {
    const world = await createDomains({
      plugins: [knownUserSignIn()],
      auth: { emailVerification: { sendOnSignIn: true } },
    });
    const email = "ceo@acme.com";
    expect((await world.at("acme").post("/sign-up/email", signUpBody(email))).status).toBe(200);
    const signIn = async (path = "/sign-in/email") =>
      outcome(await world.at("acme").post(path, { email, password: PASSWORD }));
    const ways = async () => [await signIn(), await signIn(OWN_SIGN_IN)];
    const [refused, allowed] = [
      [403, "EMAIL_NOT_VERIFIED"],
      [200, undefined],
    ];
    // A list asks for proof of its own addresses only.
    await world.change("acme", { policy: { emailDomains: ["other.com"] } });
    expect(await ways()).toEqual([allowed, allowed]);
    await world.change("acme", { policy: { emailDomains: "verified" } });
    world.mails.length = 0;
    expect(await ways()).toEqual([refused, refused]);
    await world.browser().fetch(world.lastMail("verification").url);
    expect(await ways()).toEqual([allowed, allowed]);
  });
});

const OWN_SIGN_IN = "/own/sign-in";

/** A plugin that signs in without asking whether the address is verified. */
const knownUserSignIn = () => ({
  id: "own",
  endpoints: {
    ownSignIn: createAuthEndpoint(
      OWN_SIGN_IN,
      { method: "POST", body: z.object({ email: z.string() }) },
      async ({ context: { internalAdapter }, body, json }) => {
        const found = await internalAdapter.findUserByEmail(body.email);
        const { userId } = await internalAdapter.createSession(found?.user.id ?? "");
        return json({ userId });
      },
    ),
  },
});

const app = shareDomains({ tenant: { tenantRoles: { admin: ["policy:update", "domain:*"] } } });

it("an administrator cannot lock themselves out with it", async () => {
  const { id: tenantId } = await app.createTenant();
  const admin = await app.join(tenantId, "admin", "admin@lockout.com");
  const policy = { emailDomains: "verified" };
  const update = async () => outcome(await admin.post("/tenant/update", { tenantId, policy }));
  // Whether the tenant has the domain or not.
  expect(await update()).toEqual([409, "POLICY_LOCKS_OUT"]);
  await app.own(tenantId, "lockout.com");
  expect(await update()).toEqual([409, "POLICY_LOCKS_OUT"]);
  await app.write("user", { emailVerified: true }, { id: admin.id });
  expect(await update()).toEqual([200, undefined]);
});

it.each(["all", ["verified"], "", [], true])("%j is neither a list nor the word", async (given) => {
  const body = { tenantId: app.ids.acme, policy: { emailDomains: given } };
  const answer = await (await app.operator()).post("/tenant/update", body);
  expect(outcome(answer)).toEqual([400, "VALIDATION_ERROR"]);
});

it("without the plugin it is refused, and a policy from before admits no user", async () => {
  const world = await createWorld();
  const body = { tenantId: world.ids.acme, policy: { emailDomains: "verified" } };
  const answer = await (await world.operator()).post("/tenant/update", body);
  expect(outcome(answer)).toEqual([400, "VALIDATION_ERROR"]);
  const policy = JSON.stringify({ emailDomains: "verified" });
  await world.write("tenant", { policy }, { id: world.ids.acme });
  const signUp = await world.at("acme").post("/sign-up/email", signUpBody("ada@acme.com"));
  expect(outcome(signUp)).toEqual(NOT_ALLOWED);
});

describe("discover", () => {
  const discover = (domain: string) => app.browser().get("/tenant/discover", { query: { domain } });

  it("tells name, slug and sign-in page of the tenant that has verified a domain, and no more", async () => {
    const world = await createDomains({
      domains: { signInURL: ({ slug }) => `https://${slug}.example.com/sign-in` },
    });
    const find = async (domain: string) =>
      (await world.browser().get("/tenant/discover", { query: { domain } })).data;
    const { record } = await world.add("acme", "acme.com");
    expect(await find("acme.com")).toEqual([]);
    world.dns.publish(record);
    await world.verify("acme", "acme.com");
    const signInURL = "https://acme.example.com/sign-in";
    expect(await find("ACME.com.")).toEqual([{ name: "ACME", slug: "acme", signInURL }]);
    for (const domain of ["sub.acme.com", "globex.com"]) expect(await find(domain)).toEqual([]);
    await world.own("globex", "acme.com");
    expect(await find("acme.com")).toMatchObject([{ slug: "globex" }]);
    await world.change("globex", { status: "suspended" });
    expect(await find("acme.com")).toEqual([]);
  });

  it("has no page where the application names none, and is the same for everyone", async () => {
    await app.own("acme", "open.com");
    expect((await discover("open.com")).data).toEqual([
      { name: "ACME", slug: "acme", signInURL: null },
    ]);
    const jane = await app.as("jane", "globex");
    const query = { domain: "open.com" };
    expect((await jane.get("/tenant/discover", { query })).data).toEqual(
      (await discover("open.com")).data,
    );
  });

  it.each(["ada@acme.com", "", "com", "x".repeat(5000)])("%s is no domain", async (domain) => {
    expect(outcome(await discover(domain))).toEqual([400, "INVALID_DOMAIN"]);
  });

  it("is limited, so that a list of customers cannot be made", async () => {
    const world = await createDomains({ auth: { rateLimit: { enabled: true } } });
    const ask = () =>
      world.browser({ "x-forwarded-for": "203.0.113.9" }).get("/tenant/discover", {
        query: { domain: "acme.com" },
      });
    const statuses: number[] = [];
    for (let tries = 0; tries < 21; tries++) statuses.push((await ask()).status);
    expect(statuses).toEqual([...Array(20).fill(200), 429]);
  });
});
