import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import {
  ACME,
  APP,
  closeBrowserAfterwards,
  GLOBEX,
  hostOf,
  IDP,
  newVisitor,
  text,
} from "./support/visitor";

closeBrowserAfterwards();

/** Goes to the provider from a tenant's page. */
async function leaveForProvider(page: Page, address: string) {
  await page.goto(address);
  await page.getByRole("button", { name: "Continue with GitLab" }).click();
  await page.waitForURL(`${IDP}/oauth/authorize**`);
  return new URL(page.url()).searchParams;
}

/** This provider lives at a host of its own, so each tenant has a redirect URI of its own. */
const wayBack = (origin: string) =>
  new RegExp(`^${origin}/api/auth/tenant/callback/gitlab\\?tenant=[\\w-]+$`);

async function agreeAs(page: Page, name: string, decision = "Allow") {
  await page.getByRole("radio", { name }).check();
  await page.getByRole("button", { name: decision }).click();
}

test("two tenants sign the same person in, each with credentials of its own", async () => {
  const page = await (await newVisitor()).newPage();
  const ids: string[] = [];
  for (const tenant of [ACME, GLOBEX]) {
    const asked = await leaveForProvider(page, `${APP}/t/${tenant.slug}`);
    expect(asked.get("client_id")).toBe(tenant.client.id);
    expect(asked.get("redirect_uri")).toMatch(wayBack(APP));
    expect(await text(page)).toContain(tenant.client.id);
    await agreeAs(page, "Kim Park");
    await page.waitForURL(`${APP}/t/${tenant.slug}/dashboard`);
    expect(await text(page)).toContain(`You are signed in to ${tenant.name} as kim@example.com`);
    expect(await text(page)).toContain("GitLab");
    ids.push(await page.locator("dd code").first().innerText());
  }
  // Kim is somebody else at each of them, and there again at the second visit.
  expect(new Set(ids).size).toBe(2);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(`${APP}/t/globex`);
  await leaveForProvider(page, `${APP}/t/globex`);
  await agreeAs(page, "Kim Park");
  await page.waitForURL(`${APP}/t/globex/dashboard`);
  expect(await page.locator("dd code").first().innerText()).toBe(ids[1]);
});

test("on a tenant's own host the way back leads to that host", async () => {
  const page = await (await newVisitor()).newPage();
  const asked = await leaveForProvider(page, hostOf(ACME));
  expect(asked.get("redirect_uri")).toMatch(wayBack(hostOf(ACME)));
  await agreeAs(page, "Lee Wong");
  await page.waitForURL(`${hostOf(ACME)}/dashboard`);
  expect(await text(page)).toContain("You are signed in to Acme as lee@example.com");
});

test("who has an account with a confirmed address comes back to it", async () => {
  const page = await (await newVisitor()).newPage();
  await leaveForProvider(page, `${APP}/t/acme`);
  await agreeAs(page, "Jane Doe");
  await page.waitForURL(`${APP}/t/acme/dashboard`);
  expect(await text(page)).toContain("Hello, Jane at Acme");
  expect(await text(page)).toContain("a password");
});

test("who does not agree is told so, and is not signed in", async () => {
  const page = await (await newVisitor()).newPage();
  await leaveForProvider(page, `${APP}/t/globex`);
  await agreeAs(page, "Kim Park", "Deny");
  await page.waitForURL(`${APP}/t/globex?*`);
  expect(await text(page)).toContain("You cancelled signing in with this provider.");
});

test.each([
  ["in somebody else's browser", (wayBack: string) => wayBack],
  ["on the host of another tenant", (wayBack: string) => wayBack.replace(APP, hostOf(GLOBEX))],
])("the way back from the provider leads nowhere %s", async (_, divert) => {
  const [kim, stranger] = [await newVisitor(), await newVisitor({ expects: /./ })];
  const asked = await leaveForProvider(await kim.newPage(), `${APP}/t/acme`);
  // Kim agrees, and does not follow the way back.
  const form = { ...Object.fromEntries(asked), username: "kim", decision: "allow" };
  const agreed = await kim.request.post(`${IDP}/oauth/authorize`, { form, maxRedirects: 0 });
  const wayBack = agreed.headers().location ?? "";
  expect(wayBack).toMatch(/^http.*[?&]code=\w+/);

  const page = await stranger.newPage();
  await page.goto(divert(wayBack));
  for (const address of [`${APP}/t/acme`, `${APP}/t/globex`, hostOf(ACME), hostOf(GLOBEX)]) {
    await page.goto(`${address}/dashboard`);
    expect(page.url()).toBe(new URL(address).href);
  }
});
