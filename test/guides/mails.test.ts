import { getCurrentAdapter } from "@better-auth/core/context";
import type { BetterAuthPlugin } from "better-auth";
import { expect, test, vi } from "vitest";
import { createInstance, type Instance } from "../support/instance";

const outbox = () =>
  ({
    id: "outbox",
    schema: {
      mail: {
        fields: {
          to: { type: "string", required: true },
          text: { type: "string", required: true },
        },
      },
    },
  }) satisfies BetterAuthPlugin;

type ChooseAdapter = (
  instance: Instance,
) => Promise<Pick<Instance["context"]["adapter"], "create">>;

/** An application that keeps its mails in better-auth's database, through the adapter it is told. */
async function createOutbox(adapterOf: ChooseAdapter) {
  const instance: Instance = await createInstance({
    tenant: { scopedModels: ["mail"] },
    plugins: [outbox()],
    auth: {
      emailVerification: {
        sendOnSignUp: true,
        sendVerificationEmail: async ({ user, url }) => {
          const adapter = await adapterOf(instance);
          await adapter.create({ model: "mail", data: { to: user.email, text: url } });
        },
      },
    },
  });
  const acme = await instance.createTenant("acme");
  return { instance, acme };
}

test("a sender that uses better-auth's connection writes into the tenant it works for", async () => {
  const { instance, acme } = await createOutbox(({ context }) =>
    getCurrentAdapter(context.adapter),
  );
  await instance.signUp(acme.id, "al@example.com");
  const rows = await instance.database.query(
    `select ${instance.database.quote("to")}, ${instance.database.quote("tenantId")} from mail`,
  );
  expect(rows).toEqual([{ to: "al@example.com", tenantId: acme.id }]);
});

test("on SQLite, one that does not waits for the sign-up that waits for it", async () => {
  let signedUp = false;
  const asked = vi.fn<ChooseAdapter>(async ({ context }) => context.adapter);
  const { instance, acme } = await createOutbox(asked);
  void instance.signUp(acme.id).then(() => {
    signedUp = true;
  });
  await vi.waitFor(() => expect(asked).toHaveBeenCalled(), 10_000);
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(signedUp).toBe(false);
});
