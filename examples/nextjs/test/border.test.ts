import { expect, test } from "vitest";
import {
  ACME,
  APP,
  call,
  closeBrowserAfterwards,
  GLOBEX,
  hostOf,
  newVisitor,
  signIn,
  tenantId,
  text,
} from "./support/visitor";

closeBrowserAfterwards();

/** Jane, signed in at Acme, and the cookie that says so. */
async function janeAtAcme() {
  const visitor = await newVisitor({ expects: /401/ });
  const page = await visitor.newPage();
  const ids = { acme: await tenantId(page, ACME), globex: await tenantId(page, GLOBEX) };
  await signIn(page, ACME);
  const cookies = await visitor.cookies(APP);
  const cookie = cookies.find(({ name }) => name.includes("session_token"));
  if (!cookie) throw new Error("There is no session cookie");
  return { visitor, page, ids, cookie };
}

const asTenant = (id: string) => ({ headers: { "x-tenant-id": id } });

test("a session of one tenant is no session at the other, whatever the header says", async () => {
  const { page, ids } = await janeAtAcme();
  const here = await call(page, "/api/auth/get-session", asTenant(ids.acme));
  expect(here.data.session.tenantId).toBe(ids.acme);

  const there = await call(page, "/api/auth/get-session", asTenant(ids.globex));
  expect(there).toEqual({ status: 200, data: null });
  expect((await call(page, "/api/auth/list-sessions", asTenant(ids.globex))).status).toBe(401);
  expect((await call(page, "/api/auth/get-session")).data).toBe(null);

  await page.reload();
  expect(await text(page)).toContain("Hello, Jane at Acme");
});

/** As docs/several-tenants.md has it, for ids without dots and hyphens. */
const inCookieName = (id: string) => id.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

test("its cookie under the other tenant's name opens nothing", async () => {
  const { visitor, page, ids, cookie } = await janeAtAcme();
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Lax" });
  const [own, other] = [ids.acme, ids.globex].map(inCookieName);
  const forged = { ...cookie, name: cookie.name.replace(`_${own}`, `_${other}`) };
  expect(forged.name).not.toBe(cookie.name);
  const platform = { ...cookie, name: cookie.name.replace(`_${own}`, "") };
  await visitor.addCookies([forged, platform]);

  expect((await call(page, "/api/auth/get-session", asTenant(ids.globex))).data).toBe(null);
  await page.goto(`${APP}/t/globex/dashboard`);
  expect(new URL(page.url()).pathname).toBe("/t/globex");
  await page.goto(`${APP}/console`);
  expect(new URL(page.url()).pathname).toBe("/console/sign-in");

  await page.goto(`${APP}/t/acme/dashboard`);
  expect(await text(page)).toContain("Hello, Jane at Acme");
});

test("on another tenant's host, neither the cookie nor the header counts", async () => {
  const { visitor, page, ids, cookie } = await janeAtAcme();
  const host = new URL(hostOf(GLOBEX)).hostname;
  const names = [cookie.name, cookie.name.replace(ids.acme, ids.globex)];
  await visitor.addCookies(names.map((name) => ({ ...cookie, name, domain: host })));

  await page.goto(`${hostOf(GLOBEX)}/dashboard`);
  expect(page.url()).toBe(`${hostOf(GLOBEX)}/`);
  for (const id of [ids.globex, ids.acme]) {
    expect((await call(page, "/api/auth/get-session", asTenant(id))).data).toBe(null);
  }
  // The cookie itself is good: at home it still opens the door.
  await page.goto(`${APP}/t/acme/dashboard`);
  expect(await text(page)).toContain("Hello, Jane at Acme");
});
