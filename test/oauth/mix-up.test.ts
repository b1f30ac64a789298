import { describe, expect, it } from "vitest";
import { startIdentityProvider } from "../support/identity-provider";
import { createInstance } from "../support/instance";
import { queryOf, STATE_STRATEGIES } from "../support/social";

const CLIENT = { clientId: "acme-client", clientSecret: "acme-client-secret" };
const EVIL = { clientId: "evil-client", clientSecret: "evil-client-secret" };
type Place = "a host of its own" | "the application's host";

/** Acme, whose provider is honest, and a tenant whose provider is not; the victim is Acme's. */
async function createWorld(acmeLives: Place, storeStateStrategy: "database" | "cookie") {
  const honest = await startIdentityProvider();
  const evil = await startIdentityProvider();
  for (const { clientId, clientSecret } of [CLIENT, EVIL]) {
    honest.registerClient(clientId, clientSecret);
    evil.registerClient(clientId, clientSecret);
  }
  honest.addPerson("victim");
  const trustedProviderHosts = [honest, evil].map(({ issuer }) => new URL(issuer).host);
  const global = { clientId: "global", clientSecret: "global-secret", issuer: honest.issuer };
  const instance = await createInstance({
    tenant: { trustedProviderHosts },
    auth: { account: { storeStateStrategy }, socialProviders: { gitlab: global } },
  });
  const create = async (client: typeof CLIENT, options?: { issuer: string }) => {
    const { id: tenantId } = await instance.createTenant();
    const body = { tenantId, providerId: "gitlab", ...client, options };
    await instance.api.registerTenantOAuthConfig({ body });
    return tenantId;
  };
  const own = acmeLives === "a host of its own" ? { issuer: honest.issuer } : undefined;
  const acme = await create(CLIENT, own);
  const hostile = await create(EVIL, { issuer: evil.issuer });
  const start = async (browser: ReturnType<typeof instance.browser>, tenantId: string) => {
    const { data } = await browser.post<{ url: string }>("/tenant/sign-in/social", {
      tenantId,
      provider: "gitlab",
      callbackURL: "/welcome",
      errorCallbackURL: "/failed",
    });
    return new URL(data.url);
  };
  return { instance, honest, evil, acme, hostile, start };
}

describe.each<Place>(["a host of its own", "the application's host"])(
  "threat: mix-up: Acme's provider is on %s",
  (place) => {
    it.each(STATE_STRATEGIES.filter((strategy) => strategy !== "secondary storage"))(
      "a hostile provider that sends people on to it does not get their code (state in the %s)",
      async (strategy) => {
        const { instance, honest, evil, acme, hostile, start } = await createWorld(place, strategy);
        // The attacker's own sign-in at Acme has the challenge that the stolen code shall fit.
        const attackers = await start(instance.browser(), acme);
        const victim = instance.browser();
        const { state = "" } = queryOf((await start(victim, hostile)).href);
        // Where the hostile provider sends the victim, who has a session at the honest one.
        attackers.searchParams.set("state", state);
        const way = await honest.authorize(attackers.href, "victim");
        const back = await victim.get(way);
        expect(evil.exchanges()).toEqual([]);
        expect(back.location).toBe("/failed?error=state_mismatch");
        expect(await instance.rows("user")).toBe(0);
      },
    );

    it.each(["/tenant/callback/gitlab", "another tenant"])(
      "nor does a way back that was bent to %s sign anybody in",
      async (target) => {
        const { instance, honest, acme, hostile, start } = await createWorld(place, "database");
        const victim = instance.browser();
        const way = new URL(await honest.authorize((await start(victim, acme)).href, "victim"));
        const was = way.searchParams.get("tenant");
        if (target === "another tenant") way.searchParams.set("tenant", hostile);
        else if (was === null) way.searchParams.set("tenant", "");
        else way.searchParams.delete("tenant");
        expect((await victim.get(way.href)).location).toBe("/failed?error=state_mismatch");
        expect(honest.exchanges()).toEqual([]);
      },
    );

    it("control: people of both tenants sign in", async () => {
      const { instance, honest, evil, acme, hostile, start } = await createWorld(place, "database");
      evil.addPerson("somebody");
      for (const [idp, tenantId, name] of [
        [honest, acme, "victim"],
        [evil, hostile, "somebody"],
      ] as const) {
        const browser = instance.browser();
        const way = await idp.authorize((await start(browser, tenantId)).href, name);
        expect((await browser.get(way)).location).toBe("/welcome");
      }
    });
  },
);
