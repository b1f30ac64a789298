import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, expect, inject, onTestFinished } from "vitest";
import demo from "../../demo.json";
import { findChromium } from "./chromium";

export const APP = inject("appUrl");
export const IDP = inject("idpUrl");
export const [ACME, GLOBEX] = demo.tenants as [Tenant, Tenant];
export const OPERATOR = demo.operator;
/** Acme's own. */
export const ADMINISTRATOR = ACME.people.find((person) => "role" in person);

type Tenant = (typeof demo.tenants)[number];

/** The address of a tenant that has its host for itself. */
export const hostOf = ({ slug }: { slug: string }) => APP.replace("//", `//${slug}.`);

let browser: Promise<Browser> | undefined;

function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: findChromium(),
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      // Domains of tenants lead to this machine, as their DNS would.
      "--host-resolver-rules=MAP *.acme.test 127.0.0.1",
    ],
  });
}

export function closeBrowserAfterwards() {
  afterAll(async () => {
    await (await browser)?.close();
    browser = undefined;
  });
}

let visitors = 0;

interface VisitorOptions extends BrowserContextOptions {
  /** Errors in the browser's console that belong to what the test is about. */
  expects?: RegExp;
}

/**
 * Somebody with a browser of their own, at an address of their own: the limits on sign-ins count
 * by address, and they are switched on. Errors in the browser's console fail the test.
 */
export async function newVisitor({ expects, ...options }: VisitorOptions = {}) {
  browser ??= launch();
  const context = await (await browser).newContext({
    timezoneId: "UTC",
    ...options,
    extraHTTPHeaders: { "x-forwarded-for": `10.0.${visitors >> 8}.${visitors++ & 255}` },
  });
  context.setDefaultTimeout(20_000);
  const errors: string[] = [];
  const note = (error: string, where = "") => {
    // What Next.js fetches ahead of a click may be gone by then: another tab has moved it.
    const isAhead = where.includes("_rsc=") && error.includes("404");
    if (!isAhead && !expects?.test(error)) errors.push(`${error} ${where}`);
  };
  context.on("console", (message) => {
    if (message.type() === "error") note(message.text(), message.location().url);
  });
  context.on("weberror", (error) => note(String(error.error())));
  onTestFinished(async () => {
    await context.close();
    expect(errors).toEqual([]);
  });
  return context;
}

interface Credentials {
  email: string;
  password: string;
}

export async function fillSignIn(page: Page, { email, password }: Credentials) {
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
}

/** Signs in at a tenant, at whichever address of it. */
export async function signIn(
  page: Page,
  tenant: Tenant,
  address = `${APP}/t/${tenant.slug}`,
  person: Credentials | undefined = tenant.people[0],
) {
  if (!person) throw new Error("Nobody to sign in");
  await page.goto(address);
  await fillSignIn(page, person);
  await page.waitForURL(`${address}/dashboard`);
  await page.getByRole("heading", { name: "Hello" }).waitFor();
}

export async function signInAsOperator(page: Page, app = APP) {
  await page.goto(`${app}/console`);
  await page.waitForURL(`${app}/console/sign-in`);
  await fillSignIn(page, OPERATOR);
  await page.getByRole("heading", { name: "Tenants" }).waitFor();
}

/** Calls the API from a page, as its scripts would. */
export function call(page: Page, path: string, init: RequestInit = {}) {
  return page.evaluate(
    async ([path, init]) => {
      const response = await fetch(path, init);
      return { status: response.status, data: await response.json().catch(() => null) };
    },
    [path, init] as const,
  );
}

/** The id of a tenant, which its own host tells. */
export async function tenantId(page: Page, tenant: { slug: string }): Promise<string> {
  await page.goto(hostOf(tenant));
  const { data } = await call(page, "/api/auth/tenant/sign-in-methods");
  return data.tenant.id;
}

export const text = (page: Page) => page.getByRole("main").innerText();
