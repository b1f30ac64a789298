import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { fillAccount, followMail, invite, post } from "./support/console";
import { inEachLook, photograph } from "./support/looks";
import {
  ACME,
  APP,
  closeBrowserAfterwards,
  hostOf,
  newVisitor,
  signIn,
  signInAsOperator,
  tenantId,
  text,
} from "./support/visitor";

closeBrowserAfterwards();

/** What sticks out of its card, or of the page. */
const sticksOut = (page: Page) =>
  page.evaluate(() => {
    const frames = [...document.querySelectorAll(".card, .bar > div, .entrance main, body")];
    return frames.flatMap((frame) => {
      const { left, right } = frame.getBoundingClientRect();
      return [...frame.querySelectorAll("*")]
        .filter((inner) => !inner.closest(".visually-hidden, .skip-link, dialog, details > *"))
        .filter((inner) => {
          const box = inner.getBoundingClientRect();
          return box.width > 0 && (box.right > right + 1 || box.left < left - 1);
        })
        .map((inner) => `${frame.className}: <${inner.tagName} class="${inner.className}">`);
    });
  });

const expectInShape = (page: Page, name: string) =>
  inEachLook(page, name, async (look) => {
    expect([look, await sticksOut(page)]).toEqual([look, []]);
    // A table that scrolls hides what is in it.
    const tables = await page
      .locator(".table")
      .evaluateAll((all) => all.map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth));
    expect([look, ...tables.filter((hidden) => hidden > 1)]).toEqual([look]);
  });

async function signUp(page: Page, address: string, name: string, email: string) {
  await page.goto(`${address}/sign-up`);
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password", { exact: true }).fill("a long password");
  await page.getByRole("button", { name: "Create account" }).click();
}

test("names may be as long as the server allows", async () => {
  // Colours that are on their way from light to dark would be in the pictures.
  const still = { reducedMotion: "reduce" } as const;
  const operator = await (await newVisitor(still)).newPage();
  await signInAsOperator(operator);
  const name = `${"Donaudampfschifffahrt".repeat(12)}!`;
  const { data: tenant } = await post(operator, "/tenant/create", { name, slug: "longest" });
  const page = await (await newVisitor(still)).newPage();
  await page.goto(`${APP}/t/longest`);
  await expectInShape(page, "long-sign-in");
  const email = `${"long".repeat(15)}@${"example".repeat(8)}.com`;
  await signUp(page, `${APP}/t/longest`, "Wolfeschlegelsteinhausen".repeat(10), email);
  await page.getByRole("heading", { name: "Hello" }).waitFor();
  await expectInShape(page, "long-dashboard");

  await operator.goto(`${APP}/console/tenants/${tenant.id}`);
  const guest = `${"guest".repeat(12)}@${"example".repeat(8)}.com`;
  await invite(operator, guest, "Administrator");
  const invited = await (await newVisitor(still)).newPage();
  await followMail(invited, "longest", guest, "Join");
  await expectInShape(invited, "long-invitation");
  await fillAccount(invited, { Name: "Wolf".repeat(60), Password: "a long password" });
  await invited.getByRole("heading", { name: "Hello" }).waitFor();
  await invited.goto(`${APP}/t/longest/settings`);
  await expectInShape(invited, "long-settings");

  await page.goto(`${APP}/inbox?tenant=longest`);
  await page.getByRole("article").first().waitFor();
  await expectInShape(page, "long-inbox");
  await page.goto(APP);
  await expectInShape(page, "long-start");
  for (const [path, title] of [
    ["", "long-console"],
    [`/tenants/${tenant.id}`, "long-console-tenant"],
    [`/tenants/${tenant.id}/delete`, "long-console-delete"],
  ] as const) {
    await operator.goto(`${APP}/console${path}`);
    await expectInShape(operator, title);
  }
  await post(operator, "/tenant/update", { tenantId: tenant.id, status: "suspended" });
  await page.goto(`${APP}/t/longest`);
  await expectInShape(page, "long-suspended");
  await operator.goto(`${APP}/console`);
  await expectInShape(operator, "long-console-suspended");
  await operator.goto(`${APP}/console/tenants/${tenant.id}`);
  await expectInShape(operator, "long-console-tenant-suspended");
  await post(operator, "/tenant/delete", { tenantId: tenant.id });
}, 180_000);

test("a blank name is refused by the form, and where there is one something else is shown", async () => {
  const page = await (await newVisitor()).newPage();
  await signUp(page, `${APP}/t/acme`, "   ", "blank@example.com");
  expect(new URL(page.url()).pathname).toBe("/t/acme/sign-up");
  const id = await tenantId(page, ACME);
  await page.goto(`${APP}/t/acme`);
  const blank = { name: " ", email: "blank@example.com", password: "a long password" };
  expect((await post(page, "/tenant/sign-up/email", blank, { "x-tenant-id": id })).status).toBe(
    200,
  );
  await page.goto(`${APP}/t/acme/dashboard`);
  expect(await page.getByRole("heading", { level: 1 }).innerText()).toBe(
    "Hello, blank@example.com",
  );
  const operator = await (await newVisitor()).newPage();
  await signInAsOperator(operator);
  await operator.goto(`${APP}/console/tenants/${id}`);
  const row = operator.getByRole("row").filter({ hasText: "blank@example.com" });
  expect(await row.getByRole("rowheader").innerText()).toBe("No name");
});

test("what the server finds wrong is said in words, and what was typed stays", async () => {
  const page = await (await newVisitor({ expects: /400/ })).newPage();
  // Good enough for the browser, but not for the server.
  await signUp(page, `${APP}/t/acme`, "Nora", "nora@localhost");
  const alert = page.getByRole("main").getByRole("alert");
  await alert.getByText("Please enter a valid email address.").waitFor();
  expect(await text(page)).not.toContain("[body");
  for (const [label, value] of [
    ["Name", "Nora"],
    ["Email", "nora@localhost"],
    ["Password", "a long password"],
  ] as const) {
    expect(await page.getByLabel(label, { exact: true }).inputValue()).toBe(value);
  }
});

test("providers have their own names, in alphabetical order", async () => {
  const page = await (await newVisitor()).newPage();
  await signInAsOperator(page);
  await page.getByRole("link", { name: "Acme" }).click();
  await page.getByText("Set up a provider").click();
  const names = await page.getByLabel("Provider").locator("option").allInnerTexts();
  expect(names).toEqual(names.toSorted((a, b) => a.localeCompare(b, "en")));
  expect(names).toEqual(expect.arrayContaining(["GitHub", "GitLab", "LinkedIn", "PayPal", "LINE"]));
});

test("what to register is there before a provider is set up, ready to copy", async () => {
  const visitor = await newVisitor({ permissions: ["clipboard-read", "clipboard-write"] });
  const page = await visitor.newPage();
  await signInAsOperator(page);
  await page.getByRole("link", { name: "Globex" }).click();
  await page.getByText("Set up a provider").click();
  await page.getByLabel("Provider").selectOption("LinkedIn");
  const uri = `${APP}/api/auth/tenant/callback/linkedin`;
  await page.getByText(uri, { exact: true }).waitFor();
  await page.getByRole("button", { name: "Copy the redirect URI for LinkedIn" }).click();
  await page.getByText("Copied.").waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(uri);
  // A provider at a host of the tenant's own has an address of its own.
  await page.getByLabel("Provider").selectOption("GitLab");
  await page.getByLabel("URL of your own GitLab").fill("https://gitlab.example.com");
  const form = page.locator("form").filter({ hasText: "Set up GitLab" });
  await form.getByText("/callback/gitlab?tenant=").waitFor();
});

test("another name of this machine leads to the application's own", async () => {
  const page = await (await newVisitor()).newPage();
  await page.goto(`${APP.replace("localhost", "127.0.0.1")}/t/acme?done=password`);
  await page.waitForURL(`${APP}/t/acme?done=password`);
  await signIn(page, ACME);
});

test.each([
  ["at the application's address", APP, "Choose a tenant", `${APP}/`],
  ["on a tenant's host", hostOf(ACME), "Sign in", `${hostOf(ACME)}/`],
])("who comes back from nowhere finds a way on, %s", async (_, address, name, target) => {
  const page = await (await newVisitor()).newPage();
  await page.goto(`${address}/api/auth/tenant/callback/gitlab?code=x&state=nothing`);
  expect(await page.getByRole("heading", { level: 1 }).innerText()).toBe(
    "We could not sign you in",
  );
  await photograph(page, `sign-in-problem-${new URL(address).hostname}`);
  await page.getByRole("link", { name }).click();
  await page.waitForURL(target);
});

test("a confirmation link that does not work says so, and leads to the sign-in page", async () => {
  const page = await (await newVisitor()).newPage();
  const id = await tenantId(page, ACME);
  const callbackURL = encodeURIComponent("/t/acme/confirmed");
  await page.goto(
    `${APP}/api/auth/verify-email?token=none&callbackURL=${callbackURL}&tenantId=${id}`,
  );
  await page.getByRole("heading", { name: "This link does not work" }).waitFor();
  await page.getByRole("link", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Sign in to Acme" }).waitFor();
});

test("a confirmation link may be followed twice, also by somebody who is signed out", async () => {
  const page = await (await newVisitor()).newPage();
  await signUp(page, `${APP}/t/acme`, "Twice", "twice@example.com");
  await page.getByRole("heading", { name: "Hello" }).waitFor();
  await page.goto(`${APP}/inbox?tenant=acme`);
  const mail = page.getByRole("article").filter({ hasText: "twice@example.com" });
  const link = (await mail.getByRole("link").getAttribute("href")) ?? "";
  await page.goto(link);
  await page.waitForURL(`${APP}/t/acme/dashboard`);
  const elsewhere = await (await newVisitor()).newPage();
  await elsewhere.goto(link);
  await elsewhere.getByRole("heading", { name: "Your email address is confirmed" }).waitFor();
  await elsewhere.getByRole("link", { name: "Sign in" }).click();
  await elsewhere.getByRole("heading", { name: "Sign in to Acme" }).waitFor();
});

test("a page that is not there leads to the start", async () => {
  const page = await (await newVisitor({ expects: /404/ })).newPage();
  for (const address of [`${APP}/nowhere`, `${hostOf({ slug: "nobody" })}/`]) {
    for (const name of ["Go to the start page", "Tenants"]) {
      await page.goto(address);
      await page.getByRole("link", { name, exact: true }).click();
      await page.waitForURL(`${APP}/`);
    }
  }
});
