import { expect, it } from "vitest";
import { runInTenant } from "../../src/index";
import { createWorld, type Ground } from "./store";

const METADATA = {
  nested: { list: [1, -2.5, true, false, null, "", { deep: [[]] }], empty: {} },
  text: "Ünïcødé 😀 'quoted' \"twice\" \\ and\na line",
  looksLikeADate: "2024-01-01T00:00:00.000Z",
  looksLikeJson: '{"a":1}',
  looksLikeANumber: "007",
  large: Number.MAX_SAFE_INTEGER,
};

const CREDENTIALS = { clientId: "the-client-id", clientSecret: "the-client-secret" };

/** What a database stores in a way of its own has to come back the way it went in. */
export function keepsValues(ground: Ground) {
  it("gives metadata back as it was", async () => {
    const { api } = await createWorld(ground);
    const body = { name: "Meta", slug: "meta", metadata: METADATA };
    const created = await api.createTenant({ body });
    expect(created.metadata).toEqual(METADATA);
    const read = async () => (await api.getTenant({ query: { slug: "meta" } })).metadata;
    expect(await read()).toEqual(METADATA);
    const listed = (await api.listTenants()).find(({ id }) => id === created.id);
    expect(listed?.metadata).toEqual(METADATA);
    for (const metadata of [{}, { only: "this" }, null]) {
      const updated = await api.updateTenant({ body: { tenantId: created.id, metadata } });
      expect(updated.metadata).toEqual(metadata);
      expect(await read()).toEqual(metadata);
    }
  });

  it("has no metadata where none was given", async () => {
    const { api, a } = await createWorld(ground);
    expect(a.metadata).toBeNull();
    expect((await api.getTenant({ query: { id: a.id } })).metadata).toBeNull();
  });

  it("gives dates back as dates, the same to the millisecond", async () => {
    const before = Date.now();
    const { api, a, context, signUp } = await createWorld(ground);
    const read = await api.getTenant({ query: { id: a.id } });
    for (const date of [a.createdAt, a.updatedAt, read.createdAt]) {
      expect(date).toBeInstanceOf(Date);
      expect(date.getTime()).toBeGreaterThanOrEqual(before);
      expect(date.getTime()).toBeLessThanOrEqual(Date.now());
    }
    const updated = await api.updateTenant({ body: { tenantId: a.id, name: "New" } });
    expect([read.createdAt, updated.createdAt]).toEqual([a.createdAt, a.createdAt]);
    expect(updated.updatedAt.getTime()).toBeGreaterThanOrEqual(a.updatedAt.getTime());

    const { token } = await signUp(a.id);
    const expiresAt = new Date("2031-02-03T04:05:06.789Z");
    const found = await runInTenant(a.id, async () => {
      await context.internalAdapter.updateSession(token, { expiresAt });
      return context.internalAdapter.findSession(token);
    });
    expect(found?.session.expiresAt).toEqual(expiresAt);
    expect(found?.user.createdAt).toBeInstanceOf(Date);
    expect(found?.user.emailVerified).toBe(false);
  });

  it("gives OAuth configs back as they were, and replaces them as a whole", async () => {
    const { api, a, b, rows } = await createWorld(ground);
    const register = (config: object) => {
      const body = { tenantId: a.id, providerId: "google", ...CREDENTIALS, ...config };
      return api.registerTenantOAuthConfig({ body });
    };
    const list = (tenantId: string) => api.listTenantOAuthConfigs({ query: { tenantId } });
    const first = await register({});
    expect(first).toMatchObject({
      id: expect.any(String),
      tenantId: a.id,
      providerId: "google",
      clientId: CREDENTIALS.clientId,
      scopes: null,
      redirectURI: null,
      enabled: true,
      createdAt: expect.any(Date),
      updatedAt: expect.any(Date),
    });
    expect(await list(a.id)).toEqual([first]);

    for (const config of [
      { scopes: ["email", "https://example.com/a b,c", 'qu"ote'], enabled: false },
      { scopes: ["one"], redirectURI: "https://example.com/callback", clientId: "another" },
      { scopes: [] },
      {},
    ]) {
      const replaced = await register(config);
      const nothing = { ...CREDENTIALS, scopes: null, redirectURI: null, enabled: true };
      const { clientSecret: _, ...expected } = { ...nothing, ...config };
      const { id, createdAt } = first;
      expect(replaced).toMatchObject({ ...expected, id, createdAt });
      expect(await list(a.id)).toEqual([replaced]);
    }

    await register({ providerId: "github" });
    expect((await list(a.id)).map(({ providerId }) => providerId).sort()).toEqual([
      "github",
      "google",
    ]);
    expect(await list(b.id)).toEqual([]);
    const stored = JSON.stringify(await rows("tenantOauthConfig"));
    for (const secret of Object.values(CREDENTIALS)) expect(stored).not.toContain(secret);

    const body = { tenantId: a.id, providerId: "google" };
    expect(await api.deleteTenantOAuthConfig({ body })).toEqual({ success: true });
    await expect(api.deleteTenantOAuthConfig({ body })).rejects.toMatchObject({
      body: { code: "OAUTH_CONFIG_NOT_FOUND" },
    });
    expect(await rows("tenantOauthConfig")).toHaveLength(1);
  });
}
