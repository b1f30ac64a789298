import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { followMail } from "./support/console";
import {
  APP,
  closeBrowserAfterwards,
  fillSignIn,
  hostOf,
  newVisitor,
  text,
} from "./support/visitor";

closeBrowserAfterwards();

let people = 0;

/** Somebody new at a tenant; the page shows the dashboard. */
async function signUp(page: Page, address: string) {
  const person = { email: `nora-${++people}@example.com`, password: "the first password" };
  await page.goto(`${address}/sign-up`);
  await page.getByLabel("Name").fill("Nora New");
  await page.getByLabel("Email").fill(person.email);
  await page.getByLabel("Password", { exact: true }).fill(person.password);
  await page.getByRole("button", { name: "Create account" }).click();
  await page.waitForURL(`${address}/dashboard`);
  return person;
}

async function signOut(page: Page) {
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
}

for (const [where, address] of [
  ["by path", `${APP}/t/acme`],
  ["by host", hostOf({ slug: "acme" })],
] as const) {
  test(`somebody signs up and confirms the address, ${where}`, async () => {
    const page = await (await newVisitor()).newPage();
    const { email } = await signUp(page, address);
    expect(await text(page)).toContain("Please confirm your email address");
    await followMail(page, "acme", email, "Confirm your email address");
    await page.waitForURL(`${address}/dashboard`);
    expect(await text(page)).not.toContain("Please confirm your email address");
    expect(await text(page)).toContain("Confirmed");
  });

  test(`a forgotten password is replaced through the inbox, ${where}`, async () => {
    const page = await (await newVisitor({ expects: /401/ })).newPage();
    const { email, password } = await signUp(page, address);
    await signOut(page);
    await page.getByRole("link", { name: "Forgot password?" }).click();
    await page.getByRole("heading", { name: "Forgot your password?" }).waitFor();
    await page.getByLabel("Email").fill(email);
    await page.getByRole("button", { name: "Send link" }).click();
    await page.getByText("we have sent a link").waitFor();

    await followMail(page, "acme", email, "Set a new password");
    await page.waitForURL(`${address}/reset-password?token=*`);
    await page.getByLabel("New password").fill("the second password");
    await page.getByRole("button", { name: "Save new password" }).click();
    await page.getByText("Your password has been changed").waitFor();

    await fillSignIn(page, { email, password });
    await page.getByText(/invalid/i).waitFor();
    await fillSignIn(page, { email, password: "the second password" });
    await page.waitForURL(`${address}/dashboard`);
  });
}

test("a link is good once, and in its own tenant only", async () => {
  const page = await (await newVisitor({ expects: /400/ })).newPage();
  const { email } = await signUp(page, `${APP}/t/acme`);
  await signOut(page);
  await page.goto(`${APP}/t/acme/forgot-password`);
  await page.getByLabel("Email").fill(email);
  await page.getByRole("button", { name: "Send link" }).click();
  await page.getByText("we have sent a link").waitFor();
  await followMail(page, "acme", email, "Set a new password");
  await page.waitForURL("**/reset-password?token=*");
  const { search } = new URL(page.url());

  const save = async (address: string) => {
    await page.goto(address + search);
    await page.getByLabel("New password").fill("the second password");
    await page.getByRole("button", { name: "Save new password" }).click();
  };
  await save(`${APP}/t/globex/reset-password`);
  await page.getByText("already been used").waitFor();
  await save(`${APP}/t/acme/reset-password`);
  await page.getByText("Your password has been changed").waitFor();
  await save(`${APP}/t/acme/reset-password`);
  await page.getByText("already been used").waitFor();
});

test("who asks for a stranger's password learns nothing", async () => {
  const page = await (await newVisitor()).newPage();
  await page.goto(`${APP}/t/acme/forgot-password`);
  await page.getByLabel("Email").fill("nobody-at-all@example.com");
  await page.getByRole("button", { name: "Send link" }).click();
  await page.getByText("we have sent a link").waitFor();
  await page.goto(`${APP}/inbox`);
  expect(await text(page)).not.toContain("nobody-at-all");
});
