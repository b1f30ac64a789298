import type { BetterAuthPlugin } from "better-auth";
import { symmetricDecrypt } from "better-auth/crypto";
import { describe, expect, it } from "vitest";
import type { DatabaseKind } from "../support/database";
import { createInstance, type Instance } from "../support/instance";
import { crowdOn, databases } from "../support/servers";

const GOOGLE = { providerId: "google", clientId: "google-client", clientSecret: "google-secret" };

/** Runs something right before a row of a model is created, at the worst possible moment. */
function beforeCreate(model: string, run: () => Promise<unknown>): BetterAuthPlugin {
  return {
    id: "before-create",
    init({ adapter }) {
      const create = adapter.create.bind(adapter);
      adapter.create = async (call) => {
        if (call.model === model) await run();
        return create(call);
      };
    },
  };
}

/** Registers a config for a tenant that goes away right before the row is written. */
async function registerTooLate(database: DatabaseKind, prepare = async (_: Instance) => {}) {
  let tenantId = "";
  const instance = await createInstance({
    database,
    plugins: [
      beforeCreate("tenantOauthConfig", () => instance.api.deleteTenant({ body: { tenantId } })),
    ],
  });
  await prepare(instance);
  const { browser } = await instance.operator();
  tenantId = (await instance.createTenant()).id;
  const answer = await browser.post("/tenant/oauth-config/register", { tenantId, ...GOOGLE });
  expect([answer.status, answer.code]).toEqual([404, "TENANT_NOT_FOUND"]);
  expect(await instance.rows("tenantOauthConfig")).toBe(0);
}

describe.each(databases)("on %s", (database) => {
  it("threat: races: many registrations of one pair at once leave one config, and a whole one", async () => {
    const instance = await createInstance({ database });
    const { browser } = await instance.operator();
    const { id: tenantId } = await instance.createTenant();
    const answers = await Promise.all(
      Array.from({ length: crowdOn(database) }, (_, i) =>
        browser.post("/tenant/oauth-config/register", {
          tenantId,
          ...GOOGLE,
          clientId: `client-${i}`,
          clientSecret: `secret-${i}`,
          scopes: [`scope-${i}`],
          redirectURI: `https://example.com/${i}`,
          enabled: i % 2 === 0,
        }),
      ),
    );
    expect(answers.map((answer) => answer.status)).toEqual(answers.map(() => 200));
    expect(new Set(answers.map((answer) => answer.data.id)).size).toBe(1);
    expect(await instance.rows("tenantOauthConfig")).toBe(1);
    // What is left comes from one and the same registration, all of it.
    const [row] = await instance.database.query(
      `select * from ${instance.database.quote("tenantOauthConfig")}`,
    );
    const key = instance.context.secretConfig;
    const clientId = await symmetricDecrypt({ key, data: String(row?.clientId) });
    const clientSecret = await symmetricDecrypt({ key, data: String(row?.clientSecret) });
    const [, i] = /^client-(\d+)$/.exec(clientId) ?? [];
    expect(clientSecret).toBe(`secret-${i}`);
    const [config] = await instance.api.listTenantOAuthConfigs({ query: { tenantId } });
    expect(config).toMatchObject({
      scopes: [`scope-${i}`],
      redirectURI: `https://example.com/${i}`,
      enabled: Number(i) % 2 === 0,
    });
  }, 60_000);

  it("races: a tenant deleted right before the row is written is 404, and leaves nothing", async () => {
    await registerTooLate(database);
  });

  it("races: a tenant deleted while configs are registered keeps none of them", async () => {
    const instance = await createInstance({ database });
    const { browser } = await instance.operator();
    const { id: tenantId } = await instance.createTenant();
    const register = (providerId: string) =>
      browser.post("/tenant/oauth-config/register", { tenantId, ...GOOGLE, providerId });
    const providers = ["google", "github", "gitlab", "discord", "slack", "twitch"];
    const [deleted, ...answers] = await Promise.all([
      browser.post("/tenant/delete", { tenantId }),
      ...providers.map(register),
      ...providers.map(register),
    ]);
    expect(deleted.status).toBe(200);
    for (const answer of answers) {
      if (answer.status !== 200) {
        expect([answer.status, answer.code]).toEqual([404, "TENANT_NOT_FOUND"]);
      }
    }
    expect(await instance.rows("tenantOauthConfig")).toBe(0);
  });

  it("races: of 20 deletions of one config at once exactly one says it did it", async () => {
    const instance = await createInstance({ database });
    const { browser } = await instance.operator();
    const { id: tenantId } = await instance.createTenant();
    await instance.api.registerTenantOAuthConfig({ body: { tenantId, ...GOOGLE } });
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        browser.post("/tenant/oauth-config/delete", { tenantId, providerId: "google" }),
      ),
    );
    const statuses = answers.map((answer) => answer.status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 404)).toHaveLength(19);
  });
});

it("races: a tenant deleted before the row is written is 404 without foreign keys as well", async () => {
  // SQLite without the pragma, and MySQL, which skips over foreign keys declared at a column.
  await registerTooLate("sqlite", async ({ database }) => {
    await database.query("pragma foreign_keys = off");
  });
});
