import { describe, expect, onTestFinished, test, vi } from "vitest";
import { asOperator, connect, google, somebody } from "./support/client";
import { createInstance, PASSWORD } from "./support/instance";

/** The machine that runs the tests may be busy. */
const PATIENT = { timeout: 10_000 };

describe("session state", () => {
  type Client = ReturnType<typeof connect>["authClient"];

  /** Watches the session, as a component does, until the test is over. */
  function watch({ useSession }: Client) {
    onTestFinished(useSession.subscribe(() => {}));
    return {
      email: () => useSession.get().data?.user.email,
      tenantId: () => useSession.get().data?.session.tenantId,
    };
  }

  test.each(["string", "none"])(
    "useSession follows sign-up, sign-out and sign-in (option: %s)",
    async (option) => {
      const instance = await createInstance();
      const acme = await instance.createTenant("acme");
      const tenant = option === "string" ? { tenantId: acme.id } : {};
      const { authClient, sent } = connect(instance, { tenant });
      const session = watch(authClient);
      expect(session.email()).toBeUndefined();

      const person = { ...somebody("al@example.com"), tenantId: acme.id };
      await authClient.tenant.signUp.email(person);
      await vi.waitFor(() => expect(session.email()).toBe("al@example.com"), PATIENT);
      expect(session.tenantId()).toBe(acme.id);
      expect(sent.map(({ path }) => path)).toEqual(["/tenant/sign-up/email", "/get-session"]);

      await authClient.signOut();
      await vi.waitFor(() => expect(session.email()).toBeUndefined(), PATIENT);

      const { email, password } = person;
      await authClient.tenant.signIn.email({ tenantId: acme.id, email, password });
      await vi.waitFor(() => expect(session.email()).toBe("al@example.com"), PATIENT);
      expect(session.tenantId()).toBe(acme.id);
    },
  );

  test("calls that change no session leave it alone", async () => {
    const instance = await createInstance();
    const { authClient, sent } = await asOperator(instance);
    watch(authClient);
    const acme = await authClient.tenant.create({ name: "Acme", slug: "acme" });
    await authClient.tenant.list();
    await authClient.tenant.signIn.email({
      tenantId: acme.data?.id ?? "",
      email: "nobody@example.com",
      password: PASSWORD,
    });
    // Longer than the client waits before it refreshes.
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(sent.map(({ path }) => path)).not.toContain("/get-session");
  });
});

describe("the way to the provider", () => {
  /** A page to leave from: the client goes to the provider by setting its address. */
  function openPage() {
    const location = { href: "http://localhost:3000/sign-in" };
    vi.stubGlobal("window", { location });
    onTestFinished(() => void vi.unstubAllGlobals());
    return location;
  }

  async function atAcme() {
    const instance = await createInstance({ auth: { socialProviders: { google } } });
    const acme = await instance.createTenant("acme");
    return connect(instance, { tenant: { tenantId: acme.id } });
  }

  test("the page goes there by itself", async () => {
    const { authClient } = await atAcme();
    const location = openPage();

    const { data } = await authClient.tenant.signIn.social({ provider: "google" });

    expect(location.href).toBe(data?.url);
    const { origin, searchParams } = new URL(location.href);
    expect(origin).toBe("https://accounts.google.com");
    expect(searchParams.get("redirect_uri")).toBe(
      "http://localhost:3000/api/auth/tenant/callback/google",
    );
  });

  test("it stays with disableRedirect", async () => {
    const { authClient } = await atAcme();
    const location = openPage();

    const { data } = await authClient.tenant.signIn.social({
      provider: "google",
      disableRedirect: true,
    });

    expect(data?.redirect).toBe(false);
    expect(new URL(data?.url ?? "").origin).toBe("https://accounts.google.com");
    expect(location.href).toBe("http://localhost:3000/sign-in");
  });

  test("it stays when the provider is not there", async () => {
    const { authClient } = await atAcme();
    const location = openPage();

    const { data, error } = await authClient.tenant.signIn.social({ provider: "github" });

    expect(data).toBeNull();
    expect(error).toMatchObject({ code: "PROVIDER_NOT_FOUND", status: 404 });
    expect(location.href).toBe("http://localhost:3000/sign-in");
  });

  test("it goes to callbackURL after signIn.email", async () => {
    const instance = await createInstance();
    const acme = await instance.createTenant("acme");
    const { email } = await instance.signUp(acme.id);
    const { authClient } = connect(instance, { tenant: { tenantId: acme.id } });
    const location = openPage();

    const input = { email, password: PASSWORD, callbackURL: "/dashboard" };
    const { data } = await authClient.tenant.signIn.email(input);

    expect(data).toMatchObject({ redirect: true, url: "/dashboard" });
    expect(location.href).toBe("/dashboard");
  });
});
