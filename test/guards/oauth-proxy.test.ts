import { oAuthProxy } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { Answer, Browser } from "../support/browser";
import { createSocialInstance, GLOBAL, type SocialOptions } from "../support/social";

const PREVIEW = "http://localhost:3000";
const PRODUCTION = "http://production.example.com";

/** A preview that signs people in through production, both played by one instance. */
async function createPreview(
  gitlab: SocialOptions["gitlab"] = {},
  options?: Record<string, unknown>,
) {
  const app = await createSocialInstance({
    gitlab,
    plugins: [oAuthProxy({ productionURL: PRODUCTION, currentURL: PREVIEW })],
    auth: {
      baseURL: {
        allowedHosts: ["localhost:3000", "production.example.com"],
        protocol: "http",
        fallback: PREVIEW,
      },
    },
  });
  const { id } = await app.createTenant();
  const { clientId, clientSecret } = await app.configure(id);
  if (options) {
    const body = { tenantId: id, providerId: "gitlab", clientId, clientSecret, options };
    await app.api.registerTenantOAuthConfig({ body });
  }

  /** Follows redirects for as long as they lead to this server, perhaps with a tenant's name. */
  async function follow(browser: Browser, url: string, tenantId?: string): Promise<Answer> {
    const query: Record<string, string> = tenantId ? { tenantId } : {};
    let answer = await browser.get(url);
    for (let hops = 0; hops < 5 && answer.location?.includes("/api/auth/callback"); hops++) {
      answer = await browser.get(answer.location, { query });
    }
    return answer;
  }

  /** What was asked at the provider in the name of which client. */
  const clients = () => app.idp.exchanges().map(({ params }) => params.client_id);
  const people = (where: string, params: unknown[] = []) => app.rows("user", where, params);
  return { app, id, follow, clients, people };
}

type Preview = Awaited<ReturnType<typeof createPreview>>;

/** Addresses at the provider that a person may make of the one that the tenant sent. */
const CHANGES: [what: string, change: (url: URL) => void][] = [
  ["as it is", () => {}],
  [
    "with the platform's callback",
    (url) => url.searchParams.set("redirect_uri", `${PRODUCTION}/api/auth/callback/gitlab`),
  ],
  ["with the platform's client", (url) => url.searchParams.set("client_id", GLOBAL.clientId)],
  [
    "with the platform's client and callback",
    (url) => {
      url.searchParams.set("client_id", GLOBAL.clientId);
      url.searchParams.set("redirect_uri", `${PRODUCTION}/api/auth/callback/gitlab`);
    },
  ],
];

/** Goes the changed way, and comes back to each of the two callbacks. */
async function goChanged(
  { app, id, follow, clients, people }: Preview,
  change: (url: URL) => void,
) {
  const attempts: { answer: Answer; made: number; by: (string | undefined)[] }[] = [];
  const callbacks = ["/tenant/callback/gitlab", "/callback/gitlab"];
  for (const [callback, name] of callbacks.flatMap((path) => [[path, id], [path]])) {
    const browser = app.browser();
    const { data, status } = await app.start(browser, id);
    if (status !== 200) continue;
    const url = new URL(data.url);
    change(url);
    const back = new URL(await app.idp.authorize(url.href, "alice"));
    back.pathname = `/api/auth${callback}`;
    const [exchanges, users] = [clients().length, await people("1 = 1")];
    const answer = await follow(browser, back.href, name);
    const made = (await people("1 = 1")) - users;
    attempts.push({ answer, made, by: clients().slice(exchanges) });
  }
  return attempts;
}

describe("root 14: oAuthProxy and a tenant's flow", () => {
  it.each(CHANGES)("%s: is never completed with the platform's client", async (_, change) => {
    const preview = await createPreview();
    const attempts = await goChanged(preview, change);
    expect(await preview.people(`"tenantId" = ''`)).toBe(0);
    for (const { made, by } of attempts.filter((attempt) => attempt.made > 0)) {
      expect([made, by]).toEqual([1, [`client-${preview.id}`]]);
    }
  });

  const OFF: [where: string, create: () => Promise<Preview>][] = [
    ["for all", () => createPreview({ disableSignUp: true })],
    ["for the tenant", () => createPreview({}, { disableSignUp: true })],
  ];
  const off = OFF.flatMap(([where, create]) =>
    CHANGES.map(([what, change]) => [what, where, create, change] as const),
  );

  it.each(off)("%s: is not completed where sign-up is off %s", async (_, __, create, change) => {
    const preview = await create();
    const attempts = await goChanged(preview, change);
    expect(await preview.people("1 = 1")).toBe(0);
    expect(await preview.app.rows("session")).toBe(0);
    for (const { answer } of attempts) {
      expect(answer.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
    }
  });

  it("works for the tenant itself, or not at all: nobody ends up elsewhere", async () => {
    const preview = await createPreview();
    const { app, id, follow } = preview;
    const browser = app.browser();
    const { data, status } = await app.start(browser, id);
    expect(status).toBe(200);
    await follow(browser, await app.idp.authorize(data.url, "alice"));
    expect(await preview.people(`"tenantId" <> ?`, [id])).toBe(0);
    expect(await app.rows("session", `"tenantId" <> ?`, [id])).toBe(0);
  });

  it("control: the platform's own flow works through it", async () => {
    const { app, follow, clients } = await createPreview();
    const browser = app.browser();
    const { data } = await app.start(browser, null);
    const answer = await follow(browser, await app.idp.authorize(data.url, "alice"));
    expect([answer.status, answer.location]).toEqual([302, "/welcome"]);
    expect(clients()).toEqual([GLOBAL.clientId]);
    expect((await app.whoIs(browser, null))?.user.email).toBe("alice@example.com");
  });
});
