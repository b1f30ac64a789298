import { describe, expect, it } from "vitest";
import { databases } from "../support/servers";
import { createInviting, INVITED, outcome } from "./inviting";

const CROWD = 50;
const times = <T>(run: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: CROWD }, (_, index) => run(index)));

describe.each(databases)("invitations on %s", (database) => {
  it("50 acceptances of one token at once: one user", async () => {
    const app = await createInviting({ database });
    const { a } = app.ids;
    const { token } = await app.invite(a);
    const answers = await times(() => app.accept(token));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      expect(outcome(answer)).toEqual([409, "INVITATION_ALREADY_ACCEPTED"]);
    }
    expect(await app.users(a)).toBe(1);
    expect(await app.rows("session", "1 = 1")).toBe(2); // The operator's, and the new one.
    expect(app.events.filter(({ type }) => type === "invitation:accepted")).toHaveLength(1);
    expect(outcome(await app.accept(token))).toEqual([409, "INVITATION_ALREADY_ACCEPTED"]);
  });

  it("50 invitations of one address at once: one that is pending, one link that is good", async () => {
    const app = await createInviting({ database });
    const { a } = app.ids;
    const sent = await times(() =>
      app.operator.post<{ id: string }>("/tenant/invitation/create", {
        tenantId: a,
        email: INVITED,
      }),
    );
    expect(new Set(sent.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(sent.map(({ data }) => data.id)).size).toBe(1);
    expect(await app.statusOf(a)).toEqual(["pending"]);
    const links = await Promise.all(
      app.mails.map(({ token }) =>
        app.browser().get("/tenant/invitation/get", { query: { token } }),
      ),
    );
    expect(links).toHaveLength(CROWD);
    expect(links.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  it("accepted and revoked at once: a user with an accepted one, or nobody", async () => {
    const app = await createInviting({ database });
    const { a } = app.ids;
    for (let round = 0; round < 8; round++) {
      const email = `person-${round}@example.com`;
      const { id, token } = await app.invite(a, email);
      const [accepted, revoked] = await Promise.all([
        app.accept(token),
        app.operator.post("/tenant/invitation/revoke", { id }),
      ]);
      expect([accepted.status === 200, revoked.status === 200].filter(Boolean)).toHaveLength(1);
      expect(await app.users(a, email)).toBe(accepted.status === 200 ? 1 : 0);
    }
  });

  it("one way in by the link, one by the address, at once: one user, one acceptance", async () => {
    const app = await createInviting({ database });
    const { a } = app.ids;
    const { token } = await app.invite(a);
    const headers = { "x-tenant-id": a, "x-tenant-invitation": token };
    const body = { name: "Ada", email: INVITED, password: "correct horse battery" };
    const answers = await times<{ status: number }>((index) =>
      index % 2 ? app.accept(token) : app.browser().post("/sign-up/email", body, { headers }),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(await app.users(a)).toBe(1);
    expect(await app.statusOf(a)).toEqual(["accepted"]);
  });
});
