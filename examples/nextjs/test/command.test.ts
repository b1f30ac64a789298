import { expect, inject, onTestFinished, test } from "vitest";
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

test("running it again leaves what is there alone", async () => {
  const page = await (await newVisitor()).newPage();
  await signInAsOperator(page);
  const everything = async () => {
    const { data: tenants } = await call(page, "/api/auth/tenant/list");
    const lists = ["tenant/oauth-config/list", "admin/list-users"].flatMap((path) =>
      tenants.map(({ id }: { id: string }) => call(page, `/api/auth/${path}?tenantId=${id}`)),
    );
    return [tenants, await Promise.all(lists)];
  };
  const before = await everything();
  const [port, idpPort] = [String(await freePort()), String(await freePort())];
  const env = { ...inject("env"), PORT: port, IDP_PORT: idpPort };
  const again = await startExample(env, 120_000);
  onTestFinished(again.stop);
  expect(again.printed).toContain(`Open http://localhost:${port}`);
  expect(await everything()).toEqual(before);
}, 180_000);
