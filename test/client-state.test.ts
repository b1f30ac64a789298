import { describe, expect, onTestFinished, test, vi } from "vitest";
import { asOperator, connect, google, somebody } from "./support/client";
import { PASSWORD } from "./support/instance";
import { shareWorld } from "./support/world";

/** The machine that runs the tests may be busy. */
const PATIENT = { timeout: 10_000 };

const world = shareWorld({ auth: { socialProviders: { google } } });
const atAcme = () => connect(world, { tenant: { tenantId: String(world.ids.acme) } });

describe("session state", () => {
  /** Watches the session, as a component does, until the test is over. */
  function watch({ useSession }: ReturnType<typeof connect>["authClient"]) {
    onTestFinished(useSession.subscribe(() => {}));
    const seen = () => {
      const { data } = useSession.get();
      return data && [data.user.email, data.session.tenantId];
    };
    return (expected: unknown) => vi.waitFor(() => expect(seen()).toEqual(expected), PATIENT);
  }

  test.each(["a tenant", "no tenant"])(
    "useSession follows sign-up, sign-out and sign-in, with %s as an option",
    async (option) => {
      const tenantId = String(world.ids.acme);
      const { authClient, sent } = option === "a tenant" ? atAcme() : connect(world);
      const sees = watch(authClient);
      await sees(null);
      const email = `${option.replace(" ", "-")}@example.com`;
      await authClient.tenant.signUp.email({ ...somebody(email), tenantId });
      await sees([email, tenantId]);
      expect(sent.map(({ path }) => path)).toEqual(["/tenant/sign-up/email", "/get-session"]);
      await authClient.signOut();
      await sees(null);
      await authClient.tenant.signIn.email({ tenantId, email, password: PASSWORD });
      await sees([email, tenantId]);
    },
  );

  test("calls that change no session leave it alone", async () => {
    const { authClient, sent } = await asOperator(world);
    watch(authClient);
    await authClient.tenant.create({ name: "New", slug: "new" });
    await authClient.tenant.list();
    const stranger = { email: "nobody@example.com", password: PASSWORD };
    await authClient.tenant.signIn.email({ tenantId: String(world.ids.acme), ...stranger });
    // Longer than the client waits before it refreshes.
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(sent).toHaveLength(3);
    expect(sent.map(({ path }) => path)).not.toContain("/get-session");
  });
});

describe("the way to the provider", () => {
  const HERE = "http://localhost:3000/sign-in";

  /** A page to leave from: the client goes to the provider by setting its address. */
  function openPage() {
    const location = { href: HERE };
    vi.stubGlobal("window", { location });
    onTestFinished(() => void vi.unstubAllGlobals());
    return location;
  }

  test("the page goes there by itself", async () => {
    const location = openPage();
    const { data } = await atAcme().authClient.tenant.signIn.social({ provider: "google" });
    expect(location.href).toBe(data?.url);
    const { origin, searchParams } = new URL(location.href);
    expect([origin, searchParams.get("redirect_uri")]).toEqual([
      "https://accounts.google.com",
      "http://localhost:3000/api/auth/tenant/callback/google",
    ]);
  });

  test("it stays with disableRedirect, or when the provider is not there", async () => {
    const location = openPage();
    const { signIn } = atAcme().authClient.tenant;
    const { data } = await signIn.social({ provider: "google", disableRedirect: true });
    expect(data?.redirect).toBe(false);
    expect(new URL(data?.url ?? "").origin).toBe("https://accounts.google.com");
    const missing = await signIn.social({ provider: "github" });
    expect(missing.data).toBeNull();
    expect(missing.error).toMatchObject({ code: "PROVIDER_NOT_FOUND", status: 404 });
    expect(location.href).toBe(HERE);
  });

  test("it goes to callbackURL after signIn.email", async () => {
    const { email } = await world.as("jane", "acme");
    const location = openPage();
    const input = { email, password: PASSWORD, callbackURL: "/dashboard" };
    const { data } = await atAcme().authClient.tenant.signIn.email(input);
    expect(data).toMatchObject({ redirect: true, url: "/dashboard" });
    expect(location.href).toBe("/dashboard");
  });
});
