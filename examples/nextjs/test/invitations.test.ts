import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import {
  continueWithGitLab,
  createTenant,
  deleteTenantsAfterwards,
  fillAccount,
  followMail,
  invite,
  newOperator,
  post,
  setUpGitLab,
} from "./support/console";
import {
  ACME,
  ADMINISTRATOR,
  APP,
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

/** A tenant that nobody joins without an invitation; the page shows it. */
async function createInviteOnly(operator: Page, name: string, slug: string) {
  const tenant = await createTenant(operator, name, slug);
  await setUpGitLab(operator);
  const policy = operator.getByRole("region", { name: "Policy" });
  await policy.getByLabel("Who may join").selectOption("Invited people only");
  await policy.getByRole("button", { name: "Save policy" }).click();
  await policy.getByText("Policy saved.").waitFor();
  return tenant;
}

/** The link of the newest mail to somebody. */
async function linkTo(page: Page, slug: string, email: string) {
  await page.goto(`${APP}/inbox?tenant=${slug}`);
  const mail = page.getByRole("article", { name: "Join" }).filter({ hasText: email });
  return (await mail.first().getByRole("link").getAttribute("href")) ?? "";
}

/** Invites without a mail, because an address gets one a minute: "Resend" sends the first. */
async function inviteUnmailed(page: Page, tenantId: string, email: string, more: object = {}) {
  const redirectTo = `/accept-invitation?tenant=${tenantId}`;
  const body = { tenantId, email, redirectTo, send: false, ...more };
  const { status, data } = await post(page, "/tenant/invitation/create", body);
  expect(status).toBe(200);
  return String((data as { url?: string }).url);
}

const entry = (page: Page, email: string) =>
  page.getByRole("region", { name: "Invitations" }).getByRole("listitem", { name: email });

test("the same address is invited to two tenants: by password here, with GitLab there", async () => {
  const operator = await newOperator();
  const wayne = await createInviteOnly(operator, "Wayne", "wayne");
  await invite(operator, "kim@example.com");
  const stark = await createInviteOnly(operator, "Stark", "stark");
  await invite(operator, "kim@example.com", "Administrator");

  const kim = await (await newVisitor()).newPage();
  await followMail(kim, "wayne", "kim@example.com", "Join Wayne");
  await kim.getByRole("heading", { name: "Join Wayne" }).waitFor();
  expect(await text(kim)).toContain("You are invited as kim@example.com.");
  await fillAccount(kim, { Name: "Kim at Wayne", Password: "a long password" });
  await kim.waitForURL(`${wayne.address}/dashboard`);
  expect(await text(kim)).toContain("Hello, Kim at Wayne");
  // The mail has shown that the address is theirs.
  expect(await text(kim)).toContain("Confirmed");

  await followMail(kim, "stark", "kim@example.com", "Join Stark");
  expect(await text(kim)).toContain("You will be an administrator.");
  await continueWithGitLab(kim, "Kim Park");
  await kim.waitForURL(`${stark.address}/dashboard`);
  expect(await text(kim)).toContain("Hello, Kim Park");
  await kim.getByRole("link", { name: "Settings" }).click();
  await kim.getByRole("heading", { name: "Stark settings" }).waitFor();
  // At the other one, Kim is nobody's administrator.
  await kim.goto(`${wayne.address}/dashboard`);
  expect(await kim.getByRole("link", { name: "Settings" }).count()).toBe(0);

  await operator.reload();
  expect(await entry(operator, "kim@example.com").innerText()).toMatch(
    /Accepted\s+Administrator, invited by Olga Operator/,
  );
});

test("a link is good for its address, in its tenant, once", async () => {
  const operator = await newOperator();
  const { address } = await createInviteOnly(operator, "Pied Piper", "pied-piper");
  await invite(operator, "lee@example.com");
  const lee = await (await newVisitor()).newPage();
  const link = await linkTo(lee, "pied-piper", "lee@example.com");
  await lee.goto(link);
  await lee.getByRole("heading", { name: "Join Pied Piper" }).waitFor();

  // With somebody else's GitLab it is of no use, and the page is still there.
  await continueWithGitLab(lee, "Kim Park");
  await lee.getByRole("alert").getByText("This invitation is for another email address.").waitFor();
  // Nor at another tenant's address.
  for (const other of [`${APP}/t/${GLOBEX.slug}`, hostOf(GLOBEX)]) {
    await lee.goto(`${other}/accept-invitation?${new URL(link).searchParams}`);
    await lee.getByRole("heading", { name: "This invitation is not valid" }).waitFor();
  }
  // It works on the tenant's own host.
  const atHost = `${hostOf({ slug: "pied-piper" })}/accept-invitation?${new URL(link).searchParams}`;
  await lee.goto(atHost);
  await fillAccount(lee, { Name: "Lee", Password: "a long password" });
  await lee.waitForURL(`${hostOf({ slug: "pied-piper" })}/dashboard`);

  // Used: whoever is signed in goes on, everybody else signs in.
  await lee.goto(atHost);
  await lee.getByRole("heading", { name: "This invitation has already been used" }).waitFor();
  await lee.getByRole("link", { name: "Go to the dashboard" }).click();
  await lee.getByRole("heading", { name: "Hello, Lee" }).waitFor();
  await lee.goto(link);
  await lee.getByRole("link", { name: "Sign in" }).click();
  await lee.waitForURL(address);
});

test("an invitation is sent again, expires and is revoked, and each link says what to do", async () => {
  const operator = await newOperator();
  const { id } = await createInviteOnly(operator, "Dunder", "dunder");
  const first = await inviteUnmailed(operator, id, "ryan@example.com");
  await operator.reload();
  const page = await (await newVisitor()).newPage();

  const ryan = entry(operator, "ryan@example.com");
  await ryan.getByRole("button", { name: "Resend" }).click();
  await ryan.getByText("Sent again.").waitFor();
  const second = await linkTo(page, "dunder", "ryan@example.com");
  await page.goto(first);
  await page.getByRole("heading", { name: "This invitation is not valid" }).waitFor();
  expect(await text(page)).toContain("a newer email has replaced it");
  await page.goto(second);
  await page.getByRole("heading", { name: "Join Dunder" }).waitFor();
  // A page that was open for too long.
  const late = await (await newVisitor({ expects: /404/ })).newPage();
  await late.goto(second);
  await ryan.getByRole("button", { name: "Revoke" }).click();
  await ryan.getByText("Revoked").waitFor();
  await page.goto(second);
  await page.getByRole("heading", { name: "This invitation is not valid" }).waitFor();
  await page.getByRole("link", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Sign in to Dunder" }).waitFor();
  await fillAccount(late, { Name: "Ryan", Password: "a long password" });
  await late.getByText("This invitation is no longer valid.").waitFor();

  const expired = await inviteUnmailed(operator, id, "toby@example.com", { expiresIn: 1 });
  await new Promise((wait) => setTimeout(wait, 1100));
  await page.goto(expired);
  await page.getByRole("heading", { name: "This invitation has expired" }).waitFor();
  await operator.reload();
  const toby = entry(operator, "toby@example.com");
  expect(await toby.innerText()).toContain("Expired");
  await toby.getByRole("button", { name: "Resend" }).click();
  await toby.getByText("Pending").waitFor();
  await page.goto(await linkTo(page, "dunder", "toby@example.com"));
  await page.getByRole("heading", { name: "Join Dunder" }).waitFor();
  // The slug may change meanwhile.
  await operator.getByLabel("Slug").fill("dunder-mifflin");
  await operator.getByRole("button", { name: "Save", exact: true }).click();
  await operator.getByRole("region", { name: "Details" }).getByText("Saved.").waitFor();
  await page.goto(await linkTo(page, "dunder-mifflin", "toby@example.com"));
  await fillAccount(page, { Name: "Toby", Password: "a long password" });
  await page.waitForURL(`${APP}/t/dunder-mifflin/dashboard`);
});

test("whoever is there already is not invited, and nobody where nobody may join", async () => {
  const operator = await newOperator(/40[39]/);
  await operator.getByRole("link", { name: "Acme" }).click();
  const section = operator.getByRole("region", { name: "Invitations" });
  await section.getByLabel("Email").fill("jane@example.com");
  await section.getByRole("button", { name: "Send invitation" }).click();
  await section.getByText("There is already an account with this email address.").waitFor();

  const { id } = await createTenant(operator, "Gringotts", "gringotts");
  await post(operator, "/tenant/update", { tenantId: id, policy: { signUp: "closed" } });
  await section.getByLabel("Email").fill("griphook@example.com");
  await section.getByRole("button", { name: "Send invitation" }).click();
  await section.getByText("Nobody new can join at the moment.").waitFor();
});

test("an invitation from a tenant's own host may be sent again from the console", async () => {
  const page = await (await newVisitor()).newPage();
  await signIn(page, ACME, hostOf(ACME), ADMINISTRATOR);
  await page.goto(`${hostOf(ACME)}/settings`);
  await inviteUnmailed(page, await tenantId(page, ACME), "carl@example.com");
  const operator = await newOperator();
  await operator.getByRole("link", { name: "Acme" }).click();
  const carl = entry(operator, "carl@example.com");
  await carl.getByRole("button", { name: "Resend" }).click();
  await carl.getByText("Sent again.").waitFor();
  await followMail(page, "acme", "carl@example.com", "Join Acme");
  await page.waitForURL(`${APP}/t/acme/accept-invitation?token=*`);
  await page.getByRole("heading", { name: "Join Acme" }).waitFor();
});

for (const [where, address] of [
  ["by path", `${APP}/t/acme`],
  ["by host", hostOf(ACME)],
] as const) {
  test(`Acme's administrator invites from Acme's own page, ${where}`, async () => {
    const page = await (await newVisitor()).newPage();
    await signIn(page, ACME, address, ADMINISTRATOR);
    await page.goto(`${address}/settings`);
    const email = `guest-${where.replace(" ", "-")}@example.com`;
    await invite(page, email);
    expect(await entry(page, email).innerText()).toContain("invited by Alice at Acme");
    const guest = await (await newVisitor()).newPage();
    await followMail(guest, "acme", email, "Join Acme");
    await fillAccount(guest, { Name: "Gus", Password: "a long password" });
    await guest.waitForURL(`${address}/dashboard`);
    await page.reload();
    expect(await entry(page, email).innerText()).toContain("Accepted");
  });
}
