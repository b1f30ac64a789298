import { expect, test } from "vitest";
import {
  continueWithGitLab,
  deleteTenantsAfterwards,
  newAdministrator,
  newOperator,
  post,
  setUpGitLab,
} from "./support/console";
import {
  ACME,
  ADMINISTRATOR,
  APP,
  call,
  closeBrowserAfterwards,
  GLOBEX,
  hostOf,
  newVisitor,
  signIn,
  tenantId,
  text,
} from "./support/visitor";

closeBrowserAfterwards();
deleteTenantsAfterwards();

test("a tenant's own administrator sets up social sign-in and checks it, without an operator", async () => {
  const sol = { email: "sol@example.com", name: "Sol", password: "books and beef" };
  const { page, address } = await newAdministrator("Soylent", "soylent", sol, /409/);
  await setUpGitLab(page);
  const config = page.getByRole("article", { name: "GitLab" });
  await config.getByRole("button", { name: "Check GitLab" }).click();
  await config.getByText("No problems found.").waitFor();
  const kim = await (await newVisitor()).newPage();
  await kim.goto(address);
  await continueWithGitLab(kim, "Kim Park");
  await kim.waitForURL(`${address}/dashboard`);
  await page.reload();
  expect(await page.getByRole("region", { name: "People" }).innerText()).toContain("Kim Park");

  // Nobody locks themselves out.
  const policy = page.getByRole("region", { name: "Policy" });
  await policy.getByLabel("Only with these methods").check();
  await policy.getByLabel("Password", { exact: true }).uncheck();
  await policy.getByLabel("Magic link").uncheck();
  await policy.getByRole("button", { name: "Save policy" }).click();
  await policy.getByText("you could not sign in again yourself").waitFor();
  await policy.getByLabel("Password", { exact: true }).check();
  await policy.getByLabel("GitLab").uncheck();
  await policy.getByRole("button", { name: "Save policy" }).click();
  await policy.getByText("Policy saved.").waitFor();
  await kim.goto(`${hostOf({ slug: "soylent" })}/`);
  expect(await kim.getByRole("button", { name: "Continue with" }).count()).toBe(0);

  // The name is theirs to change, the address is not.
  await page.getByLabel("Name").fill("Soylent Green");
  expect(await page.getByLabel("Slug").count()).toBe(0);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("heading", { name: "Soylent Green settings" }).waitFor();
  // Who ends all sessions ends their own, too.
  await policy.getByLabel("End all sessions now").check();
  await policy.getByRole("button", { name: "Save policy" }).click();
  await page.waitForURL(address);
});

for (const [where, address] of [
  ["by path", `${APP}/t/acme`],
  ["by host", hostOf(ACME)],
] as const) {
  test(`Acme's administrator manages Acme, and no other tenant, ${where}`, async () => {
    const page = await (await newVisitor({ expects: /40[139]/ })).newPage();
    const ids = { acme: await tenantId(page, ACME), globex: await tenantId(page, GLOBEX) };
    await signIn(page, ACME, address, ADMINISTRATOR);
    await page.goto(`${address}/settings`);
    await page.getByRole("heading", { name: "Acme settings" }).waitFor();
    await page.getByRole("button", { name: "Check GitLab" }).click();
    await page.getByText("No problems found.").waitFor();

    const refused = [401, 403, 409];
    const asked = { "x-tenant-id": ids.acme };
    for (const [path, body] of [
      ["/tenant/update", { policy: { signUp: "closed" } }],
      ["/tenant/update", { name: "Mine" }],
      ["/tenant/oauth-config/update", { providerId: "gitlab", enabled: false }],
      ["/tenant/invitation/create", { email: "mole@example.com", role: "admin" }],
    ] as const) {
      for (const headers of [asked, { "x-tenant-id": ids.globex }]) {
        const { status } = await post(page, path, { ...body, tenantId: ids.globex }, headers);
        expect([path, refused.includes(status)]).toEqual([path, true]);
      }
    }
    const query = `?tenantId=${ids.globex}`;
    for (const path of ["oauth-config/list", "invitation/list"]) {
      const answer = await call(page, `/api/auth/tenant/${path}${query}`, { headers: asked });
      expect([path, refused.includes(answer.status)]).toEqual([path, true]);
    }
    // Nor its own address and status.
    for (const change of [{ slug: "mine" }, { status: "suspended" }]) {
      const body = { ...change, tenantId: ids.acme };
      expect((await post(page, "/tenant/update", body, asked)).status).toBe(403);
    }
    await page.goto(`${APP}/t/globex/settings`);
    expect(page.url()).toBe(`${APP}/t/globex`);
    await page.goto(`${hostOf(GLOBEX)}/settings`);
    expect(page.url()).toBe(`${hostOf(GLOBEX)}/`);
    await page.goto(`${APP}/console`);
    expect(page.url()).toBe(`${APP}/console/sign-in`);
  });
}

test("an operator in the same browser lends nobody any rights", async () => {
  const page = await newOperator(/409/);
  await signIn(page, ACME, `${APP}/t/acme`, ADMINISTRATOR);
  await page.getByRole("link", { name: "Settings" }).click();
  const policy = page.getByRole("region", { name: "Policy" });
  await policy.getByLabel("Only with these methods").check();
  await policy.getByLabel("Password", { exact: true }).uncheck();
  await policy.getByLabel("Magic link").uncheck();
  await policy.getByRole("button", { name: "Save policy" }).click();
  await policy.getByText("you could not sign in again yourself").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(`${APP}/t/acme`);
  await signIn(page, ACME);
  await page.goto(`${APP}/t/acme/settings`);
  expect(await text(page)).toContain("Only administrators of Acme can change its settings.");
  await page.goto(`${APP}/console`);
  await page.getByRole("heading", { name: "Tenants" }).waitFor();
});

test("every section of the settings can be reached, and the header fits a phone", async () => {
  const page = await (await newVisitor()).newPage();
  await signIn(page, ACME, `${APP}/t/acme`, ADMINISTRATOR);
  await page.goto(`${APP}/t/acme/settings`);
  const sections = page.getByRole("navigation", { name: "Settings" }).getByRole("link");
  expect(await sections.allInnerTexts()).toEqual(
    await page
      .locator(".card > h2")
      .evaluateAll((all) => all.map((heading) => heading.textContent?.replace(" at Acme", ""))),
  );
  for (const section of await sections.all()) {
    await section.click();
    await expect.poll(() => page.locator("h2:target").count()).toBe(1);
  }
  await page.setViewportSize({ width: 390, height: 844 });
  const header = page.getByRole("banner");
  const [brand, button, nav] = await Promise.all([
    header.getByText("Acme", { exact: true }).boundingBox(),
    header.getByRole("button", { name: "Sign out" }).boundingBox(),
    header.getByRole("navigation").boundingBox(),
  ]);
  expect(button?.y).toBeLessThan(Number(brand?.y) + Number(brand?.height));
  expect(nav?.y).toBeGreaterThan(Number(button?.y));
});

test("other people of a tenant have no settings", async () => {
  const page = await (await newVisitor()).newPage();
  await signIn(page, ACME);
  expect(await page.getByRole("link", { name: "Settings" }).count()).toBe(0);
  await page.goto(`${APP}/t/acme/settings`);
  expect(await text(page)).toContain("Only administrators of Acme can change its settings.");
  expect(await page.content()).not.toContain("acme-client");
  await page.getByRole("link", { name: "Go to the dashboard" }).click();
  await page.waitForURL(`${APP}/t/acme/dashboard`);
});
