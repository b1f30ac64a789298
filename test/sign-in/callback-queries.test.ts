import { describe, expect, it, onTestFinished } from "vitest";
import type { Browser } from "../support/browser";
import { createDatabase, type TestDatabase } from "../support/database";
import { startIdentityProvider } from "../support/identity-provider";
import { createPlainInstance } from "../support/instance";
import { createSocialInstance, GLOBAL } from "../support/social";

interface Visit {
  start: string[];
  callback: string[];
}

type Authorize = (url: string, username: string) => Promise<string>;

/** The statements of the second visit of the same person. */
async function secondVisit(
  database: TestDatabase,
  open: () => Browser,
  path: string,
  body: Record<string, unknown>,
  authorize: Authorize,
): Promise<Visit> {
  const visit = async () => {
    const browser = open();
    const before = database.statements.length;
    const { data } = await browser.post<{ url: string }>(path, {
      provider: "gitlab",
      callbackURL: "/welcome",
      ...body,
    });
    const between = database.statements.length;
    const back = await browser.get(await authorize(data.url, "alice"));
    expect(back.location).toBe("/welcome");
    return {
      start: database.statements.slice(before, between),
      callback: database.statements.slice(between),
    };
  };
  await visit();
  return visit();
}

async function plainVisit(): Promise<Visit> {
  const idp = await startIdentityProvider();
  idp.registerClient(GLOBAL.clientId, GLOBAL.clientSecret);
  idp.addPerson("alice");
  const database = await createDatabase("sqlite");
  onTestFinished(() => database.close());
  const { browser } = await createPlainInstance(database, {
    socialProviders: { gitlab: { ...GLOBAL, issuer: idp.issuer } },
  });
  return secondVisit(database, browser, "/sign-in/social", {}, idp.authorize);
}

async function tenantVisit(config: boolean): Promise<Visit> {
  const app = await createSocialInstance();
  const tenant = await app.createTenant();
  if (config) await app.configure(tenant.id);
  const path = "/tenant/sign-in/social";
  return secondVisit(app.database, app.browser, path, { tenantId: tenant.id }, app.idp.authorize);
}

describe.each([true, false])("statements of a social sign-in (own config: %s)", (config) => {
  it("the callback of an existing user: at most one more than without the plugin", async () => {
    const [plain, tenant] = [await plainVisit(), await tenantVisit(config)];
    expect(plain.callback.length).toBeGreaterThan(0);
    expect(tenant.callback.length - plain.callback.length).toBeLessThanOrEqual(1);
  });

  it("the start: at most two more", async () => {
    const [plain, tenant] = [await plainVisit(), await tenantVisit(config)];
    expect(plain.start.length).toBeGreaterThan(0);
    expect(tenant.start.length - plain.start.length).toBeLessThanOrEqual(2);
  });
});
