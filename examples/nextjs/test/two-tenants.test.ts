import { expect, test } from "vitest";
import {
  ACME,
  APP,
  closeBrowserAfterwards,
  fillSignIn,
  GLOBEX,
  hostOf,
  newVisitor,
  signIn,
  text,
} from "./support/visitor";

closeBrowserAfterwards();

test("one browser is at two tenants at once, in two tabs", async () => {
  const visitor = await newVisitor();
  const acme = await visitor.newPage();
  const globex = await visitor.newPage();
  await signIn(acme, ACME);
  await signIn(globex, GLOBEX);
  await acme.reload();

  expect(await text(acme)).toContain("Hello, Jane at Acme");
  expect(await text(globex)).toContain("Hello, Jane at Globex");
  // Each dashboard knows of both, and they are two people.
  for (const page of [acme, globex]) {
    const places = page.getByRole("region", { name: "In this browser" });
    expect(await places.innerText()).toContain("Jane at Acme, jane@example.com");
    expect(await places.innerText()).toContain("Jane at Globex, jane@example.com");
  }
  const idOn = (page: typeof acme) => page.locator("dd code").first().innerText();
  expect(await idOn(acme)).not.toBe(await idOn(globex));
});

test("who signs out of one tenant stays at the other", async () => {
  const visitor = await newVisitor();
  const acme = await visitor.newPage();
  const globex = await visitor.newPage();
  await signIn(acme, ACME);
  await signIn(globex, GLOBEX);

  await acme.getByRole("button", { name: "Sign out", exact: true }).click();
  await acme.waitForURL(`${APP}/t/acme`);
  await acme.goto(`${APP}/t/acme/dashboard`);
  expect(new URL(acme.url()).pathname).toBe("/t/acme");
  await globex.reload();
  expect(await text(globex)).toContain("Hello, Jane at Globex");
});

test("the password of one tenant is no password at the other", async () => {
  const page = await (await newVisitor({ expects: /401/ })).newPage();
  await page.goto(`${APP}/t/globex`);
  const [jane] = ACME.people;
  if (!jane) throw new Error("Nobody works at Acme");
  await fillSignIn(page, jane);
  expect(await page.getByRole("main").getByRole("alert").innerText()).toMatch(/invalid/i);
  // What was typed is still there.
  expect(await page.getByLabel("Email").inputValue()).toBe(jane.email);
  expect(await page.getByLabel("Password", { exact: true }).inputValue()).toBe(jane.password);
});

test("guessing passwords is slowed down", async () => {
  const page = await (await newVisitor({ expects: /401|429/ })).newPage();
  await page.goto(`${APP}/t/acme`);
  const alert = page.getByRole("main").getByRole("alert");
  for (let count = 0; count < 4; count++) {
    const answer = page.waitForResponse("**/tenant/sign-in/email");
    await fillSignIn(page, { email: "jane@example.com", password: `a guess, ${count}` });
    expect((await answer).status()).toBe(count < 3 ? 401 : 429);
    await alert.getByText(count < 3 ? "Invalid email or password" : "Too many requests").waitFor();
    // While it works, the button does nothing.
    await page.locator('button[aria-disabled="false"]', { hasText: /^Sign in$/ }).waitFor();
  }
});

test("a tenant on its own host is signed in to there, and knows of no other", async () => {
  const visitor = await newVisitor();
  const page = await visitor.newPage();
  await signIn(page, ACME, hostOf(ACME));
  expect(await text(page)).toContain("Hello, Jane at Acme");
  expect(await text(page)).toContain("This address belongs to Acme only");

  // The other addresses have sessions of their own.
  await page.goto(`${APP}/t/acme/dashboard`);
  expect(new URL(page.url()).pathname).toBe("/t/acme");
  await page.goto(`${hostOf(GLOBEX)}/dashboard`);
  expect(page.url()).toBe(`${hostOf(GLOBEX)}/`);
});

test("the host of a tenant leads nowhere else", async () => {
  const page = await (await newVisitor({ expects: /404/ })).newPage();
  for (const path of ["/t/globex", "/console", "/inbox"]) {
    const response = await page.goto(hostOf(ACME) + path);
    expect([path, response?.status()]).toEqual([path, 404]);
  }
  const unknown = await page.goto(hostOf({ slug: "nobody" }));
  expect(unknown?.status()).toBe(404);
});

test("sessions are listed, and the others can be ended", async () => {
  const [desk, phone] = [await newVisitor(), await newVisitor()];
  const [atDesk, onPhone] = [await desk.newPage(), await phone.newPage()];
  await signIn(atDesk, GLOBEX);
  await signIn(onPhone, GLOBEX);

  await atDesk.getByRole("link", { name: "Account" }).click();
  await atDesk.getByRole("button", { name: "Sign out of all other sessions" }).click();
  await atDesk.getByText("Sign out of all other sessions").waitFor({ state: "detached" });
  await onPhone.reload();
  expect(new URL(onPhone.url()).pathname).toBe("/t/globex");
  await atDesk.goto(`${APP}/t/globex/dashboard`);
  expect(await text(atDesk)).toContain("Hello, Jane at Globex");
});
