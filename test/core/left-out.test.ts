import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";
import { afterAll, describe, expect, it } from "vitest";
import { isolationOf } from "../../src/core/isolation";
import { type Copy, createInstance, PASSWORD } from "../support/instance";

/*
 * A feature can be left out of the list in `plugin.ts`: the others work, and tenants stay apart.
 * Without the policy, every user would be admitted, so nothing starts.
 */

const ROOT = join(import.meta.dirname, "../..");
/** Beside better-auth, so that the copies share that. */
const CACHE = join(ROOT, `node_modules/.cache/left-out/${process.pid}`);

afterAll(() => rmSync(CACHE, { recursive: true, force: true }));

/** Folders with other extensions than the one that is called as the folder. */
const EXTENSIONS: Record<string, string[]> = { policy: ["policy", "secondFactors"] };

/** The package where a feature answers nothing. */
async function packageWithout(feature: string): Promise<Copy> {
  const leaveOut: Plugin = {
    name: "leave-out",
    setup: ({ onLoad }) =>
      onLoad({ filter: new RegExp(`src/features/${feature}/index\\.ts$`) }, () => ({
        contents: (EXTENSIONS[feature] ?? [feature])
          .map((name) => `export const ${name} = () => ({ name: "left out" });`)
          .join("\n"),
      })),
  };
  mkdirSync(CACHE, { recursive: true });
  const outfile = join(CACHE, `without-${feature}.js`);
  await build({
    entryPoints: [join(ROOT, "src/index.ts")],
    bundle: true,
    format: "esm",
    platform: "neutral",
    packages: "external",
    plugins: [leaveOut],
    outfile,
    logLevel: "error",
  });
  return import(/* @vite-ignore */ pathToFileURL(outfile).href);
}

type Session = { user: { id: string; tenantId: string } } | null;

describe.each(["credentials", "email", "management", "oauth"])("without %s", (feature) => {
  it("users sign in to their tenant, and are signed out in another", async () => {
    const { tenantAuth } = await packageWithout(feature);
    const instance = await createInstance({ tenantAuth });
    const names = isolationOf(instance.context)?.extensions.map(({ name }) => name);
    expect(names).toContain("left out");
    expect(names).not.toContain(feature);
    const acme = await instance.createTenant("acme");
    const globex = await instance.createTenant("globex");
    const inTenant = ({ id }: { id: string }) => ({ headers: { "x-tenant-id": id } });
    const jane = { name: "Jane", email: "jane@example.com", password: PASSWORD };

    const browser = instance.browser();
    const { status } = await browser.post("/sign-up/email", jane, inTenant(acme));
    expect(status).toBe(200);
    const here = await browser.get<Session>("/get-session");
    expect(here.data?.user.tenantId).toBe(acme.id);
    expect((await browser.get("/get-session", inTenant(globex))).data).toBeNull();

    const wrong = await instance.browser().post("/sign-in/email", jane, inTenant(globex));
    expect(wrong.status).toBe(401);
    const right = await instance.browser().post("/sign-in/email", jane, inTenant(acme));
    expect(right.status).toBe(200);
  });
});

it("without policy, nothing starts: stored policies would not be enforced", async () => {
  const { tenantAuth } = await packageWithout("policy");
  await expect(createInstance({ tenantAuth })).rejects.toThrow(/tenants have policies, but/);
});
