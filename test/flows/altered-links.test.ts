import { describe, expect, it } from "vitest";
import type { Answer, Browser } from "../support/browser";
import { queryOf } from "../support/social";
import { createPeople, EMAIL, type Mail, type People } from "./people";

/** Somebody at A asks for a link, and a browser in which it would work clicks it. */
interface Flow {
  kind: Mail["kind"];
  ask(me: Browser): Promise<Answer>;
  browser(people: People): Browser;
  expectRefused(answer: Answer): void;
}

const nobody = (people: People) => people.stranger("platform");

const expectError = (answer: Answer) => {
  expect(answer.status).toBe(302);
  expect(queryOf(answer.location)).toEqual({ error: "INVALID_TOKEN" });
};

const flows: Record<string, Flow> = {
  "password reset": {
    kind: "reset",
    ask: (me) => me.post("/request-password-reset", { email: EMAIL, redirectTo: "/page" }),
    browser: nobody,
    expectRefused: expectError,
  },
  verification: {
    kind: "verification",
    ask: (me) => me.post("/send-verification-email", { email: EMAIL, callbackURL: "/page" }),
    browser: nobody,
    expectRefused: expectError,
  },
  "e-mail change": {
    kind: "verification",
    ask: (me) => me.post("/change-email", { newEmail: "new@example.com", callbackURL: "/page" }),
    browser: nobody,
    expectRefused: expectError,
  },
  deletion: {
    kind: "deletion",
    ask: (me) => me.post("/delete-user", { callbackURL: "/page" }),
    // Deletion wants the person's session besides the link.
    browser: (people) => people.window("a", "its session alone"),
    expectRefused: (answer) => {
      expect([answer.status, answer.code]).toEqual([404, "INVALID_TOKEN"]);
    },
  },
};

/** Another character of the same kind, in the middle, where every bit of it counts. */
function flip(text: string): string {
  const at = Math.floor(text.length / 2);
  return `${text.slice(0, at)}${text[at] === "x" ? "y" : "x"}${text.slice(at + 1)}`;
}

/** What somebody who holds the link can do to its token; whatever its parts stand for. */
function alterations(token: string, ofB: string): Record<string, string> {
  const parts = token.split("~");
  const partsOfB = ofB.split("~");
  const swap = (index: number, part: string | undefined) =>
    parts.map((own, position) => (position === index ? (part ?? "") : own)).join("~");
  const altered: Record<string, string> = {
    "something before": `x${token}`,
    "something behind": `${token}x`,
    "its last character gone": token.slice(0, -1),
    "sealed twice": `${token}~${parts.slice(1).join("~")}`,
  };
  for (const index of parts.keys()) {
    altered[`part ${index} changed`] = swap(index, flip(parts[index] ?? ""));
    altered[`part ${index} empty`] = swap(index, "");
    // A token of B that the same person may well hold: nothing of it goes together with A's, but
    // two signed e-mail addresses of one second are the same.
    const swapped = swap(index, partsOfB[index]);
    if (swapped === token || swapped === ofB) continue;
    altered[`part ${index} taken from B's`] = swapped;
  }
  return altered;
}

describe.each(Object.entries(flows))("the %s link of a tenant", (_, flow) => {
  async function createLinks() {
    const people = await createPeople({ deletionByMail: true });
    await flow.ask(people.window("b", "its session alone"));
    const ofB = people.lastMail(flow.kind);
    await flow.ask(people.window("a", "its session alone"));
    return { people, ofB, mail: people.lastMail(flow.kind) };
  }

  it("threat: R6: is refused with any part of it altered, and good as it is", async () => {
    const { people, mail, ofB } = await createLinks();
    expect(mail.url).toContain(mail.token);
    for (const [name, token] of Object.entries(alterations(mail.token, ofB.token))) {
      const url = mail.url.replace(mail.token, encodeURIComponent(token));
      const browser = flow.browser(people);
      const answer = await people.changesNothing(() => browser.get(url));
      expect([400, 404, 302], name).toContain(answer.status);
      flow.expectRefused(answer);
    }
    const good = await people.touchesOnly("a", () => flow.browser(people).get(mail.url));
    expect(good.status).toBe(302);
    expect(queryOf(good.location).error).toBeUndefined();
  });

  it("threat: R6: is refused in another tenant that the request names", async () => {
    const { people, mail } = await createLinks();
    const byHeader = flow.browser(people).fork(people.header("b"));
    const answer = await people.changesNothing(() => byHeader.get(mail.url));
    expect(queryOf(answer.location).token).toBeUndefined();
    expect([302, 404]).toContain(answer.status);
    const tenantId = people.ids.b ?? "";
    const byQuery = await people.changesNothing(() =>
      flow.browser(people).get(mail.url, { query: { tenantId } }),
    );
    expect([byQuery.status, byQuery.code]).toEqual([answer.status, answer.code]);
  });

  it("R2: is a 404 in a tenant that does not exist", async () => {
    const { people, mail } = await createLinks();
    const browser = flow.browser(people).fork({ "x-tenant-id": "nowhere" });
    const answer = await people.changesNothing(() => browser.get(mail.url));
    expect([answer.status, answer.code]).toEqual([404, "TENANT_NOT_FOUND"]);
  });
});
