import { describe, expect, it } from "vitest";
import type { Browser } from "../../support/browser";
import { databases } from "../../support/database";
import { outcome } from "../../support/world";
import { createInviting, INVITED, shareInviting } from "./world";

const CREATE = "/tenant/invitation/create";
const RESEND = "/tenant/invitation/resend";
const REVOKE = "/tenant/invitation/revoke";
const SENT = [200, undefined];
const RECENTLY_SENT = [429, "INVITATION_RECENTLY_SENT"];
const LIMIT_REACHED = [429, "INVITATION_LIMIT_REACHED"];

type Created = { id: string };

describe("threat: a manager fills a mailbox", () => {
  const app = shareInviting({ tenant: { tenantRoles: { admin: ["invitation:*"] } } });

  it("an address is sent one mail per minute, by any call, and no answer shows it", async () => {
    const [tenantId, other] = [await app.home(), await app.home()];
    const operator = await app.operator();
    const person = { tenantId, email: INVITED };
    const first = await operator.post<Created>(CREATE, person);
    const { id } = first.data;
    const shown = JSON.stringify([first.data, await app.list(tenantId), app.sent.at(-1)]);
    expect(shown).not.toContain("mailed");
    const count = app.sent.length;
    const refused = [
      await operator.post(CREATE, person),
      await operator.post(CREATE, { ...person, email: INVITED.toUpperCase() }),
      await operator.post(RESEND, { id }),
    ];
    await operator.post(REVOKE, { id });
    refused.push(await operator.post(CREATE, person));
    expect(refused.map(outcome)).toEqual(refused.map(() => RECENTLY_SENT));
    expect(app.sent).toHaveLength(count);
    // Another address, and another tenant.
    expect((await operator.post(CREATE, { ...person, email: "b@example.com" })).status).toBe(200);
    expect((await operator.post(CREATE, { ...person, tenantId: other })).status).toBe(200);
    await app.aMinuteLater();
    expect((await operator.post(CREATE, person)).status).toBe(200);
  });

  it("a link for the caller is no mail, and does not make the next mail an early one", async () => {
    const tenantId = await app.home();
    const operator = await app.operator();
    const person = { tenantId, email: INVITED };
    const link = () => operator.post<Created>(CREATE, { ...person, send: false });
    const { data } = await link();
    expect(outcome(await link())).toEqual(SENT);
    expect(outcome(await operator.post(RESEND, { id: data.id }))).toEqual(SENT);
    expect(outcome(await link())).toEqual(SENT);
    expect(outcome(await operator.post(RESEND, { id: data.id }))).toEqual(RECENTLY_SENT);
  });

  it("a tenant mails as many within an hour as may be pending, also if they are revoked", async () => {
    const own = await createInviting({ invitations: { maxPendingInvitations: 3 } });
    const operator = await own.operator();
    const invite = (index: number, more: object = {}) => {
      const email = `victim+${index}@example.com`;
      return operator.post<Created>(CREATE, { tenantId: own.ids.acme, email, ...more });
    };
    const earlier = (minutes: number) => {
      const mailedAt = new Date(Date.now() - minutes * 60_000).toISOString();
      return own.write("tenantInvitation", { mailedAt });
    };
    // A mail of the server's own code counts.
    const { id } = await own.invite("acme", "first@example.com");
    for (const index of [1, 2]) {
      const { status, data } = await invite(index);
      expect(status).toBe(200);
      expect((await operator.post(REVOKE, { id: data.id })).status).toBe(200);
    }
    expect(outcome(await invite(3))).toEqual(LIMIT_REACHED);
    await earlier(59);
    expect(outcome(await invite(3))).toEqual(LIMIT_REACHED);
    expect(outcome(await operator.post(RESEND, { id }))).toEqual(LIMIT_REACHED);
    expect(own.sent).toHaveLength(3);
    // Controls: a link is no mail, another tenant has its own, and so has the next hour.
    expect(outcome(await invite(3, { send: false }))).toEqual(SENT);
    expect(outcome(await invite(3, { tenantId: own.ids.globex }))).toEqual(SENT);
    await own.invite("acme", "server@example.com");
    await earlier(61);
    expect(outcome(await operator.post(RESEND, { id }))).toEqual(SENT);
    expect(outcome(await invite(3))).toEqual(SENT);
  });

  it("the server's own code is not limited, and its mails count", async () => {
    const own = await createInviting({ invitations: { maxPendingInvitations: 1 } });
    const { id } = await own.invite("acme");
    await own.invite("acme");
    await own.api.resendTenantInvitation({ body: { id } });
    await own.invite("acme", "b@example.com");
    expect(own.sent).toHaveLength(4);
    const operator = await own.operator();
    expect(outcome(await operator.post(RESEND, { id }))).toEqual(RECENTLY_SENT);
  });

  it("calls are limited like better-auth's own that send mails", async () => {
    const own = await createInviting({ auth: { rateLimit: { enabled: true } } });
    const operator = (await own.operator()).fork({ "x-forwarded-for": "10.31.8.1" });
    for (const [path, body] of [
      [CREATE, { tenantId: own.ids.acme }],
      [RESEND, { id: "x" }],
    ] as const) {
      const answers: number[] = [];
      for (let index = 0; index < 11; index++) {
        const email = `person-${index}@example.com`;
        answers.push((await operator.post(path, { email, ...body })).status);
      }
      expect(answers.slice(0, 10)).not.toContain(429);
      expect(answers.at(-1)).toBe(429);
    }
    expect(own.sent).toHaveLength(10);
  });

  it("names in a mail are short, and in one line", async () => {
    const { id: tenantId } = await app.createTenant();
    const admin = await app.join(tenantId, "admin");
    const mailBy = async (name: string) => {
      await admin.post("/update-user", { name });
      await admin.post(CREATE, { email: `${crypto.randomUUID()}@example.com` });
      const { inviter, invitation } = app.sent.at(-1) ?? {};
      expect(invitation?.inviterName).toBe(inviter?.name);
      return inviter?.name;
    };
    expect(await mailBy("Zoë Ångström")).toBe("Zoë Ångström");
    expect(await mailBy("x".repeat(100))).toBe("x".repeat(100));
    for (const letter of ["x", "😀", "\n"]) {
      const shown = (await mailBy(letter.repeat(101))) ?? "";
      expect([...shown].length).toBeLessThanOrEqual(100);
      expect(shown).toMatch(/^\P{Cc}*…$/u);
    }
    expect(await mailBy("x".repeat(100_000))).toHaveLength(100);
    const spoofed = await mailBy("Eve\r\nBcc: all@example.com\u2028\u202Emoc.live");
    expect(spoofed).toBe("Eve Bcc: all@example.com moc.live");
    await app.change(tenantId, { name: `Acme ${"x".repeat(250)}` });
    await app.invite(tenantId, "new@example.com");
    expect(app.sent.at(-1)?.tenant.name).toHaveLength(100);
  });
});

describe("threat: a manager invites without end", () => {
  it("a tenant has as many pending invitations as it may; expired, revoked and accepted ones do not count", async () => {
    const app = await createInviting({ invitations: { maxPendingInvitations: 2 } });
    const operator = await app.operator();
    const invite = (email: string, more: object = {}) =>
      operator.post<Created>(CREATE, { tenantId: app.ids.acme, email, ...more });
    const a = await invite("a@example.com");
    const b = await invite("b@example.com", { send: false });
    expect([outcome(a), outcome(b)]).toEqual([SENT, SENT]);
    for (const send of [true, false]) {
      expect(outcome(await invite("c@example.com", { send }))).toEqual(LIMIT_REACHED);
    }
    // One that is pending is sent again, and another tenant has its own.
    await app.aMinuteLater();
    expect(outcome(await invite("a@example.com"))).toEqual(SENT);
    const elsewhere = { tenantId: app.ids.globex, email: "c@example.com" };
    expect(outcome(await operator.post(CREATE, elsewhere))).toEqual(SENT);
    await app.expire(a.data.id);
    const c = await invite("c@example.com");
    expect(outcome(c)).toEqual(SENT);
    // An expired one that is sent again is pending again.
    await app.aMinuteLater();
    expect(outcome(await operator.post(RESEND, { id: a.data.id }))).toEqual(LIMIT_REACHED);
    expect(outcome(await invite("a@example.com"))).toEqual(LIMIT_REACHED);
    await operator.post(REVOKE, { id: b.data.id });
    expect(outcome(await operator.post(RESEND, { id: a.data.id }))).toEqual(SENT);
    await app.accept(app.sent.at(-1)?.token);
    expect(outcome(await invite("d@example.com"))).toEqual(SENT);
  });

  it("100 unless told otherwise", async () => {
    const app = await createInviting();
    for (let index = 0; index < 99; index++) {
      await app.invite("acme", `person-${index}@example.com`, { send: false });
    }
    const operator = await app.operator();
    const invite = (email: string) => operator.post(CREATE, { tenantId: app.ids.acme, email });
    expect(outcome(await invite("a@example.com"))).toEqual(SENT);
    expect(outcome(await invite("b@example.com"))).toEqual(LIMIT_REACHED);
  });
});

describe.each(databases)("threat: many calls at once, on %s", (database) => {
  it("one mail for an address, also if its invitation is revoked meanwhile", async () => {
    const app = await createInviting({ database });
    const operator = await app.operator();
    const body = { tenantId: app.ids.acme, email: INVITED };
    const revokeAll = async () => {
      for (const { id } of await app.list("acme")) await operator.post(REVOKE, { id });
    };
    const calls = Array.from({ length: 20 }, async (_, index) =>
      index % 4 ? operator.post(CREATE, body) : revokeAll(),
    );
    await Promise.all(calls);
    expect(app.sent).toHaveLength(1);
  });

  it("no pending invitation too many", async () => {
    const app = await createInviting({ database, invitations: { maxPendingInvitations: 3 } });
    const operator: Browser = await app.operator();
    const calls = Array.from({ length: 20 }, (_, index) =>
      operator.post(CREATE, { tenantId: app.ids.acme, email: `person-${index}@example.com` }),
    );
    const answers = (await Promise.all(calls)).map(outcome);
    expect(answers.filter(([status]) => status === 200)).toHaveLength(3);
    expect(answers.filter(([status]) => status !== 200)).toEqual(
      Array.from({ length: 17 }, () => LIMIT_REACHED),
    );
    expect([app.sent.length, (await app.statusOf("acme")).length]).toEqual([3, 3]);
  });
});
