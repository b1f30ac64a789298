import { jwt } from "better-auth/plugins";
import { afterEach, expect, it, vi } from "vitest";
import { PASSWORD } from "../support/instance";
import { createWorld, outcome, type SessionAnswer } from "../support/world";
import { createWays, STORES } from "./ways-in";

afterEach(() => vi.useRealTimers());

it("a password has the length that the policy says, wherever one is set", async () => {
  const { as, at, change, signIn } = await createWorld();
  const jane = await as("jane", "acme");
  await change("acme", { policy: { password: { minLength: 30 } } });
  const body = { name: "New", email: "new@example.com", password: PASSWORD };
  const set = { currentPassword: PASSWORD, newPassword: "short of thirty" };
  const answers = [
    await at("acme").post("/sign-up/email", body),
    await jane.post("/change-password", set),
    await jane.fork({}).post("/change-password", set),
  ];
  expect(answers.map(outcome)).toEqual(answers.map(() => [400, "PASSWORD_TOO_SHORT"]));
  // Whoever has a shorter one still signs in.
  expect((await signIn("acme")).status).toBe(200);
  const long = { ...body, password: "a password of more than thirty characters" };
  expect((await at("acme").post("/sign-up/email", long)).status).toBe(200);
});

it.each(STORES)("a session ends when the policy says: sessions in %s", async (store) => {
  vi.useFakeTimers({ toFake: ["Date"], now: new Date() });
  const { visitor, setPolicy, person } = await createWays(store, { updateAge: 60 });
  await setPolicy({ session: { expiresIn: 600 } });
  const browser = visitor();
  await browser.post("/sign-in/email", { email: person.email, password: PASSWORD });
  const left = async () => {
    const { data } = await browser.get<SessionAnswer | null>("/get-session");
    return data && (new Date(data.session.expiresAt).getTime() - Date.now()) / 1000;
  };
  expect(await left()).toBeLessThanOrEqual(600);
  vi.setSystemTime(Date.now() + 300_000);
  // Prolonged, as better-auth does, and no further than the policy says.
  const later = await left();
  if (store !== "stateless") expect(later).toBeGreaterThan(590);
  expect(later).toBeLessThanOrEqual(600);
  vi.setSystemTime(Date.now() + 601_000);
  expect(await left()).toBeNull();
});

it.each([true, false])("a plugin that copies the session config: ours first: %s", async (first) => {
  const { as, change } = await createWorld({
    plugins: [jwt()],
    arrange: (ours, others) => (first ? [ours, ...others] : [...others, ours]),
    auth: { session: { cookieCache: { enabled: true } } },
  });
  await change("acme", { policy: { session: { expiresIn: 600 } } });
  const secondsLeft = async (place: "acme" | "platform") => {
    const { data } = await (await as("jane", place)).get<SessionAnswer>("/get-session");
    return (new Date(data.session.expiresAt).getTime() - Date.now()) / 1000;
  };
  expect(await secondsLeft("acme")).toBeLessThanOrEqual(600);
  expect(await secondsLeft("platform")).toBeGreaterThan(24 * 3600);
});
