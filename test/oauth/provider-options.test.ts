import { socialProviderList } from "better-auth/social-providers";
import { describe, expect, it } from "vitest";
import type { TenantOAuthConfig } from "../../src/index";
import { entryOf, shared as sharedOptions } from "../../src/oauth/provider-table";
import { publishedKeys, signToken } from "../support/jwt";
import { fakeNetwork, type Sent } from "../support/network";
import { shareInstance } from "../support/shared";
import { compiles } from "../support/types";
import { type Flow, neededBy, optionSights, type ProviderId, type Sight } from "./option-sights";

const shared = shareInstance({
  tenant: {
    trustedProviderHosts: ["gitlab.acme.example", "*.acme.example:8443", "paybin.acme.example"],
  },
});
const CLIENT = { clientId: "acme-client", clientSecret: "acme-client-secret" };

/** Any code is good, and any id token can be checked. */
function answer({ url }: Sent): Response {
  if (/token$/.test(url.split("?")[0] ?? "")) {
    const claims = { sub: "1", oid: "1", tid: "1", email: "a@example.com" };
    const id_token = url.includes("facebook") ? undefined : signToken(claims);
    if (url.includes("debug_token")) {
      return Response.json({ data: { is_valid: true, app_id: CLIENT.clientId, user_id: "1" } });
    }
    return Response.json({ access_token: "t", token_type: "Bearer", expires_in: 60, id_token });
  }
  return Response.json(publishedKeys);
}

async function register(providerId: string, options: unknown, scopes?: string[]) {
  const { id: tenantId } = await shared.instance.createTenant();
  const body = { tenantId, providerId, ...CLIENT, options, scopes };
  const registered = await shared.operator.post<TenantOAuthConfig & { code?: string }>(
    "/tenant/oauth-config/register",
    body,
  );
  return { tenantId, registered };
}

/** Signs in with whatever the tenant has configured. */
function flowAt(tenantId: string, provider: string): Flow {
  const sent = fakeNetwork(answer);
  const browser = shared.instance.browser();
  const post = (body: object) =>
    browser.post<{ url: string }>("/tenant/sign-in/social", { tenantId, provider, ...body });
  const start = async () => {
    const { status, data } = await post({});
    expect([status, sent]).toEqual([200, []]);
    return new URL(data.url);
  };
  const comeBack = async () => {
    const { searchParams } = await start();
    const query = { code: "good", state: searchParams.get("state") ?? "" };
    await browser.get(searchParams.get("redirect_uri") ?? "", { query });
    return sent;
  };
  const showIdToken = async () => {
    await post({ idToken: { token: signToken({ aud: CLIENT.clientId }) } });
    return sent;
  };
  return { start, comeBack, showIdToken };
}

const cases = Object.entries(optionSights).flatMap(([id, options]) =>
  Object.entries(options).flatMap(([option, sights]: [string, Sight[] | string]) =>
    typeof sights === "string" ? [] : sights.map((sight) => [id, option, sight] as const),
  ),
);

describe("the table", () => {
  it("knows every provider of the installed better-auth, and no other", () => {
    expect(Object.keys(optionSights).sort()).toEqual([...socialProviderList].sort());
  });

  it.each([...socialProviderList])("knows every option of %s", (id) => {
    const own = Object.entries(entryOf(id).options);
    const application = ([, rule]: [string, unknown]) => rule === null;
    const expected = Object.entries<Sight[] | string>(optionSights[id]);
    expect(own.map(([option]) => option).sort()).toEqual(expected.map(([o]) => o).sort());
    expect(own.filter(application).map(([option]) => option)).toEqual(
      expected.filter(([, sights]) => typeof sights === "string").map(([option]) => option),
    );
  });

  it("would not compile without a provider or an option", () => {
    compiles(() => {
      type Table = typeof optionSights;
      const { zoom: _, ...withoutZoom } = optionSights;
      // @ts-expect-error: a provider is missing
      withoutZoom satisfies Table;
      const { hd: __, ...withoutHd } = optionSights.google;
      // @ts-expect-error: an option is missing
      ({ ...optionSights, google: withoutHd }) satisfies Table;
      // @ts-expect-error: no such option
      ({ ...optionSights.google, issuer: [] }) satisfies Table["google"];
    });
  });
});

describe("every option", () => {
  it.each(cases)("of %s: %s is stored, listed and reaches the provider", async (...test) => {
    const [id, option, { value, stored = value, beside = {}, seen, as }] = test;
    const given = { ...beside.options, [option]: value };
    const { tenantId, registered } = await register(id, given, beside.scopes);
    expect([registered.status, registered.code]).toEqual([200, undefined]);
    const expected = { ...beside.options, [option]: stored };
    expect(registered.data.options).toEqual(expected);
    const list = await shared.operator.get<TenantOAuthConfig[]>("/tenant/oauth-config/list", {
      query: { tenantId },
    });
    expect(list.data.map(({ options }) => options)).toEqual([expected]);
    expect(await seen(flowAt(tenantId, id))).toEqual(as);
  });

  it.each([...socialProviderList])("that all providers share is taken by %s", async (id) => {
    const taken = Object.entries(sharedOptions).filter(([, rule]) => rule !== null);
    const given: Record<string, unknown> = {
      prompt: "consent",
      disableDefaultScope: true,
      disableSignUp: true,
      disableImplicitSignUp: true,
      disableIdTokenSignIn: true,
    };
    expect(Object.keys(given).sort()).toEqual(taken.map(([option]) => option).sort());
    const options = { ...neededBy(id), ...given };
    const { registered } = await register(id, options);
    expect([registered.status, registered.data.options]).toEqual([200, options]);
  });

  it("is optional, and so are all of them together", async () => {
    for (const options of [undefined, null, {}]) {
      const { registered } = await register("google", options);
      expect([registered.status, registered.data.options]).toEqual([200, options ?? null]);
    }
  });

  it("goes when the config is registered again without it", async () => {
    const { tenantId } = await register("google", { hd: "acme.example" });
    const again = await shared.operator.post("/tenant/oauth-config/register", {
      tenantId,
      providerId: "google",
      ...CLIENT,
    });
    expect(again.data.options).toBeNull();
    const { searchParams } = await flowAt(tenantId, "google").start();
    expect(searchParams.get("hd")).toBeNull();
  });

  it("is encrypted in the database", async () => {
    const options = {
      ...neededBy("cognito"),
      identityProvider: "AcmeOkta",
      additionalClientIds: ["acme-mobile"],
      prompt: "select_account",
    };
    const { tenantId } = await register("cognito", options);
    const { query, quote } = shared.instance.database;
    const rows = await query(
      `select * from ${quote("tenantOauthConfig")} where ${quote("tenantId")} = ?`,
      [tenantId],
    );
    expect(rows).toHaveLength(1);
    const row = JSON.stringify(rows);
    for (const [name, value] of Object.entries(options)) {
      for (const text of [name, ...[value].flat()]) expect(row).not.toContain(text);
    }
    expect(rows[0]?.options).toMatch(/^[0-9a-f]{80,}$/);
  });
});

describe("what the shared options do", () => {
  it("prompt and disableDefaultScope show in the address", async () => {
    const options = { prompt: "select_account", disableDefaultScope: true };
    const { tenantId } = await register("google", options, ["openid"]);
    const { searchParams } = await flowAt(tenantId, "google").start();
    expect(searchParams.get("prompt")).toBe("select_account");
    expect(searchParams.get("scope")).toBe("openid");
  });

  it("disableIdTokenSignIn refuses id tokens", async () => {
    const { tenantId } = await register("google", { disableIdTokenSignIn: true });
    const sent = fakeNetwork(answer);
    const refused = await shared.instance.browser().post("/tenant/sign-in/social", {
      tenantId,
      provider: "google",
      idToken: { token: signToken({ iss: "https://accounts.google.com", aud: CLIENT.clientId }) },
    });
    expect([refused.status, refused.code]).toEqual([404, "ID_TOKEN_NOT_SUPPORTED"]);
    expect(sent).toEqual([]);
  });
});

/** The way back of a new person, for each provider that has no other way to say who they are. */
const ACCOUNTS: Partial<Record<ProviderId, (sent: Sent) => unknown>> = {
  google: () => ({}),
  zoom: () => ({ id: "1", email: "new@example.com", display_name: "New", verified: 1 }),
};

describe.each(Object.keys(ACCOUNTS) as (keyof typeof ACCOUNTS)[])("with %s", (provider) => {
  const network = (sent: Sent) => {
    if (!sent.url.includes("token")) return Response.json(ACCOUNTS[provider]?.(sent));
    const iss = "https://accounts.google.com";
    const id = { iss, aud: CLIENT.clientId, sub: "1", email: "new@example.com", name: "New" };
    return Response.json({
      access_token: "t",
      token_type: "Bearer",
      ...(provider === "google" && { id_token: signToken({ ...id, email_verified: true }) }),
    });
  };

  async function comeAsNewPerson(options: object, start: object = {}) {
    fakeNetwork(network);
    const { tenantId } = await register(provider, options);
    const browser = shared.instance.browser();
    const { data } = await browser.post<{ url: string }>("/tenant/sign-in/social", {
      tenantId,
      provider,
      callbackURL: "/welcome",
      errorCallbackURL: "/failed",
      ...start,
    });
    const state = new URL(data.url).searchParams.get("state") ?? "";
    const query = { code: "good", state };
    const { location } = await browser.get(`/tenant/callback/${provider}`, { query });
    const { quote } = shared.instance.database;
    const users = await shared.instance.rows("user", `${quote("tenantId")} = ?`, [tenantId]);
    return [location, users];
  }

  it("somebody new gets in as things are", async () => {
    expect(await comeAsNewPerson({})).toEqual(["/welcome", 1]);
  });

  it("disableSignUp keeps new people out", async () => {
    expect(await comeAsNewPerson({ disableSignUp: true })).toEqual([
      "/failed?error=signup_disabled",
      0,
    ]);
  });

  it("disableImplicitSignUp keeps new people out who did not ask to sign up", async () => {
    const options = { disableImplicitSignUp: true };
    expect(await comeAsNewPerson(options)).toEqual(["/failed?error=signup_disabled", 0]);
    expect(await comeAsNewPerson(options, { requestSignUp: true })).toEqual(["/welcome", 1]);
  });
});
