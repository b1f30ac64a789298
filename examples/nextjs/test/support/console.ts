import type { Page } from "playwright-core";
import { afterAll, expect } from "vitest";
import demo from "../../demo.json";
import { APP, call, IDP, newVisitor, OPERATOR, signInAsOperator } from "./visitor";

/** An operator, with a browser of their own. */
export async function newOperator(expects?: RegExp) {
  const page = await (await newVisitor({ expects })).newPage();
  await signInAsOperator(page);
  return page;
}

const created: string[] = [];

/**
 * Deletes what the tests of a file have created: the pages that list tenants have room for 20. Not
 * after each test, whose pages may still be open and ask for more of the tenant.
 */
export function deleteTenantsAfterwards() {
  afterAll(async () => {
    const send = (path: string, body: object, cookie = "") =>
      fetch(`${APP}/api/auth${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", origin: APP, cookie },
        body: JSON.stringify(body),
      });
    const signedIn = await send("/sign-in/email", OPERATOR);
    const cookies = signedIn.headers.getSetCookie().map((cookie) => cookie.split(";")[0]);
    for (const tenantId of created.splice(0)) {
      const { status } = await send("/tenant/delete", { tenantId }, cookies.join("; "));
      // Some tests delete their tenants themselves.
      expect([200, 404]).toContain(status);
    }
  });
}

/** The page shows the tenant afterwards. */
export async function createTenant(page: Page, name: string, slug: string) {
  await page.goto(`${APP}/console`);
  await page.getByRole("link", { name: "New tenant" }).click();
  await page.getByRole("heading", { name: "New tenant" }).waitFor();
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Slug").fill(slug);
  await page.getByRole("radio", { name: "Orange" }).check({ force: true });
  await page.getByRole("button", { name: "Create tenant" }).click();
  await page.getByRole("heading", { name, level: 1 }).waitFor();
  const id = new URL(page.url()).pathname.split("/").at(-1) ?? "";
  created.push(id);
  return { id, address: `${APP}/t/${slug}` };
}

export const socialOn = (page: Page) => page.getByRole("region", { name: "Social sign-in" });

export async function setUpGitLab(page: Page, secret = demo.spareClient.secret) {
  const section = socialOn(page);
  await section.getByText("Set up a provider").click();
  await section.getByLabel("Provider").selectOption("gitlab");
  await section.getByLabel("Client ID").fill(demo.spareClient.id);
  await section.getByLabel("Client secret", { exact: true }).fill(secret);
  await section.getByLabel("URL of your own GitLab").fill(IDP);
  await section.getByRole("button", { name: "Set up GitLab" }).click();
  await section.getByText("GitLab is set up.").waitFor();
}

/** Sends an invitation from a page with the form. */
export async function invite(page: Page, email: string, role = "User") {
  const section = page.getByRole("region", { name: "Invitations" });
  await section.getByLabel("Email").fill(email);
  await section.getByLabel("Role").selectOption(role);
  await section.getByRole("button", { name: "Send invitation" }).click();
  await section.getByText(`We have sent an invitation to ${email}.`).waitFor();
}

/** A tenant with an administrator of its own, who is signed in there. */
export async function newAdministrator(
  name: string,
  slug: string,
  person: { email: string; name: string; password: string },
  expects?: RegExp,
) {
  const operator = await newOperator();
  const tenant = await createTenant(operator, name, slug);
  await invite(operator, person.email, "Administrator");
  const page = await (await newVisitor({ expects })).newPage();
  await followMail(page, slug, person.email, `Join ${name}`);
  await fillAccount(page, { Name: person.name, Password: person.password });
  await page.waitForURL(`${tenant.address}/dashboard`);
  await page.getByRole("link", { name: "Settings" }).click();
  await page.getByRole("heading", { name: `${name} settings` }).waitFor();
  return { ...tenant, page, operator };
}

/** Follows the link of the newest mail to somebody. */
export async function followMail(page: Page, slug: string, email: string, subject: string) {
  await page.goto(`${APP}/inbox?tenant=${slug}`);
  const mail = page.getByRole("article", { name: subject }).filter({ hasText: email });
  await mail.first().getByRole("link").click();
}

/** Calls an endpoint of better-auth from a page, as its scripts would. */
export const post = (page: Page, path: string, body: object, headers = {}) =>
  call(page, `/api/auth${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

/** Goes to GitLab from a page with its button, and comes back as somebody. */
export async function continueWithGitLab(page: Page, name: string) {
  await page.getByRole("button", { name: "Continue with GitLab" }).click();
  await page.waitForURL(`${IDP}/oauth/authorize**`);
  await page.getByRole("radio", { name }).check();
  await page.getByRole("button", { name: "Allow" }).click();
}

/** Fills in the form for a new account, on the page for it or on that of an invitation. */
export async function fillAccount(page: Page, person: Record<"Name" | "Password", string>) {
  await page.getByLabel("Name").fill(person.Name);
  await page.getByLabel("Password", { exact: true }).fill(person.Password);
  await page.getByRole("button", { name: "Create account" }).click();
}
