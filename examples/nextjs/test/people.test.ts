import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { deleteTenantsAfterwards, fillAccount, newAdministrator } from "./support/console";
import { photograph } from "./support/looks";
import { closeBrowserAfterwards, fillSignIn, newVisitor } from "./support/visitor";

closeBrowserAfterwards();
deleteTenantsAfterwards();

const WILLY = { email: "willy@wonka.example", name: "Willy", password: "pure imagination" };
const AUGUSTUS = { email: "augustus@wonka.example", name: "Augustus", password: "more chocolate" };

/** The row of a user, with what can be done about them. */
async function manage(page: Page, { name, email }: { name: string; email: string }) {
  const people = page.getByRole("region", { name: "People" });
  const row = people.getByRole("row").filter({ hasText: email });
  await row.getByText(`Manage ${name}`).click();
  const act = (label: string) => row.getByRole("button", { name: `${label} ${name}`, exact: true });
  return { row, act };
}

test("an administrator manages the people of their tenant", async () => {
  const tenant = await newAdministrator("Wonka", "wonka", WILLY, /409/);
  const { page, address, operator } = tenant;
  const user = await (await newVisitor({ expects: /40[13]/ })).newPage();
  await user.goto(`${address}/sign-up`);
  await user.getByLabel("Email").fill(AUGUSTUS.email);
  await fillAccount(user, { Name: AUGUSTUS.name, Password: AUGUSTUS.password });
  await user.waitForURL(`${address}/dashboard`);
  const isSignedOut = async () => {
    await user.goto(`${address}/dashboard`);
    await user.getByRole("heading", { name: "Sign in to Wonka" }).waitFor();
  };

  // Users cannot ban or remove themselves, and a tenant keeps an administrator.
  await page.reload();
  const own = await manage(page, WILLY);
  expect(await own.row.getByRole("button").count()).toBe(1);
  await own.act("Make a user of").click();
  await own.row.getByText("This is the last administrator.").waitFor();

  const { row, act } = await manage(page, AUGUSTUS);
  await act("Make an administrator of").click();
  await row.getByText("Administrator", { exact: true }).waitFor();
  await user.reload();
  await user.getByRole("link", { name: "Settings" }).waitFor();
  await act("Make a user of").click();
  await act("Make an administrator of").waitFor();
  await user.reload();
  await user.getByRole("heading", { name: "Hello" }).waitFor();
  expect(await user.getByRole("link", { name: "Settings" }).count()).toBe(0);

  await act("Ban").click();
  await row.getByText("Banned").waitFor();
  await photograph(page, "people");
  await isSignedOut();
  await fillSignIn(user, AUGUSTUS);
  await user.getByText("You have been banned here.").waitFor();
  await act("Unban").click();
  await act("Ban").waitFor();
  await fillSignIn(user, AUGUSTUS);
  await user.waitForURL(`${address}/dashboard`);

  await act("End sessions of").click();
  await row.getByText("All sessions have ended.").waitFor();
  await isSignedOut();

  // An operator does the same, and may take the role from the last administrator.
  await operator.reload();
  const byOperator = await manage(operator, AUGUSTUS);
  await byOperator.act("Ban").click();
  await byOperator.row.getByText("Banned").waitFor();
  await byOperator.act("Unban").click();
  await byOperator.act("Ban").waitFor();

  const question = page.getByRole("dialog", { name: "Remove Augustus?" });
  await row.getByRole("button", { name: "Remove Augustus …" }).click();
  await question.getByRole("button", { name: "Cancel" }).click();
  await question.waitFor({ state: "hidden" });
  await row.getByRole("button", { name: "Remove Augustus …" }).click();
  await question.getByRole("button", { name: "Remove Augustus", exact: true }).click();
  await row.waitFor({ state: "detached" });
  await fillSignIn(user, AUGUSTUS);
  await user.getByText("Invalid email or password.").waitFor();

  const last = await manage(operator, WILLY);
  await last.act("Make a user of").click();
  await last.act("Make an administrator of").waitFor();
  await page.reload();
  await page.getByText("Only administrators of Wonka can change its settings.").waitFor();
}, 120_000);

test("times are in the time zone of the reader", async () => {
  const { address } = await newAdministrator("Slugworth", "slugworth", WILLY);
  const page = await (await newVisitor({ timezoneId: "Asia/Kolkata" })).newPage();
  await page.goto(address);
  await fillSignIn(page, WILLY);
  await page.waitForURL(`${address}/dashboard`);
  const time = page.locator("dd time");
  const at = (await time.getAttribute("datetime")) ?? "";
  const shown = { dateStyle: "medium", timeStyle: "short", timeZone: "Asia/Kolkata" } as const;
  const plain = (text: string) => text.replace(/\s/g, " ");
  const expected = plain(new Date(at).toLocaleString("en", shown));
  await expect.poll(async () => plain(await time.innerText())).toBe(expected);
  // The server does not know the zone.
  const html = await (await page.request.get(`${address}/dashboard`)).text();
  expect(html).toMatch(/<time dateTime="[^"]+Z">[^<]+ UTC<\/time>/i);
});
