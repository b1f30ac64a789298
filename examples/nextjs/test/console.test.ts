import { expect, test } from "vitest";
import demo from "../demo.json";
import {
  createTenant,
  deleteTenantsAfterwards,
  invite,
  post,
  setUpGitLab,
  socialOn,
} from "./support/console";
import {
  ACME,
  APP,
  closeBrowserAfterwards,
  fillSignIn,
  hostOf,
  newVisitor,
  signIn,
  signInAsOperator,
  text,
} from "./support/visitor";

closeBrowserAfterwards();
deleteTenantsAfterwards();

test("an operator creates a tenant, renames it, and people sign up there", async () => {
  const page = await (await newVisitor({ expects: /409/ })).newPage();
  await signInAsOperator(page);
  await createTenant(page, "Initech", "initech");

  const person = await (await newVisitor({ expects: /404/ })).newPage();
  await person.goto(`${APP}/t/initech/sign-up`);
  await person.getByLabel("Name").fill("Peter");
  await person.getByLabel("Email").fill("jane@example.com");
  await person.getByLabel("Password", { exact: true }).fill("the third of that name");
  await person.getByRole("button", { name: "Create account" }).click();
  await person.waitForURL(`${APP}/t/initech/dashboard`);

  // The list finds it, by a part of its name.
  const found = await page.context().newPage();
  await found.goto(`${APP}/console`);
  await found.getByLabel("Find a tenant").fill("NITE");
  await found.keyboard.press("Enter");
  await found.waitForURL("**/console?search=NITE");
  expect(await found.getByRole("rowheader").getByRole("link").allInnerTexts()).toEqual(["Initech"]);

  // A slug that is taken is refused, and nothing that was typed is lost.
  await page.getByLabel("Slug").fill("acme");
  await page.getByLabel("Name").fill("Initech Holding");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  const refusal = page.getByRole("region", { name: "Details" }).getByRole("alert");
  await refusal.getByText("slug").waitFor();
  expect(await page.getByLabel("Name").inputValue()).toBe("Initech Holding");
  await page.getByLabel("Slug").fill("initech-holding");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("heading", { name: "Initech Holding", level: 1 }).waitFor();
  await page.getByRole("region", { name: "Details" }).getByText("Saved.").waitFor();
  expect(await page.getByLabel("Slug").inputValue()).toBe("initech-holding");
  expect(await page.getByRole("region", { name: "People" }).innerText()).toContain(
    "jane@example.com",
  );

  // The tenant is at its new address, and whoever was signed in still is.
  expect((await person.goto(`${APP}/t/initech/dashboard`))?.status()).toBe(404);
  await person.goto(`${APP}/t/initech-holding/dashboard`);
  expect(await text(person)).toContain("You are signed in to Initech Holding");
});

test("an operator who is signed in at a tenant as well still sees its people", async () => {
  const page = await (await newVisitor()).newPage();
  await signIn(page, ACME);
  await signInAsOperator(page);
  await page.getByRole("link", { name: "Acme" }).click();
  const people = page.getByRole("region", { name: "People at Acme" });
  await people.getByRole("rowheader", { name: "Jane at Acme" }).waitFor();
  expect(await people.innerText()).not.toContain("Jane at Globex");
});

test("an operator sets a provider up, checks it, and switches it off and on", async () => {
  const page = await (await newVisitor()).newPage();
  await signInAsOperator(page);
  await createTenant(page, "Hooli", "hooli");
  await setUpGitLab(page, "not the secret");
  const config = page.getByRole("article", { name: "GitLab" });

  await config.getByRole("button", { name: "Check GitLab" }).click();
  await config.getByText("This config does not work.").waitFor();
  expect(await config.innerText()).toContain("does not know this client id and secret");
  // It stays off as long as a check finds a problem.
  await config.getByText("Off", { exact: true }).waitFor();
  await config.getByRole("button", { name: "Turn GitLab on" }).click();
  await config.getByText("The check found a problem: The provider does not know").waitFor();
  expect(await config.innerText()).toContain(`${APP}/api/auth/tenant/callback/gitlab`);

  await config.getByText("Change the secret or remove GitLab").click();
  await config.getByLabel("New client secret").fill(demo.spareClient.secret);
  await config.getByRole("button", { name: "Save secret" }).click();
  await config.getByText("The new secret is in use").waitFor();
  await config.getByRole("button", { name: "Check GitLab" }).click();
  await config.getByText("No problems found.").waitFor();
  await config.getByRole("button", { name: "Turn GitLab on" }).click();
  await config.getByText("On", { exact: true }).waitFor();
  // No secret comes back, neither on the page nor in what the page was made from.
  expect(await page.content()).not.toContain(demo.spareClient.secret);

  const person = await (await newVisitor()).newPage();
  await person.goto(`${APP}/t/hooli`);
  await person.getByRole("button", { name: "Continue with GitLab" }).click();
  await person.getByRole("radio", { name: "Kim Park" }).check();
  await person.getByRole("button", { name: "Allow" }).click();
  await person.waitForURL(`${APP}/t/hooli/dashboard`);

  await config.getByRole("button", { name: "Turn GitLab off" }).click();
  await config.getByRole("button", { name: "Turn GitLab on" }).waitFor();
  // What was found out before says nothing about it now.
  expect(await config.getByText("No problems found.").count()).toBe(0);
  await person.getByRole("button", { name: "Sign out" }).click();
  await person.waitForURL(`${APP}/t/hooli`);
  expect(await person.getByRole("button", { name: "Continue with" }).count()).toBe(0);
  await config.getByRole("button", { name: "Turn GitLab on" }).click();
  await config.getByRole("button", { name: "Turn GitLab off" }).waitFor();
  await person.reload();
  expect(await person.getByRole("button", { name: "Continue with" }).count()).toBe(1);

  // What is removed cannot be brought back, so it asks first.
  await config.getByRole("button", { name: "Remove GitLab …" }).click();
  const question = page.getByRole("dialog", { name: "Remove GitLab?" });
  await question.getByRole("button", { name: "Cancel" }).click();
  await question.waitFor({ state: "hidden" });
  await config.getByRole("button", { name: "Remove GitLab …" }).click();
  await question.getByRole("button", { name: "Remove GitLab", exact: true }).click();
  await page.getByText("No provider is set up yet.").waitFor();
});

test("the form for a provider saves the one that it shows, and the next one as well", async () => {
  const page = await (await newVisitor()).newPage();
  await signInAsOperator(page);
  await createTenant(page, "Dunder", "dunder");
  await setUpGitLab(page);
  const section = socialOn(page);
  const shown = () => section.getByLabel("Provider").locator("option:checked").innerText();
  expect(await shown()).toBe("GitLab");
  for (const label of ["Client ID", "Client secret", "URL of your own GitLab"]) {
    expect(await section.getByLabel(label, { exact: true }).inputValue()).toBe("");
  }
  // Google itself is left alone.
  const check = { providerId: "google", ok: true, redirectURI: "https://a.example", findings: [] };
  await page.route("**/oauth-config/check", (route) => route.fulfill({ json: check }));
  await section.getByLabel("Provider").selectOption("Google");
  await section.getByLabel("Client ID").fill("an id at Google");
  await section.getByLabel("Client secret", { exact: true }).fill("a secret at Google");
  await section.getByRole("button", { name: "Set up Google" }).click();
  const google = section.getByRole("article", { name: "Google" });
  await google.getByText("an id at Google").waitFor();
  await section.getByText("Google is set up.").waitFor();
  expect(await shown()).toBe("Google");
  const gitlab = section.getByRole("article", { name: "GitLab" });
  expect(await gitlab.innerText()).toContain(demo.spareClient.id);
});

test("the slug of a new tenant follows its name until it is edited", async () => {
  const page = await (await newVisitor()).newPage();
  await signInAsOperator(page);
  await page.goto(`${APP}/console/tenants/new`);
  const slugFor = async (name: string) => {
    await page.getByLabel("Name").fill(name);
    return page.getByLabel("Slug").inputValue();
  };
  await expect.poll(() => slugFor("Café Müller & Söhne!")).toBe("cafe-muller-sohne");
  expect(await slugFor("Stark")).toBe("stark");
  await page.getByLabel("Slug").fill("iron");
  expect(await slugFor("Stark Industries")).toBe("iron");
});

test("a provider may not live where the application does not trust it to", async () => {
  const page = await (await newVisitor({ expects: /400/ })).newPage();
  await signInAsOperator(page);
  await createTenant(page, "Umbrella", "umbrella");
  await page.getByText("Set up a provider").click();
  await socialOn(page).getByLabel("Client ID").fill("an id");
  await socialOn(page).getByLabel("Client secret", { exact: true }).fill("a secret");
  await page.getByLabel("URL of your own GitLab").fill("http://169.254.169.254");
  await page.getByRole("button", { name: "Set up GitLab" }).click();
  await page.getByText("URL of your own GitLab: Untrusted provider host").waitFor();
  expect(await socialOn(page).getByLabel("Client ID").inputValue()).toBe("an id");
});

test("deleting a tenant shows what goes, and takes it and nothing else", async () => {
  const page = await (await newVisitor()).newPage();
  await signInAsOperator(page);
  await createTenant(page, "Vandelay", "vandelay");
  await setUpGitLab(page);
  await invite(page, "george@example.com");
  const address = page.url();

  const [art, atAcme] = [await newVisitor({ expects: /404/ }), await newVisitor()];
  const vandelay = await art.newPage();
  await vandelay.goto(`${APP}/t/vandelay/sign-up`);
  await vandelay.getByLabel("Name").fill("Art");
  await vandelay.getByLabel("Email").fill("jane@example.com");
  await vandelay.getByLabel("Password", { exact: true }).fill("latex and export");
  await vandelay.getByRole("button", { name: "Create account" }).click();
  await vandelay.waitForURL(`${APP}/t/vandelay/dashboard`);
  const acme = await atAcme.newPage();
  await signIn(acme, ACME);

  await page.goto(address);
  await page.getByRole("link", { name: "Delete Vandelay" }).click();
  await page.getByRole("heading", { name: "Delete Vandelay?" }).waitFor();
  const figures = page.getByRole("region", { name: "What will be deleted" }).locator("dl > div");
  expect(await figures.allInnerTexts()).toEqual([
    "Users\n1",
    "Sessions\n1",
    "Accounts\n1",
    "Verifications\n0",
    "Invitations\n1",
    "Domains\n0",
    "Emails\n2",
    "Identity providers\n0",
    "Passkeys\n0",
    "OAuth configs\n1",
  ]);

  // Not without the right word.
  await page.getByLabel("to confirm").fill("vandelei");
  await page.getByRole("button", { name: "Delete Vandelay permanently" }).click();
  await page.getByText("Type “vandelay” to confirm.").waitFor();
  await page.getByLabel("to confirm").fill("vandelay");
  await page.getByRole("button", { name: "Delete Vandelay permanently" }).click();
  await page.getByText("Vandelay and everything").waitFor();
  expect(await page.getByRole("region", { name: "All tenants" }).innerText()).not.toContain(
    "vandelay",
  );

  expect((await vandelay.goto(`${APP}/t/vandelay/dashboard`))?.status()).toBe(404);
  expect((await vandelay.goto(hostOf({ slug: "vandelay" })))?.status()).toBe(404);
  await acme.reload();
  expect(await text(acme)).toContain("Hello, Jane at Acme");
});

test("the console is closed to everybody else", async () => {
  const visitor = await newVisitor({ expects: /401|403/ });
  const page = await visitor.newPage();
  await signIn(page, ACME);
  for (const path of ["", "/tenants/new", "/tenants/any", "/tenants/any/delete"]) {
    await page.goto(`${APP}/console${path}`);
    expect(page.url()).toBe(`${APP}/console/sign-in`);
  }
  // Nor does the password of a tenant's user open it, nor a sign-up on the platform.
  const [jane] = ACME.people;
  if (!jane) throw new Error("Nobody works at Acme");
  await fillSignIn(page, jane);
  await page.getByText(/invalid/i).waitFor();
  const eve = { name: "Eve", email: "eve@example.com", password: "let me in please" };
  expect((await post(page, "/sign-up/email", eve)).status).toBe(403);
  expect((await post(page, "/tenant/create", { name: "Eve", slug: "eve" })).status).toBe(401);
});
