import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { policyFrom } from "../lib/policy";
import {
  continueWithGitLab,
  createTenant,
  deleteTenantsAfterwards,
  fillAccount,
  followMail,
  newOperator,
  post,
  setUpGitLab,
} from "./support/console";
import { call, closeBrowserAfterwards, fillSignIn, newVisitor, text } from "./support/visitor";

closeBrowserAfterwards();
deleteTenantsAfterwards();

const policyOn = (page: Page) => page.getByRole("region", { name: "Policy" });

async function savePolicy(page: Page, said = "Policy saved.") {
  const answer = page.waitForResponse("**/tenant/update");
  await policyOn(page).getByRole("button", { name: "Save policy" }).click();
  await answer;
  await policyOn(page).getByText(said).waitFor();
}

async function signUp(page: Page, address: string, email: string, password: string) {
  await page.goto(`${address}/sign-up`);
  await page.getByLabel("Email").fill(email);
  await fillAccount(page, { Name: "Somebody", Password: password });
}

test("a tenant asks for longer passwords, for its own domain, and for shorter sessions", async () => {
  const operator = await newOperator(/400/);
  const { address } = await createTenant(operator, "Weyland", "weyland");
  const policy = policyOn(operator);

  // What is wrong is said in words, and what was typed stays.
  await policy.getByLabel("Allowed domains").fill("weyland");
  await policy.getByLabel("Minimum password length").fill("12");
  await savePolicy(operator, "Please enter domains such as example.com.");
  expect(await policy.getByLabel("Minimum password length").inputValue()).toBe("12");
  await policy.getByLabel("Allowed domains").fill("weyland.example, @YUTANI.example");
  await policy.getByLabel("Session length").fill("1");
  await savePolicy(operator);
  await operator.reload();
  expect(await policy.getByLabel("Allowed domains").inputValue()).toBe(
    "weyland.example, yutani.example",
  );
  expect(await policy.getByLabel("Minimum password length").inputValue()).toBe("12");
  expect(await policy.getByLabel("Session length").inputValue()).toBe("1");

  const page = await (await newVisitor({ expects: /403/ })).newPage();
  await signUp(page, address, "ash@elsewhere.example", "twelve letters");
  await page.getByText("Email addresses at this domain cannot join.").waitFor();
  const allowed = "You can join with an email address at weyland.example or yutani.example.";
  expect(await text(page)).toContain(allowed);
  // The form knows the length.
  await signUp(page, address, "ash@weyland.example", "eight ch");
  expect(await text(page)).toContain("At least 12 characters.");
  expect(new URL(page.url()).pathname).toBe("/t/weyland/sign-up");

  // An address counts once it is confirmed.
  await signUp(page, address, "ash@weyland.example", "twelve letters");
  await page.getByText("Please confirm your email address.").waitFor();
  const person = { email: "ash@weyland.example", password: "twelve letters" };
  await page.goto(address);
  await fillSignIn(page, person);
  await page.getByText("Please confirm your email address first.").waitFor();
  await followMail(page, "weyland", person.email, "Confirm your email address");
  await page.getByRole("heading", { name: "Your email address is confirmed" }).waitFor();
  await page.goto(address);
  await fillSignIn(page, person);
  await page.waitForURL(`${address}/dashboard`);
  const cookies = await page.context().cookies(address);
  const { expires = 0 } = cookies.find(({ name }) => name.includes("session_token")) ?? {};
  expect(expires - Date.now() / 1000).toBeLessThanOrEqual(3600);
});

test("a tenant allows GitLab only, and ends the sessions of before", async () => {
  const operator = await newOperator(/400/);
  const { address } = await createTenant(operator, "Aperture", "aperture");
  await setUpGitLab(operator);
  const page = await (await newVisitor()).newPage();
  await signUp(page, address, "cave@example.com", "a long password");
  await page.waitForURL(`${address}/dashboard`);

  // People are told what they can choose from, by name.
  const policy = policyOn(operator);
  await policy.getByLabel("Only with these methods").check();
  const names = await policy
    .getByRole("checkbox")
    .evaluateAll((all) => all.map((box) => (box as HTMLInputElement).labels?.[0]?.textContent));
  expect(names.slice(0, 3)).toEqual(["Password", "GitLab", "Magic link"]);
  await policy.getByLabel("Password", { exact: true }).uncheck();
  await policy.getByLabel("Passkey").uncheck();
  await policy.getByLabel("GitLab").uncheck();
  await policy.getByLabel("Magic link").uncheck();
  await savePolicy(operator, "Please choose at least one sign-in method");
  await policy.getByLabel("GitLab").check();
  await savePolicy(operator);
  await page.reload();
  expect(await text(page)).toContain("Hello, Somebody");

  await policy.getByLabel("End all sessions now").check();
  await savePolicy(operator);
  // Not again with the next change.
  await policy.getByRole("checkbox", { name: "End all sessions now", checked: false }).waitFor();
  await page.reload();
  await page.waitForURL(address);
  expect(await page.getByLabel("Password").count()).toBe(0);
  await continueWithGitLab(page, "Lee Wong");
  await page.waitForURL(`${address}/dashboard`);

  // And back.
  await policy.getByLabel("With every method that is set up").check();
  await savePolicy(operator);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(address);
  await fillSignIn(page, { email: "cave@example.com", password: "a long password" });
  await page.waitForURL(`${address}/dashboard`);
});

test("a tenant is closed to strangers, by whichever way they come", async () => {
  const operator = await newOperator();
  const { address } = await createTenant(operator, "Massive", "massive");
  await setUpGitLab(operator);
  await policyOn(operator).getByLabel("Who may join").selectOption("Invited people only");
  await savePolicy(operator);
  const page = await (await newVisitor({ expects: /404/ })).newPage();
  expect((await page.goto(`${address}/sign-up`))?.status()).toBe(404);
  await page.goto(address);
  expect(await text(page)).toContain("You can join by invitation only.");
  await continueWithGitLab(page, "Kim Park");
  await page.getByRole("alert").getByText("You can join by invitation only.").waitFor();
  await policyOn(operator).getByLabel("Who may join").selectOption("No one new");
  await savePolicy(operator);
  await page.goto(address);
  await continueWithGitLab(page, "Kim Park");
  await page.getByRole("alert").getByText("Nobody new can join at the moment.").waitFor();
});

test("people sign in with a link by email, if the tenant allows it", async () => {
  const operator = await newOperator();
  const { address } = await createTenant(operator, "Initrode", "initrode");
  const page = await (await newVisitor({ expects: /404/ })).newPage();
  const email = "milton@example.com";
  const button = page.getByRole("button", { name: "Email me a sign-in link" });
  await page.goto(address);
  await page.getByRole("link", { name: "Email me a sign-in link" }).click();
  await page.getByRole("heading", { name: "Sign in by email" }).waitFor();
  await page.getByLabel("Email").fill(email);
  await button.click();
  await page.getByText(`We have sent a sign-in link to ${email}.`).waitFor();
  await followMail(page, "initrode", email, "Your sign-in link");
  await page.waitForURL(`${address}/dashboard`);
  await page.getByText("a link by email").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(address);
  // Once only.
  await followMail(page, "initrode", email, "Your sign-in link");
  await page.getByText("This link has expired or has already been used.").waitFor();

  // As the only way in, and not at all.
  const policy = policyOn(operator);
  await policy.getByLabel("Only with these methods").check();
  await policy.getByLabel("Password", { exact: true }).uncheck();
  await savePolicy(operator);
  await page.goto(address);
  await button.waitFor();
  expect(await page.getByLabel("Password").count()).toBe(0);
  await policy.getByLabel("Password", { exact: true }).check();
  await policy.getByLabel("Magic link").uncheck();
  await savePolicy(operator);
  await page.goto(address);
  await page.getByLabel("Password", { exact: true }).waitFor();
  expect(await page.getByRole("link", { name: "Email me" }).count()).toBe(0);
  expect((await page.goto(`${address}/sign-in-link`))?.status()).toBe(404);
});

test("an applicant is told about no domain that is not verified", async () => {
  const operator = await newOperator();
  const { id, address } = await createTenant(operator, "Nakatomi", "nakatomi");
  await post(operator, "/tenant/domain/add", { tenantId: id, domain: "secret.example" });
  await policyOn(operator).getByLabel("Allowed domains").fill("verified");
  await savePolicy(operator);
  const page = await (await newVisitor()).newPage();
  await page.goto(`${address}/sign-up`);
  await page.getByText("Only email addresses at certain domains can join.").waitFor();
  expect(await page.content()).not.toContain("secret.example");
});

test("a provider that is set up after a second factor was required is offered", async () => {
  const operator = await newOperator();
  const { id, address } = await createTenant(operator, "Tyrell", "tyrell");
  await policyOn(operator).getByLabel("Require a second factor").check();
  await savePolicy(operator);
  const google = { providerId: "google", clientId: "client", clientSecret: "secret" };
  await post(operator, "/tenant/oauth-config/register", { tenantId: id, ...google });
  const page = await (await newVisitor()).newPage();
  await page.goto(address);
  await page.getByRole("button", { name: "Continue with Google" }).waitFor();
});

test("what the form for a policy does not show stays as it is", async () => {
  const operator = await newOperator();
  const { id } = await createTenant(operator, "Wonka", "wonka");
  const twoFactor = { required: true, exemptMethods: ["magic-link"] };
  await post(operator, "/tenant/update", { tenantId: id, policy: { twoFactor } });
  await operator.reload();
  await policyOn(operator).getByLabel("Minimum password length").fill("12");
  await savePolicy(operator);
  const { data } = await call(operator, `/api/auth/tenant/get?id=${id}`);
  expect(data.policy).toEqual({ twoFactor, password: { minLength: 12 } });

  // Nor does it drop what a later version may know.
  const later = { password: { minLength: 9, history: 3 }, later: true };
  const form = new FormData();
  form.set("signUp", "invited");
  expect(JSON.parse(JSON.stringify(policyFrom(form, later)))).toEqual({
    ...{ signUp: "invited", later: true },
    password: { history: 3 },
  });
});
