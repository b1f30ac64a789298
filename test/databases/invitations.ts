import { describe, expect, it } from "vitest";
import type { tenantInvitations } from "../../src/invitations/index";
import { PASSWORD } from "../support/instance";
import { because, createWorld, type Ground, type World } from "./store";

const EMAIL = "ada@example.com";

type Api = World["api"] & ReturnType<typeof tenantInvitations>["endpoints"];

/** Invitations on the adapters and databases that are not Kysely's. */
export function invitesPeople(ground: Ground) {
  describe("invitations", () => {
    async function createInvited() {
      const world = await createWorld(ground);
      const api = world.api as Api;
      const invite = async (tenantId: string) => {
        const body = { tenantId, email: EMAIL, send: false };
        const { id, url = "" } = await api.createTenantInvitation({ body });
        return { id, token: new URL(url).searchParams.get("token") ?? "" };
      };
      const accept = (token: string) =>
        world
          .browser()
          .post("/tenant/invitation/accept", { token, name: "Ada", password: PASSWORD });
      return { ...world, api, invite, accept };
    }

    it("are made, renewed, revoked, accepted once, listed, and deleted with their tenant", async () => {
      const { a, b, api, invite, accept, rows, rowsOf } = await createInvited();
      const first = await invite(a.id);
      const second = await invite(a.id);
      expect(second.id).toBe(first.id);
      await invite(b.id);
      expect((await accept(first.token)).code).toBe("INVITATION_NOT_FOUND");
      await api.revokeTenantInvitation({ body: { id: second.id } });
      expect((await accept(second.token)).code).toBe("INVITATION_NOT_FOUND");
      const third = await invite(a.id);
      expect((await accept(third.token)).status).toBe(200);
      expect((await accept(third.token)).code).toBe("INVITATION_ALREADY_ACCEPTED");
      expect(await rowsOf("user", a.id)).toHaveLength(1);
      const list = async (status: "pending" | "accepted" | "revoked" | "expired") =>
        (await api.listTenantInvitations({ query: { tenantId: a.id, status } })).length;
      expect([await list("accepted"), await list("revoked")]).toEqual([1, 1]);
      expect([await list("pending"), await list("expired")]).toEqual([0, 0]);
      await api.deleteTenant({ body: { tenantId: a.id } });
      expect(await rows("tenantInvitation")).toHaveLength(1);
    });

    it("let in whoever comes with a verified address, in the role that they were invited to", async () => {
      const { a, b, api, browser, signIn, rowsOf } = await createInvited();
      const email = "alice@example.com";
      for (const { id: tenantId } of [a, b]) {
        await api.updateTenant({ body: { tenantId, policy: { signUp: "invited" } } });
      }
      await api.createTenantInvitation({ body: { tenantId: a.id, email, role: "admin" } });
      expect((await signIn(browser(), b.id)).location).toContain("/failed");
      expect((await signIn(browser(), a.id)).location).toBe("/welcome");
      expect(await rowsOf("user", a.id)).toMatchObject([{ email, role: "admin" }]);
      expect(await rowsOf("user", b.id)).toEqual([]);
      const [invitation] = await api.listTenantInvitations({ query: { tenantId: a.id } });
      expect(invitation?.status).toBe("accepted");
    });

    const { noUniqueValues } = ground;
    const name = because("are accepted by one of many who try at once", noUniqueValues);
    it.skipIf(noUniqueValues)(name, async () => {
      const { a, invite, accept, rowsOf } = await createInvited();
      const { token } = await invite(a.id);
      const answers = await Promise.all(Array.from({ length: 8 }, () => accept(token)));
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
      expect(await rowsOf("user", a.id)).toHaveLength(1);
    });
  });
}
