import { spawnSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { freePort, startExample } from "./support/start";
import {
  ACME,
  APP,
  call,
  closeBrowserAfterwards,
  newVisitor,
  signIn,
  signInAsOperator,
} from "./support/visitor";

closeBrowserAfterwards();

test("the command prints what to open and with which password, and that signs in", async () => {
  const printed = inject("printed");
  const [, address = ""] = /^ *Acme +(\S+)/m.exec(printed) ?? [];
  const [, email = "", password = ""] = /^ *Acme .*\n +(\S+) +(\S+)/m.exec(printed) ?? [];
  expect(address).toBe(`${APP}/t/acme`);

  const began = Date.now();
  const page = await (await newVisitor()).newPage();
  await signIn(page, ACME, address, { email, password });

  const seconds = Math.round((inject("milliseconds") + Date.now() - began) / 1000);
  const from = process.env.CLONED_AT ? "a fresh clone" : "this working copy";
  console.log(`From ${from} to a signed-in session: ${seconds} s`);
  expect(seconds).toBeLessThan(300);
});

test("it says so when its port is taken", async () => {
  const { port } = new URL(APP);
  const start = startExample({ ...inject("env"), PORT: port });
  await expect(start).rejects.toThrow(`Port ${port} is taken`);
});

/** What the command prints when it does not start. */
async function refusal(env: Record<string, string>, args: string[] = []): Promise<string> {
  const start = startExample({ ...inject("env"), ...env }, { args, patience: 30_000 });
  return start.then(
    () => "it has started",
    ({ message }: Error) => message.trim(),
  );
}

test.each([
  [{ PORT: "abc" }, "PORT must be a number from 1 to 65535, not “abc”."],
  [{ IDP_PORT: "70000" }, "IDP_PORT must be a number from 1 to 65535, not “70000”."],
  [{ PORT: "4000", IDP_PORT: "4000" }, "PORT and IDP_PORT are both 4000."],
  [{ APP_URL: "localhost" }, /^APP_URL must be an address .* not “localhost”\.$/],
])("a mistake in the settings is one sentence: %j", async (env, sentence) => {
  expect(await refusal(env)).toMatch(sentence);
});

test("so is a word that it does not know", async () => {
  expect(await refusal({}, ["restart"])).toContain("npm run example reset");
});

test.each([
  ["postgres://postgres@127.0.0.1:1/example", "PostgreSQL cannot be reached at 127.0.0.1:1"],
  [besides(process.env.DATABASE_URL), "Create it: createdb nowhere"],
])("a database that is not there is said once: %s", async (url, sentence) => {
  if (!url) return;
  const [PORT, IDP_PORT] = [String(await freePort()), String(await freePort())];
  const said = await refusal({ PORT, IDP_PORT, DATABASE_URL: url });
  expect(said.split(sentence)).toHaveLength(2);
  expect(said.split("\n").length).toBeLessThan(10);
});

/** A database that does not exist, on the server that the tests run on. */
function besides(url: string | undefined): string | undefined {
  return url && Object.assign(new URL(url), { pathname: "/nowhere" }).href;
}

test("where node_modules is a link, nothing is installed through it", () => {
  const directory = mkdtempSync(join(tmpdir(), "tenant-example-link-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const [copy, theirs] = [join(directory, "copy"), join(directory, "theirs")];
  const files = ["src", "tsup.config.ts", "package.json", "package-lock.json"];
  const repository = resolve(import.meta.dirname, "../../..");
  const example = ["scripts", "idp", "demo.json"].map((name) => `examples/nextjs/${name}`);
  for (const name of [...files, ...example]) {
    cpSync(join(repository, name), join(copy, name), { recursive: true });
  }
  mkdirSync(theirs);
  writeFileSync(join(theirs, "something"), "");
  symlinkSync(theirs, join(copy, "node_modules"));

  const script = join(copy, "examples/nextjs/scripts/run.mjs");
  const { stdout } = spawnSync(process.execPath, [script, "install"], { encoding: "utf8" });
  // There is nothing to build with in that folder, but it is as it was.
  expect(stdout).toMatch(/^Building the plugin/);
  expect(readdirSync(theirs)).toEqual(["something"]);
});

describe("running it again", () => {
  const directory = mkdtempSync(join(tmpdir(), "tenant-example-again-"));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  /** Starts it with the same data each time; the ports may be others. */
  async function startAgain(ports: { PORT: string; IDP_PORT: string }, args: string[] = []) {
    const env = { DATA_DIR: directory, DATABASE_URL: "", ...ports };
    const example = await startExample(env, { patience: 120_000, args });
    onTestFinished(example.stop);
    const app = `http://localhost:${ports.PORT}`;
    expect(example.printed).toContain(`Open ${app}`);
    return { ...example, app };
  }

  const newPorts = async () => ({
    PORT: String(await freePort()),
    IDP_PORT: String(await freePort()),
  });

  /** All tenants with their configs and people, as an operator sees them. */
  async function everything(app: string) {
    const page = await (await newVisitor()).newPage();
    await signInAsOperator(page, app);
    const { data: tenants } = await call(page, "/api/auth/tenant/list");
    const lists = ["tenant/oauth-config/list", "admin/list-users"].flatMap((path) =>
      tenants.map(({ id }: { id: string }) => call(page, `/api/auth/${path}?tenantId=${id}`)),
    );
    const listed = await Promise.all(lists);
    // An open page would go on to ask a server that is gone.
    await page.close();
    return [tenants, listed];
  }

  test("leaves what is there alone", async () => {
    const ports = await newPorts();
    const first = await startAgain(ports);
    const before = await everything(first.app);
    await first.stop();
    const second = await startAgain(ports);
    expect(await everything(second.app)).toEqual(before);
  }, 180_000);

  test("with another IDP_PORT, social sign-in goes there", async () => {
    const ports = await newPorts();
    const { app } = await startAgain(ports);
    const page = await (await newVisitor()).newPage();
    await page.goto(`${app}/t/acme`);
    await page.getByRole("button", { name: "Continue with GitLab" }).click();
    await page.waitForURL(`http://localhost:${ports.IDP_PORT}/oauth/authorize**`);
    await page.getByRole("button", { name: "Allow" }).click();
    await page.waitForURL(`${app}/t/acme/dashboard`);
  }, 180_000);

  test("it prints no password that was changed, and how to start over", async () => {
    const first = await startAgain(await newPorts());
    expect(first.printed).toContain("jane-works-at-acme");
    await changePassword(first.app, "jane-works-at-acme", "something else entirely");
    const page = await (await newVisitor()).newPage();
    await page.goto(first.app);
    const acme = page.getByRole("region", { name: "Acme" });
    expect(await acme.innerText()).not.toContain("jane-works-at-acme");
    // An open page would go on to ask a server that is gone.
    await page.close();
    await first.stop();

    const second = await startAgain(await newPorts());
    expect(second.printed).not.toContain("jane-works-at-acme");
    expect(second.printed).toContain("jane@example.com  (password was changed)");
    expect(second.printed).toContain("jane-works-at-globex");
    expect(second.printed).toContain("To start over with fresh data: npm run example reset");
    await second.stop();

    const third = await startAgain(await newPorts(), ["reset"]);
    expect(third.printed).toContain("jane-works-at-acme");
    await signIn(await (await newVisitor()).newPage(), ACME, `${third.app}/t/acme`);
  }, 240_000);
});

async function changePassword(app: string, currentPassword: string, newPassword: string) {
  const page = await (await newVisitor()).newPage();
  await signIn(page, ACME, `${app}/t/acme`);
  await page.goto(app.replace("//", "//acme."));
  const { data } = await call(page, "/api/auth/tenant/sign-in-methods");
  await page.goto(`${app}/t/acme/dashboard`);
  const changed = await call(page, "/api/auth/change-password", {
    method: "POST",
    headers: { "content-type": "application/json", "x-tenant-id": data.tenant.id },
    body: JSON.stringify({ currentPassword, newPassword }),
  });
  expect(changed.status).toBe(200);
  await page.close();
}
