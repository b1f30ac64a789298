import axe from "axe-core";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { createTenant, deleteTenantsAfterwards, followMail, invite, post } from "./support/console";
import { inEachLook } from "./support/looks";
import { checkSSO, fillOIDC, openSSOForm, samlOffer, setUpSSO, typeAddress } from "./support/sso";
import {
  ACME,
  ADMINISTRATOR,
  APP,
  closeBrowserAfterwards,
  hostOf,
  IDP,
  newVisitor,
  OPERATOR,
  signIn,
  signInAsOperator,
  tenantId,
  text,
} from "./support/visitor";

closeBrowserAfterwards();
deleteTenantsAfterwards();

/** Every kind of page, and how to get there. */
const PAGES: Record<string, (page: Page) => Promise<unknown>> = {
  start: (page) => page.goto(APP),
  "sign-in": (page) => page.goto(`${APP}/t/acme`),
  "sign-in-by-host": (page) => page.goto(hostOf(ACME)),
  "sign-in-refused": async (page) => {
    await page.goto(`${APP}/t/acme`);
    await page.getByLabel("Email").fill("jane@example.com");
    await page.getByLabel("Password", { exact: true }).fill("a wrong password");
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByText(/invalid/i).waitFor();
  },
  "sign-in-link": (page) => page.goto(`${APP}/t/acme/sign-in-link`),
  "sign-up": (page) => page.goto(`${APP}/t/globex/sign-up`),
  "forgot-password": (page) => page.goto(`${APP}/t/acme/forgot-password`),
  "reset-password": (page) => page.goto(`${APP}/t/acme/reset-password?token=none`),
  "reset-password-without-token": (page) => page.goto(`${APP}/t/acme/reset-password`),
  dashboard: (page) => signIn(page, ACME),
  account: async (page) => {
    await page.getByRole("link", { name: "Account" }).click();
    await page.getByRole("heading", { name: "Your account" }).waitFor();
  },
  "dashboard-by-host": (page) => signIn(page, ACME, hostOf(ACME)),
  inbox: async (page) => {
    await page.goto(`${APP}/t/acme/forgot-password`);
    await page.getByLabel("Email").fill("jane@example.com");
    await page.getByRole("button", { name: "Send link" }).click();
    await page.getByText("we have sent a link").waitFor();
    await page.goto(`${APP}/inbox`);
    await page.getByRole("article").first().waitFor();
  },
  "not-found": (page) => page.goto(`${APP}/t/nobody`),
  consent: async (page) => {
    await page.goto(`${APP}/t/globex`);
    await page.getByRole("button", { name: "Continue with GitLab" }).click();
    await page.waitForURL(`${IDP}/oauth/authorize**`);
  },
  "identity-provider": (page) => page.goto(IDP),
  "console-sign-in": (page) => page.goto(`${APP}/console/sign-in`),
  console: (page) => signInAsOperator(page),
  "console-new": (page) => page.goto(`${APP}/console/tenants/new`),
  "console-tenant": async (page) => {
    await page.goto(`${APP}/console`);
    await page.getByRole("link", { name: "Acme" }).click();
    await page.getByRole("button", { name: "Check GitLab" }).click();
    await page.getByText("No problems found.").waitFor();
    for (const summary of await page.locator("summary").all()) await summary.click();
    await page.getByLabel("Only with these methods").check();
    await page.getByLabel("Email").fill("jane@example.com");
    await page.getByRole("button", { name: "Send invitation" }).click();
    await page.getByText("There is already an account").waitFor();
  },
  "console-sso": async (page) => {
    await createTenant(page, "Hooli", "hooli");
    const section = await openSSOForm(page, "OpenID Connect");
    await section.getByLabel("Identifier").fill("oidc");
    await fillOIDC(page, { secret: "a wrong secret" });
    await setUpSSO(page, "hooli-oidc");
    await checkSSO(page, "hooli-oidc", "It does not accept the client ID and secret");
    for (const summary of await section.locator("article summary").all()) await summary.click();
  },
  "console-saml": async (page) => {
    await page.reload();
    const { metadata, certificate } = await samlOffer(page);
    const section = await openSSOForm(page, "SAML");
    await section.getByLabel("Identifier").fill("saml");
    await section.getByLabel("Domain").last().fill("saml.example");
    await section.getByLabel("Metadata", { exact: true }).fill(metadata);
    await setUpSSO(page, "hooli-saml");
    await checkSSO(page, "hooli-saml", "No problems found.");
    await section.getByLabel("Protocol").selectOption("SAML");
    await section.getByLabel("Its entity ID, sign-in URL and certificate").check();
    await section.getByLabel("Entity ID").last().fill("https://idp.example.com");
    await section.getByLabel("Certificate", { exact: true }).fill(certificate);
  },
  "sign-in-sso": (page) => page.goto(`${APP}/t/hooli`),
  "sign-in-sso-password": async (page) => {
    await page.getByLabel("Email").fill("somebody@elsewhere.example");
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByLabel("Password", { exact: true }).waitFor();
  },
  "consent-saml": async (page) => {
    await typeAddress(page, `${APP}/t/hooli`, "kim@saml.example");
    await page.waitForURL(`${IDP}/saml/sso?**`);
  },
  "sign-up-domains": async (page) => {
    const id = await tenantId(page, { slug: "hooli" });
    await page.goto(`${APP}/t/hooli/sign-up`);
    const policy = { emailDomains: ["hooli.example", "example.com"] };
    await post(page, "/tenant/update", { tenantId: id, policy });
    await page.reload();
    await page.getByText("You can join with").waitFor();
  },
  "console-delete": async (page) => {
    await page.goto(`${APP}/console`);
    await page.getByRole("link", { name: "Acme" }).click();
    await page.getByRole("link", { name: "Delete Acme" }).click();
    await page.getByRole("heading", { name: "Delete Acme?" }).waitFor();
  },
  "console-suspended": async (page) => {
    await createTenant(page, "Umbrella", "umbrella-closed");
    await page.getByRole("button", { name: "Suspend Umbrella" }).click();
    await page.getByRole("button", { name: "Resume Umbrella" }).waitFor();
  },
  "console-list-suspended": (page) => page.goto(`${APP}/console`),
  suspended: (page) => page.goto(`${APP}/t/umbrella-closed`),
  "console-deleting": async (page) => {
    await page.goto(`${APP}/console`);
    await page.getByRole("link", { name: "Umbrella", exact: true }).click();
    await page.getByRole("link", { name: "Delete Umbrella" }).click();
    await page.getByRole("button", { name: "Delete Umbrella in a week" }).click();
    await page.getByRole("button", { name: "Do not delete Umbrella" }).waitFor();
  },
  "settings-refused": (page) => page.goto(`${APP}/t/acme/settings`),
  settings: async (page) => {
    await page.context().clearCookies();
    await signIn(page, ACME, `${APP}/t/acme`, ADMINISTRATOR);
    await page.goto(`${APP}/t/acme/settings`);
    await invite(page, "wren@example.com", "Administrator");
    await invite(page, "robin@example.com");
    await page.getByRole("button", { name: "Revoke the invitation to robin" }).click();
    await page.getByText("Revoked").waitFor();
    await page.getByText("Manage Jane at Acme").click();
  },
  invitation: async (page) => {
    await followMail(page, "acme", "wren@example.com", "Join Acme");
    await page.getByRole("heading", { name: "Join Acme" }).waitFor();
  },
  "invitation-withdrawn": async (page) => {
    await followMail(page, "acme", "robin@example.com", "Join Acme");
    await page.getByRole("heading", { name: "This invitation is not valid" }).waitFor();
  },
};

/** What axe finds wrong with a page as it looks now, in words. */
async function findings(page: Page): Promise<string[]> {
  const violations = await page.evaluate(async () => {
    const { axe: here } = globalThis as unknown as { axe: typeof axe };
    return (await here.run({ resultTypes: ["violations"] })).violations;
  });
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html}\n${failureSummary}`),
  );
}

test("axe has nothing to say about any page, large or small, light or dark", async () => {
  const visitor = await newVisitor({ expects: /40[149]/, reducedMotion: "reduce" });
  const page = await visitor.newPage();
  const found: string[] = [];
  for (const [name, open] of Object.entries(PAGES)) {
    await open(page);
    await page.evaluate(axe.source);
    await inEachLook(page, name, async (look, room) => {
      found.push(...(await findings(page)).map((finding) => `${look}: ${finding}`));
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      if (width > room) found.push(`${look}: something sticks out to the side`);
    });
  }
  expect(found).toEqual([]);
}, 400_000);

/** What has the focus, as a screen reader would name it. */
const focused = (page: Page) =>
  page.evaluate(() => {
    const element = document.activeElement as HTMLInputElement | null;
    return element?.labels?.[0]?.textContent ?? element?.textContent ?? "";
  });

async function tabTo(page: Page, name: string) {
  for (let count = 0; count < 60; count++) {
    await page.keyboard.press("Tab");
    if ((await focused(page)).startsWith(name)) return;
  }
  throw new Error(`The keyboard does not reach ${name}`);
}

test("the keyboard is enough to sign in, to look around and to sign out", async () => {
  const page = await (await newVisitor()).newPage();
  await page.goto(`${APP}/t/acme`);
  await page.keyboard.press("Tab");
  expect(await focused(page)).toBe("Skip to content");
  await tabTo(page, "Email");
  // Whatever has the focus shows it.
  expect(
    await page.evaluate(() => getComputedStyle(document.activeElement as Element).outlineStyle),
  ).toBe("solid");
  await page.keyboard.type("jane@example.com");
  await tabTo(page, "Password");
  await page.keyboard.type("jane-works-at-acme");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/dashboard");
  expect(await text(page)).toContain("Hello, Jane at Acme");
  await tabTo(page, "Sign out");
  await page.keyboard.press("Enter");
  await page.waitForURL(`${APP}/t/acme`);
});

test("the keyboard is enough to agree at the identity provider", async () => {
  const page = await (await newVisitor()).newPage();
  await page.goto(`${APP}/t/acme`);
  await tabTo(page, "Continue with GitLab");
  await page.keyboard.press("Enter");
  await page.waitForURL(`${IDP}/oauth/authorize**`);
  await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowDown");
  await tabTo(page, "Allow");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/dashboard");
  expect(await text(page)).toContain("kim@example.com");
});

test("the keyboard is enough to create a tenant and to delete it", async () => {
  const page = await (await newVisitor()).newPage();
  await page.goto(`${APP}/console/sign-in`);
  await tabTo(page, "Email");
  await page.keyboard.type(OPERATOR.email);
  await tabTo(page, "Password");
  await page.keyboard.type(OPERATOR.password);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Tenants" }).waitFor();
  await tabTo(page, "New tenant");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "New tenant" }).waitFor();
  await tabTo(page, "Name");
  await page.keyboard.type("Keys");
  await tabTo(page, "Slug");
  await page.keyboard.type("keys");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Keys", level: 1 }).waitFor();
  await tabTo(page, "Delete Keys");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Delete Keys?" }).waitFor();
  await tabTo(page, "Type");
  await page.keyboard.type("keys");
  await page.keyboard.press("Enter");
  await page.getByText("Keys and everything").waitFor();
});
