import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { totpFrom } from "../../../test/support/totp";
import { createTenant, deleteTenantsAfterwards, fillAccount, newOperator } from "./support/console";
import { photograph } from "./support/looks";
import { APP, closeBrowserAfterwards, fillSignIn, newVisitor, text } from "./support/visitor";

closeBrowserAfterwards();
deleteTenantsAfterwards();

const EMAIL = "dana@zuul.example";
const [FIRST, SECOND] = ["there is no Dana", "only Zuul is here"] as const;

/** A device that unlocks itself, and keeps passkeys. */
async function addAuthenticator(page: Page) {
  const session = await page.context().newCDPSession(page);
  await session.send("WebAuthn.enable");
  await session.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
}

async function signOut(page: Page) {
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await page.getByRole("heading", { name: "Sign in to" }).waitFor();
}

async function openAccount(page: Page) {
  await page.getByRole("heading", { name: "Hello" }).waitFor();
  await page.getByRole("link", { name: "Account" }).click();
  await page.getByRole("heading", { name: "Your account" }).waitFor();
  return (name: string) => page.getByRole("region", { name });
}

test("users change their name, password, second factor, passkeys and sessions", async () => {
  const { address } = await createTenant(await newOperator(), "Zuul", "zuul");
  const page = await (await newVisitor({ expects: /40[01]/ })).newPage();
  await addAuthenticator(page);
  await page.goto(`${address}/sign-up`);
  await page.getByLabel("Email").fill(EMAIL);
  await fillAccount(page, { Name: "Dana", Password: FIRST });
  let section = await openAccount(page);

  await section("Name").getByLabel("Name").fill("Dana Barrett");
  await section("Name").getByRole("button", { name: "Save" }).click();
  await section("Name").getByText("Saved.").waitFor();

  // A new password ends the sessions elsewhere, and the old one is gone.
  const elsewhere = await (await newVisitor({ expects: /401/ })).newPage();
  await elsewhere.goto(address);
  await fillSignIn(elsewhere, { email: EMAIL, password: FIRST });
  await elsewhere.getByRole("heading", { name: "Hello, Dana Barrett" }).waitFor();
  await page.reload();
  expect(await section("Sessions").getByRole("listitem").count()).toBe(2);
  const change = async (current: string, said: string) => {
    await section("Password").getByLabel("Current password", { exact: true }).fill(current);
    await section("Password").getByLabel("New password", { exact: true }).fill(SECOND);
    await section("Password").getByRole("button", { name: "Change password" }).click();
    await section("Password").getByText(said).waitFor();
  };
  await change("a guess", "Invalid password.");
  await change(FIRST, "Your password has been changed.");
  await expect.poll(() => section("Sessions").getByRole("listitem").count()).toBe(1);
  await elsewhere.reload();
  await fillSignIn(elsewhere, { email: EMAIL, password: FIRST });
  await elsewhere.getByText("Invalid email or password.").waitFor();
  await fillSignIn(elsewhere, { email: EMAIL, password: SECOND });
  await elsewhere.getByRole("heading", { name: "Hello" }).waitFor();
  await page.reload();
  await section("Sessions").getByRole("button", { name: "Sign out of all other" }).click();
  await expect.poll(() => section("Sessions").getByRole("listitem").count()).toBe(1);
  await elsewhere.reload();
  await elsewhere.getByRole("heading", { name: "Sign in to Zuul" }).waitFor();

  // A second factor, on and off.
  await section("Second factor").getByRole("link", { name: "Set up a second factor" }).click();
  await page.waitForURL(/two-factor\/setup/);
  await page.getByLabel("Password", { exact: true }).fill(SECOND);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.locator(".qr svg").waitFor();
  const secret = await page.locator(".copyable code").first().innerText();
  await page.getByLabel("Code").fill(await totpFrom(`otpauth://totp/x?secret=${secret}`));
  await page.getByRole("button", { name: "Finish" }).click();
  section = await openAccount(page);
  await section("Second factor").getByText("A second factor is set up.").waitFor();
  await photograph(page, "account-second-factor");
  await section("Second factor").getByLabel("Password", { exact: true }).fill(SECOND);
  await section("Second factor").getByRole("button", { name: "Switch off" }).click();
  await section("Second factor").getByRole("link", { name: "Set up" }).waitFor();

  // A passkey signs in, until it is removed.
  await section("Passkeys").getByRole("button", { name: "Add a passkey" }).click();
  const passkey = section("Passkeys").getByRole("listitem");
  await passkey.waitFor();
  await photograph(page, "account-passkey");
  await signOut(page);
  const button = page.getByRole("button", { name: "Sign in with a passkey" });
  await button.click();
  section = await openAccount(page);
  await passkey.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await passkey.waitFor({ state: "detached" });
  await signOut(page);
  await button.click();
  await page.getByText("This passkey is not known here.").waitFor();
}, 120_000);

test("a visitor who is not signed in has no account page", async () => {
  const page = await (await newVisitor()).newPage();
  await page.goto(`${APP}/t/acme/account`);
  expect(new URL(page.url()).pathname).toBe("/t/acme");
  expect(await text(page)).toContain("Sign in to Acme");
});
