import { describe, expect, it } from "vitest";
import { codeOf, createWays, STORES } from "./ways-in";

describe.each(STORES)("R10: a suspended tenant, sessions in %s", (store) => {
  it("no way leads in, and each is told why", async () => {
    const { ways, at, count, setStatus } = await createWays(store);
    for (const { name, run } of ways) {
      await setStatus("active");
      const browser = at();
      let users = 0;
      const answer = await run(browser, async () => {
        await setStatus("suspended");
        users = await count("user");
      });
      expect([name, codeOf(answer)?.toUpperCase()]).toEqual([name, "TENANT_SUSPENDED"]);
      expect([name, await count("user"), await count("session")]).toEqual([name, users, 0]);
      browser.keepCookies(answer.headers);
      expect([name, (await browser.get("/get-session")).data]).toEqual([name, null]);
    }
  });

  it("as soon as it is active again, every way leads in", async () => {
    const { ways, at, setStatus } = await createWays(store);
    await setStatus("suspended");
    await setStatus("active");
    for (const { name, run } of ways) {
      // It is let in by somebody who was signed in before, and is not any more.
      if (name === "a device") continue;
      const answer = await run(at());
      expect([name, codeOf(answer), answer.status < 400]).toEqual([name, undefined, true]);
    }
  });
});
