import { expect, inject, test } from "vitest";
import {
  continueWithGitLab,
  createTenant,
  deleteTenantsAfterwards,
  fillAccount,
  invite,
  newOperator,
  post,
  setUpGitLab,
} from "./support/console";
import { APP, closeBrowserAfterwards, fillSignIn, newVisitor, text } from "./support/visitor";

closeBrowserAfterwards();
deleteTenantsAfterwards();

const PASSWORD = "a long password";

test("a suspended tenant signs nobody in and says so, and goes on where it was", async () => {
  const operator = await newOperator();
  const { id, address } = await createTenant(operator, "Cyberdyne", "cyberdyne");
  const page = await (await newVisitor()).newPage();
  await page.goto(`${address}/sign-up`);
  await page.getByLabel("Email").fill("miles@example.com");
  await fillAccount(page, { Name: "Miles", Password: PASSWORD });
  await page.waitForURL(`${address}/dashboard`);

  await operator.getByRole("button", { name: "Suspend Cyberdyne" }).click();
  await operator.getByRole("button", { name: "Resume Cyberdyne" }).waitFor();
  expect(await text(operator)).toContain("Nobody can sign in");
  await operator.goto(`${APP}/console`);
  const row = operator.getByRole("row").filter({ hasText: "Cyberdyne" });
  expect(await row.innerText()).toContain("Suspended");

  // Whoever was signed in is not any more, and every page of the tenant says why.
  for (const path of ["/dashboard", "/sign-up", "/forgot-password", "/accept-invitation", ""]) {
    await page.goto(address + path);
    expect(page.url()).toBe(address);
    await page.getByRole("heading", { name: "Cyberdyne is suspended" }).waitFor();
    expect(await page.getByRole("button").count()).toBe(0);
  }

  await operator.goto(`${APP}/console/tenants/${id}`);
  await operator.getByRole("button", { name: "Resume Cyberdyne" }).click();
  await operator.getByRole("button", { name: "Suspend Cyberdyne" }).waitFor();
  await page.goto(address);
  await fillSignIn(page, { email: "miles@example.com", password: PASSWORD });
  await page.waitForURL(`${address}/dashboard`);
  expect(await text(page)).toContain("Hello, Miles");
});

test("a sign-in that was under way when the tenant was suspended ends at its page", async () => {
  const operator = await newOperator();
  const { id, address } = await createTenant(operator, "Tyrell", "tyrell");
  await setUpGitLab(operator);
  const page = await (await newVisitor()).newPage();
  await page.goto(address);
  await page.getByRole("button", { name: "Continue with GitLab" }).click();
  await page.getByRole("button", { name: "Allow" }).waitFor();
  await post(operator, "/tenant/update", { tenantId: id, status: "suspended" });
  await page.getByRole("button", { name: "Allow" }).click();
  await page.getByRole("heading", { name: "Tyrell is suspended" }).waitFor();
  await post(operator, "/tenant/update", { tenantId: id, status: "active" });
  await page.goto(address);
  await continueWithGitLab(page, "Kim Park");
  await page.waitForURL(`${address}/dashboard`);
});

/** What a cron job does. */
const purge = (secret: string) =>
  fetch(`${APP}/api/purge-tenants`, {
    method: "POST",
    headers: { authorization: `Bearer ${secret}` },
  });

test("a deletion waits for a week and can be taken back, until it is due", async () => {
  const operator = await newOperator(/40[49]/);
  const { id, address } = await createTenant(operator, "Oscorp", "oscorp");
  await invite(operator, "norman@example.com");
  await operator.getByRole("link", { name: "Delete Oscorp" }).click();
  const preview = operator.getByRole("region", { name: "What will be deleted" });
  await preview.getByText("Invitations").waitFor();
  await operator.getByRole("button", { name: "Delete Oscorp in a week" }).click();
  await operator.getByRole("button", { name: "Do not delete Oscorp" }).waitFor();
  const day = new Date(Date.now() + 7 * 24 * 60 * 60 * 1000).toLocaleDateString("en", {
    dateStyle: "medium",
    timeZone: "UTC",
  });
  const status = operator.getByRole("region", { name: "Status" });
  expect(await status.innerText()).toContain(`after ${day}`);
  const page = await (await newVisitor({ expects: /404/ })).newPage();
  await page.goto(address);
  await page.getByRole("heading", { name: "Oscorp is suspended" }).waitFor();
  await operator.goto(`${APP}/console`);
  const row = operator.getByRole("row").filter({ hasText: "Oscorp" });
  expect(await row.innerText()).toContain("Will be deleted");

  // Nothing happens before its time, and whoever does not know the secret purges nothing.
  const secret = inject("env").CRON_SECRET ?? "";
  expect((await purge("a guess")).status).toBe(401);
  expect((await purge("")).status).toBe(401);
  expect(await (await purge(secret)).json()).toEqual({ deleted: [], failed: [] });
  await operator.goto(`${APP}/console/tenants/${id}`);
  await operator.getByRole("button", { name: "Do not delete Oscorp" }).click();
  await operator.getByRole("button", { name: "Suspend Oscorp" }).waitFor();
  await page.goto(address);
  await page.getByRole("heading", { name: "Sign in to Oscorp" }).waitFor();

  // A week later, as it were.
  await post(operator, "/tenant/delete", { tenantId: id, after: 0 });
  await operator.reload();
  await operator.getByRole("button", { name: "Do not delete Oscorp" }).click();
  await status.getByText("It is too late to cancel this.").waitFor();
  expect(await (await purge(secret)).json()).toEqual({ deleted: [id], failed: [] });
  expect((await page.goto(address))?.status()).toBe(404);
});
