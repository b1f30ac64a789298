import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, inject, test } from "vitest";
import { deleteTenantsAfterwards, newAdministrator, post } from "./support/console";
import {
  ACME,
  APP,
  call,
  closeBrowserAfterwards,
  fillSignIn,
  newVisitor,
  signIn,
  tenantId,
} from "./support/visitor";

closeBrowserAfterwards();
deleteTenantsAfterwards();

const HOST = "login.acme.test";
const AT_HOST = APP.replace("localhost", HOST);
const MAX = { name: "Max", email: "max@acme.test", password: "a long password of Max" };

const entry = (page: Page) =>
  page.getByRole("region", { name: "Domains" }).getByRole("listitem", { name: HOST });

/** Adds the domain on a settings page, and publishes its record. */
async function addDomain(page: Page) {
  const section = page.getByRole("region", { name: "Domains" });
  await section.getByLabel("Domain").fill(HOST.toUpperCase());
  await section.getByRole("button", { name: "Add domain" }).click();
  await entry(page).getByText("Not verified").waitFor();
  const [name = "", value = ""] = await entry(page).locator("code").allInnerTexts();
  return { name, value };
}

const publish = (...records: { name: string; value: string }[]) => {
  const values = records.map(({ value }) => value);
  const file = join(String(inject("env").DATA_DIR), "dns.json");
  writeFileSync(file, JSON.stringify(records[0] ? { [records[0].name]: values } : {}));
};

const verify = (page: Page) => entry(page).getByRole("button", { name: "Verify" }).click();

test("a domain is added, verified, used as a host, claimed by another tenant, and removed", async () => {
  const expects = /404|403/;
  const first = await newAdministrator("Domain One", "domain-one", MAX, expects);
  const visitor = await (await newVisitor({ expects })).newPage();
  // Before it is verified it is no place: the page leads to the application, and the API nowhere.
  await visitor.goto(`${AT_HOST}/api/auth/ok`);
  expect(await visitor.innerText("body")).toContain("TENANT_NOT_FOUND");

  const record = await addDomain(first.page);
  expect(record.name).toBe(`_tenant-verification.${HOST}`);
  publish({ name: record.name, value: "another" });
  await verify(first.page);
  await entry(first.page).getByText("The record is not there yet.").waitFor();
  publish(record);
  await verify(first.page);
  await entry(first.page).getByText("Verified", { exact: true }).waitFor();

  // The tenant's page, and a session that stays at this host.
  await visitor.goto(AT_HOST);
  await visitor.getByRole("heading", { name: "Sign in to Domain One" }).waitFor();
  await fillSignIn(visitor, MAX);
  await visitor.waitForURL(`${AT_HOST}/dashboard`);
  await visitor.getByRole("heading", { name: "Hello" }).waitFor();
  const session = await call(visitor, "/api/auth/get-session");
  expect(session.data.session.tenantId).toBe(first.id);
  // The host decides, whatever a page claims.
  const acme = await tenantId(await (await newVisitor()).newPage(), ACME);
  const headers = { "x-tenant-id": acme };
  const methods = await call(visitor, "/api/auth/tenant/sign-in-methods", { headers });
  expect(methods.data.tenant.id).toBe(first.id);

  // Another tenant claims it in the meantime: a record of its own decides, not the claim.
  const person = { ...MAX, email: "mia@acme.test", name: "Mia" };
  const second = await newAdministrator("Domain Two", "domain-two", person, expects);
  const other = await addDomain(second.page);
  expect(other.value).not.toBe(record.value);
  await verify(second.page);
  await entry(second.page).getByText("The record is not there yet.").waitFor();
  await visitor.goto(`${AT_HOST}/dashboard`);
  await visitor.getByRole("heading", { name: "Hello" }).waitFor();
  publish(record, other);
  await verify(second.page);
  await entry(second.page).getByText("Verified", { exact: true }).waitFor();
  expect((await call(visitor, "/api/auth/get-session")).data).toBeNull();
  // Next.js bundles proxy.ts by itself, with an instance of its own that knows within ten seconds.
  const headingAtHost = async () => {
    await visitor.goto(AT_HOST);
    return visitor.getByRole("heading", { level: 1 }).innerText();
  };
  await expect
    .poll(headingAtHost, { timeout: 20_000, interval: 2000 })
    .toBe("Sign in to Domain Two");
  await first.page.reload();
  await entry(first.page).getByText("Not verified").waitFor();
  await verify(first.page);
  await entry(first.page).getByText("The record is not there yet.").waitFor();

  // The email first: the domain leads to the tenant, and nothing is said about people.
  await visitor.goto(`${APP}/sign-in`);
  await visitor.getByLabel("Email").fill(`nobody@${HOST}`);
  await visitor.getByRole("button", { name: "Continue" }).click();
  await visitor.waitForURL(`${APP}/t/domain-two`);
  await visitor.goto(`${APP}/sign-in`);
  await visitor.getByLabel("Email").fill("nobody@unknown.test");
  await visitor.getByRole("button", { name: "Continue" }).click();
  await visitor.getByText("Nobody signs in here").waitFor();

  await entry(second.page).getByRole("button", { name: "Remove" }).click();
  await entry(second.page).waitFor({ state: "detached" });
  await visitor.goto(`${AT_HOST}/api/auth/ok`);
  expect(await visitor.innerText("body")).toContain("TENANT_NOT_FOUND");
  const answer = await post(visitor, "/sign-in/email", MAX);
  expect(answer).toMatchObject({ status: 404, data: { code: "TENANT_NOT_FOUND" } });
  publish();
}, 120_000);

test("other tenants are not affected by a host", async () => {
  const page = await (await newVisitor()).newPage();
  await signIn(page, ACME);
});
