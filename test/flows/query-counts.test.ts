import { expect, it } from "vitest";
import type { Answer } from "../support/browser";
import { type Place, passwordOf } from "./people";
import { createSocialPeople } from "./social-people";

type Counts = Record<string, number>;

const EMAIL = "counted@example.com";
const SOCIAL = { provider: "gitlab", callbackURL: "/done", errorCallbackURL: "/failed" };

/** Walks through every flow at a place, and counts what reaches the database in each of them. */
async function measure(place: Place, naming: "named" | "not named"): Promise<Counts> {
  const people = await createSocialPeople({ deletionByMail: true });
  const { app, lastMail } = people;
  const { statements } = app.database;
  const counts: Counts = {};
  const count = async <T>(name: string, run: () => Promise<Answer<T>>): Promise<T> => {
    statements.length = 0;
    const { status, data, location } = await run();
    counts[name] = statements.length;
    const failed = status >= 400 || location?.includes("error");
    if (failed) throw new Error(`${name}: ${status} ${location} ${JSON.stringify(data)}`);
    return data;
  };

  // Where the tenant is not named, the session says it, or the link.
  const headers = naming === "named" ? people.header(place) : {};
  const stranger = () => app.browser(headers);
  const password = passwordOf(place);
  const newcomer = people.stranger(place);
  const person = { name: "Somebody", email: EMAIL, password };
  await count("sign-up", () => newcomer.post("/sign-up/email", person));
  const { token } = await count("sign-in", () =>
    people.stranger(place).post<{ token: string }>("/sign-in/email", person),
  );
  const me = newcomer.fork(headers);

  await count("get-session", () => me.get("/get-session"));
  await count("list-sessions", () => me.get("/list-sessions"));
  await count("update-session", () => me.post("/update-session", { theme: "dark" }));
  await count("update-user", () => me.post("/update-user", { name: "Renamed" }));
  await count("verify-password", () => me.post("/verify-password", { password }));
  const passwords = { currentPassword: password, newPassword: "another password" };
  await count("change-password", () => me.post("/change-password", passwords));

  const reset = { email: EMAIL, redirectTo: "/page" };
  await count("request-password-reset", () =>
    people.stranger(place).post("/request-password-reset", reset),
  );
  const resetMail = lastMail("reset");
  await count("reset link", () => stranger().get(resetMail.url));
  const newPassword = { token: resetMail.token, newPassword: password };
  await count("reset-password", () => stranger().post("/reset-password", newPassword));

  await count("send-verification-email", () => me.post("/send-verification-email", reset));
  const { url } = lastMail("verification");
  await count("verify-email", () => stranger().get(url));
  await count("change-email", () => me.post("/change-email", { newEmail: "new@example.com" }));
  const first = lastMail("change").url;
  await count("change-email confirmation link", () => stranger().get(first));
  const second = lastMail("verification").url;
  await count("change-email verification link", () => stranger().get(second));

  // Alice at the provider has the address of the person who links.
  app.idp.addPerson("alice", { email: "new@example.com" });
  const start = await count("link-social", () => me.post<{ url: string }>("/link-social", SOCIAL));
  const back = await app.idp.authorize(start.url, "alice");
  await count("link-social callback", () => me.get(back));
  const accounts = await count("list-accounts", () =>
    me.get<{ id: string; providerId: string }[]>("/list-accounts"),
  );
  const accountId = accounts.find(({ providerId }) => providerId === "gitlab")?.id ?? "";
  await count("get-access-token", () => me.post("/get-access-token", { accountId }));
  await count("refresh-token", () => me.post("/refresh-token", { accountId }));
  await count("account-info", () => me.get("/account-info", { query: { accountId } }));
  const visitor = people.stranger(place);
  const social = await count("sign-in/social", () =>
    visitor.post<{ url: string }>("/sign-in/social", SOCIAL),
  );
  const socialBack = await app.idp.authorize(social.url, "alice");
  await count("sign-in/social callback", () => visitor.get(socialBack));
  await count("unlink-account", () => me.post("/unlink-account", { accountId }));

  await count("revoke-session", () => me.post("/revoke-session", { token }));
  await count("revoke-other-sessions", () => me.post("/revoke-other-sessions"));
  const again = { email: "new@example.com", password };
  const other = people.stranger(place);
  await other.post("/sign-in/email", again);
  await count("revoke-sessions", () => other.fork(headers).post("/revoke-sessions"));
  const leaver = people.stranger(place);
  await leaver.post("/sign-in/email", again);
  const third = people.stranger(place);
  await third.post("/sign-in/email", again);
  await count("sign-out", () => third.fork(headers).post("/sign-out"));
  await count("delete-user", () => leaver.fork(headers).post("/delete-user"));
  const deletion = lastMail("deletion").url;
  await count("delete-user link", () => leaver.fork(headers).get(deletion));
  return counts;
}

/** The flows that need the provider, and with it the tenant's credentials there. */
const AT_PROVIDER = [
  "sign-in/social",
  "sign-in/social callback",
  "link-social",
  "link-social callback",
  "get-access-token",
  "refresh-token",
  "account-info",
];

const measured = new Map<string, Promise<Counts>>();

/** Measured once, by whichever test comes first. */
function countsOf(place: Place, naming: "named" | "not named"): Promise<Counts> {
  const key = `${place} ${naming}`;
  const counts = measured.get(key) ?? measure(place, naming);
  measured.set(key, counts);
  return counts;
}

async function expectAtMost(naming: "named" | "not named", allowed: (flow: string) => number) {
  const platform = await countsOf("platform", "not named");
  const tenant = await countsOf("a", naming);
  const tooMany = Object.keys(platform).filter(
    (flow) => Number(tenant[flow]) - Number(platform[flow]) > allowed(flow),
  );
  expect(tooMany, table({ platform, tenant })).toEqual([]);
}

it("counts every flow at all", async () => {
  const platform = await countsOf("platform", "not named");
  expect(Object.keys(platform)).toHaveLength(31);
  expect(Math.min(...Object.values(platform))).toBeGreaterThanOrEqual(1);
});

it("a flow costs at most one query more in a tenant that is named, get-session none", async () => {
  await expectAtMost("named", (flow) => {
    if (flow === "get-session") return 0;
    // The tenant is looked up before, and once more after the commit: a deletion of the tenant
    // that came in between has to find nobody left behind.
    if (flow === "sign-up") return 2;
    return AT_PROVIDER.includes(flow) ? Number.POSITIVE_INFINITY : 1;
  });
});

// One query for the tenant that is named, and one for its credentials.
it("a flow that needs the tenant's credentials at the provider costs two more", async () => {
  const atProvider = (flow: string) => AT_PROVIDER.includes(flow);
  await expectAtMost("named", (flow) => (atProvider(flow) ? 2 : Number.POSITIVE_INFINITY));
});

it("where the session or a link says the tenant, only those credentials are one query more", async () => {
  // These are for people who are not signed in yet: they name it here as well.
  const named: Counts = {
    "sign-up": 2,
    "sign-in": 1,
    "request-password-reset": 1,
    "sign-in/social": 2,
  };
  await expectAtMost("not named", (flow) => {
    return named[flow] ?? (AT_PROVIDER.includes(flow) ? 1 : 0);
  });
});

/** All counts next to each other, for the message of an assertion that fails. */
function table(columns: Record<string, Counts>): string {
  const names = Object.keys(columns);
  const rows = Object.keys(columns.platform ?? {}).map((flow) =>
    [flow.padEnd(32), ...names.map((name) => String(columns[name]?.[flow]).padEnd(10))].join(""),
  );
  return `\n${["".padEnd(32), ...names.map((name) => name.padEnd(10))].join("")}\n${rows.join("\n")}`;
}
