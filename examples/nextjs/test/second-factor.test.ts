import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { totpFrom } from "../../../test/support/totp";
import { createTenant, deleteTenantsAfterwards, fillAccount, newOperator } from "./support/console";
import { closeBrowserAfterwards, fillSignIn, newVisitor, text } from "./support/visitor";

closeBrowserAfterwards();
deleteTenantsAfterwards();

const PASSWORD = "a good password";

async function setUp(page: Page): Promise<() => Promise<string>> {
  await page.getByRole("heading", { name: "Set up a second factor" }).waitFor();
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.locator(".qr svg").waitFor();
  const secret = await page.locator(".copyable code").first().innerText();
  const codeOf = () => totpFrom(`otpauth://totp/x?secret=${secret}`);
  await page.getByLabel("Code").fill(await codeOf());
  await page.getByRole("button", { name: "Finish" }).click();
  await page.getByRole("heading", { name: "Hello" }).waitFor();
  return codeOf;
}

test("a tenant requires a second factor, from the policy to a lost device", async () => {
  const operator = await newOperator();
  const { address } = await createTenant(operator, "Cyberdyne", "cyberdyne");
  const email = "miles@cyberdyne.example";
  const page = await (await newVisitor()).newPage();
  await page.goto(`${address}/sign-up`);
  await page.getByLabel("Email").fill(email);
  await fillAccount(page, { Name: "Miles", Password: PASSWORD });
  await page.getByRole("heading", { name: "Hello" }).waitFor();

  // Required from now on: the session has ended, and the next sign-in leads to the setup.
  const policy = operator.getByRole("region", { name: "Policy" });
  await policy.getByLabel("Require a second factor").check();
  await policy.getByRole("button", { name: "Save policy" }).click();
  await policy.getByText("Policy saved.").waitFor();
  // Pages have an instance of their own, which reads the policy within ten seconds.
  const pathOfDashboard = async () => {
    await page.goto(`${address}/dashboard`);
    return new URL(page.url()).pathname;
  };
  await expect.poll(pathOfDashboard, { timeout: 20_000 }).toBe("/t/cyberdyne");
  await fillSignIn(page, { email, password: PASSWORD });
  await page.getByRole("heading", { name: "Set up a second factor" }).waitFor();
  const elsewhere = await page.context().newPage();
  await elsewhere.goto(`${address}/dashboard`);
  expect(new URL(elsewhere.url()).pathname).toBe("/t/cyberdyne");
  const codeOf = await setUp(page);
  expect(await text(page)).toContain("A second factor is set up.");

  // The next sign-in asks for a code.
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await page.getByRole("heading", { name: "Sign in to" }).waitFor();
  await fillSignIn(page, { email, password: PASSWORD });
  await page.getByRole("heading", { name: "Enter your code" }).waitFor();
  await page.getByLabel("Code").fill(await codeOf());
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { name: "Hello" }).waitFor();

  // The device is lost.
  await operator.reload();
  await operator.getByText("Manage Miles").click();
  await operator.getByRole("button", { name: "Reset second factor" }).click();
  await operator
    .getByRole("button", { name: "Reset second factor" })
    .waitFor({ state: "detached" });
  await page.goto(`${address}/dashboard`);
  await page.getByRole("heading", { name: "Sign in to" }).waitFor();
  await fillSignIn(page, { email, password: PASSWORD });
  await setUp(page);
});
