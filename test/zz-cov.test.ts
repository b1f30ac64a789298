import { Session } from "node:inspector";
import { writeFileSync } from "node:fs";
import { it } from "vitest";
import { createInstance, PASSWORD } from "./support/instance";
import { bySlug } from "../src/index";
it("cov", async () => {
  const world = await createInstance({ tenant: { resolveTenantId: bySlug() } });
  const acme = await world.createTenant("acme");
  const headers = { headers: { "x-tenant-slug": "acme" } };
  const b = world.browser();
  const jane = { name: "Jane", email: "jane@example.com", password: PASSWORD };
  await b.post("/sign-up/email", jane, headers);
  await b.get("/get-session", headers);
  const s = new Session(); s.connect();
  const post = (m: string, p?: object) => new Promise<any>((res, rej) => s.post(m as never, p as never, ((e: any, r: any) => e ? rej(e) : res(r)) as never));
  await post("Profiler.enable"); await post("Debugger.enable");
  const measure = async (name: string, run: () => Promise<unknown>) => {
    await post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    await post("Profiler.takePreciseCoverage");
    const r: any = await run();
    const { result } = await post("Profiler.takePreciseCoverage");
    for (const x of result) if (/\/src\//.test(x.url)) { const { scriptSource } = await post("Debugger.getScriptSource", { scriptId: x.scriptId }); x.functions = x.functions.filter((f: any) => !/^(get )?[\w$]*\(?\)?\s*(=>)?\s*\{?\s*(return|try)?[\s\S]{0,60}$/.test(scriptSource.slice(f.ranges[0].startOffset, f.ranges[0].endOffset)) || f.functionName); for (const f of x.functions) if (!f.functionName) f.functionName = "«" + scriptSource.slice(f.ranges[0].startOffset, f.ranges[0].endOffset).replace(/\s+/g, " ").slice(0, 50) + "»"; }
    const files = result.filter((x: any) => /\/src\//.test(x.url) && !/node_modules|testing/.test(x.url)).map((x: any) => ({ file: x.url.replace(/.*\/src\//, ""), fns: x.functions.filter((f: any) => f.ranges[0].count > 0 && f.ranges[0].startOffset > 100).map((f: any) => `${f.functionName || "(anon)"}×${f.ranges[0].count}`) })).filter((x: any) => x.fns.length);
    writeFileSync(`/tmp/cov-${name}.txt`, `${name} ${r.status} files ${files.length} fns ${files.reduce((a: number, x: any) => a + x.fns.length, 0)}\n` + files.map((x: any) => `${x.file} (${x.fns.length}): ${x.fns.join(" ")}`).join("\n"));
    await post("Profiler.stopPreciseCoverage");
  };
  await measure("signin", () => world.browser().post("/sign-in/email", jane, headers));
  await measure("session", () => b.get("/get-session", headers));
});
