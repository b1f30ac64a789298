// A database may have one connection, and a transaction may have it: whatever is asked inside of
// one goes through it, or everybody waits for ever. Here no process remembers a tenant for longer
// than one statement, so that everything that can be asked is.
import {
  anonymous,
  deviceAuthorization,
  emailOTP,
  magicLink,
  multiSession,
  oneTimeToken,
  organization,
  twoFactor,
  username,
} from "better-auth/plugins";
import { expect, it, onTestFinished, vi } from "vitest";
import { createInviting } from "../features/invitations/world";
import type { Answer, Browser } from "../support/browser";
import { databases } from "../support/database";
import { PASSWORD } from "../support/instance";
import { combine } from "../support/matrix";
import { mapStorage } from "../support/stores";
import { EMAIL } from "../support/world";

const cookieCache = { enabled: true, maxAge: 86_400 };
const storage = () => mapStorage().storage;
const STORES = [
  { name: "the database", session: {} },
  { name: "the database and a cookie", session: { cookieCache } },
  { name: "secondary storage", storage, session: {} },
  { name: "all three", storage, session: { storeSessionInDatabase: true, cookieCache } },
];
const KINDS = databases.filter((kind) => kind !== "mysql");
const LATE = { expiresIn: 86_400 };
const DEVICE = "urn:ietf:params:oauth:grant-type:device_code";

async function createOneConnection(kind: (typeof KINDS)[number], store: (typeof STORES)[number]) {
  const world = await createInviting({
    database: kind,
    store,
    tenant: {
      tenantRoles: { admin: ["tenant:update", "policy:update", "invitation:*"] },
      scopedModels: ["deviceCode", "organization", "member", "invitation", "team", "teamMember"],
    },
    auth: { session: { ...store.session, updateAge: 0 } },
    plugins: (send) => [
      emailOTP({ sendVerificationOTP: send("code"), ...LATE }),
      magicLink({ sendMagicLink: send("link"), ...LATE }),
      organization({ teams: { enabled: true } }),
      deviceAuthorization({ verificationUri: "/device", expiresIn: "1d" }),
      oneTimeToken({ expiresIn: 1440 }),
      ...[anonymous(), multiSession(), twoFactor(), username()],
    ],
  });
  const policy = { signUp: "open", session: LATE, password: { minLength: 9 } } as const;
  await world.change("acme", { policy });
  const operator = await world.operator();
  const { option, statements } = world.database;
  if (kind === "postgres") option.options.max = 1;
  vi.useFakeTimers({ toFake: ["Date"] });
  statements.push = () => {
    // Some things are done when the test is over already.
    if (vi.isFakeTimers()) vi.setSystemTime(Date.now() + 10_500);
    return 0;
  };
  onTestFinished(() => void vi.useRealTimers());
  return { ...world, operator };
}

/** Says which step it is that waits for ever. */
async function step<T>(name: string, run: () => Promise<Answer<T>>): Promise<T> {
  const waited = new Promise<undefined>((resolve) => setTimeout(resolve, 4000));
  const answer = await Promise.race([run(), waited]);
  expect(answer ?? "waits for ever", name).toHaveProperty("status");
  const { status = 0, data } = answer ?? {};
  expect(status, `${name}: ${JSON.stringify(data)}`).toBeLessThan(400);
  return data as T;
}

it.each(combine(KINDS, STORES).map(([kind, store]) => [kind, store.name, store] as const))(
  "%s with one connection, sessions in %s: nothing waits for ever",
  { timeout: 60_000 },
  async (kind, _, store) => {
    const { at, sent, lastMail, operator, ids, setRole } = await createOneConnection(kind, store);
    const open = () => at("acme");
    const unnamed = (browser: Browser) => browser.fork({});
    const signIn = async (browser: Browser) => {
      await step("sign-in", () =>
        browser.post("/sign-in/email", { email: EMAIL, password: PASSWORD }),
      );
      return browser;
    };
    const jane = open();
    const { user } = await step("sign-up", () =>
      jane.post<{ user: { id: string } }>("/sign-up/email", {
        name: "Jane",
        email: EMAIL,
        password: PASSWORD,
      }),
    );
    await setRole(user.id, "admin");
    await signIn(jane);
    await step("session", () => jane.get("/get-session"));
    for (const window of [jane, unnamed(jane)]) {
      await step("update-user", () => window.post("/update-user", { name: "J" }));
      await step("sessions", () => window.get("/list-sessions"));
    }
    const passwords = { currentPassword: PASSWORD, newPassword: PASSWORD };
    await step("change-password", () =>
      jane.post("/change-password", { ...passwords, revokeOtherSessions: true }),
    );

    const email = "code@example.com";
    await step("code", () =>
      open().post("/email-otp/send-verification-otp", { email, type: "sign-in" }),
    );
    const otp = lastMail("code").code;
    await step("sign-in by code", () => open().post("/sign-in/email-otp", { email, otp }));
    await step("link", () => open().post("/sign-in/magic-link", { email: "link@example.com" }));
    await step("sign-in by link", () => open().get(lastMail("link").url));
    const guest = open();
    await step("anonymous", () => guest.post("/sign-in/anonymous", {}));
    await signIn(guest);
    await step("reset", () => open().post("/request-password-reset", { email: EMAIL }));
    const { token } = lastMail("reset");
    const reset = { token, newPassword: PASSWORD };
    await step("reset-password", () => unnamed(open()).post("/reset-password", reset));

    const admin = await signIn(open());
    const member = await signIn(open());
    for (const [slug, window] of [
      ["named", admin],
      ["unnamed", unnamed(admin)],
    ] as const) {
      const create = { name: "O", slug };
      const { id: organizationId } = await step("organization", () =>
        window.post<{ id: string }>("/organization/create", create),
      );
      const team = { name: "T", organizationId };
      await step("team", () => window.post("/organization/create-team", team));
      await step("active", () => window.post("/organization/set-active", { organizationId }));
      await step("delete", () => window.post("/organization/delete", { organizationId }));
    }
    const client_id = "device";
    const device = await step("device", () =>
      open().post<Record<string, string>>("/device/code", { client_id }),
    );
    const { user_code: userCode, device_code } = device;
    await step("device page", () => admin.get(`/device?user_code=${userCode}`));
    await step("approve", () => admin.post("/device/approve", { userCode }));
    await step("device token", () =>
      open().post("/device/token", { grant_type: DEVICE, device_code, client_id }),
    );
    const once = await step("token", () =>
      admin.get<{ token: string }>("/one-time-token/generate"),
    );
    await step("verify", () => open().post("/one-time-token/verify", once));

    for (const role of ["user", "admin"]) {
      const body = { email: `${role}@example.com`, role };
      await step("invite", () => admin.post("/tenant/invitation/create", body));
      const accept = { token: sent.at(-1)?.token, name: "I", password: PASSWORD };
      await step("accept", () => unnamed(open()).post("/tenant/invitation/accept", accept));
      const closed = { signUp: "invited", session: LATE };
      await step("policy", () => admin.post("/tenant/update", { policy: closed }));
    }
    const userId = user.id;
    const visit = (path: string, body: object) =>
      step(path, () => operator.post(path, body, { headers: { "x-tenant-id": ids.acme } }));
    await step("list-users", () => operator.get("/admin/list-users"));
    await step("set-role", () => operator.post("/admin/set-role", { userId, role: "admin" }));
    await visit("/admin/create-user", { email: "c@example.com", name: "C", password: PASSWORD });
    await visit("/admin/revoke-user-sessions", { userId: "nobody" });
    await step("two factors", () => member.post("/two-factor/enable", { password: PASSWORD }));
    await step("demote", () => admin.post("/admin/set-role", { userId, role: "user" }));
    await step("delete-user", () => member.post("/delete-user", { password: PASSWORD }));
    const tenantId = ids.acme;
    await step("suspend", () => operator.post("/tenant/update", { tenantId, status: "suspended" }));
    await step("delete", () => operator.post("/tenant/delete", { tenantId }));
  },
);
