import { APIError } from "better-auth/api";
import { admin } from "better-auth/plugins";
import { createAccessControl } from "better-auth/plugins/access";
import { adminAc, defaultStatements } from "better-auth/plugins/admin/access";
import { describe, expect, it } from "vitest";
import { createPlaces } from "../plugins/places";
import type { Browser } from "../support/browser";

// As in better-auth's own docs: ordinary users have permissions of the application's.
const ac = createAccessControl({ ...defaultStatements, project: ["create", "share"] } as const);
const roles = {
  user: ac.newRole({ project: ["create"] }),
  admin: ac.newRole({ project: ["create", "share"], ...adminAc.statements }),
};
const ADMINS = {
  "better-auth's own roles": () => admin(),
  "roles of the application's": () => admin({ ac, roles }),
};
const body = { permissions: { project: ["create"] } };

/** The instance is made with better-auth's own roles, as far as the compiler knows. */
interface PermissionApi {
  userHasPermission(input: { body: object; headers: Headers }): Promise<{ success: boolean }>;
}

const createRoles = (kind: keyof typeof ADMINS) =>
  createPlaces([], {
    arrange: (ours, others) => [ours, ...others.filter(({ id }) => id !== "admin"), ADMINS[kind]()],
  });

describe("an ordinary user of the platform at B", () => {
  it.each(Object.keys(ADMINS) as (keyof typeof ADMINS)[])(
    "R5: is nobody, with %s",
    async (kind) => {
      const { signUp, naming } = await createRoles(kind);
      const pat = await signUp("platform", "pat@example.com");
      const visit = pat.browser.fork(naming("b"));
      expect((await visit.get("/get-session")).data).toBe(null);
      expect((await visit.get("/admin/list-users")).status).toBe(401);
      expect((await visit.post("/admin/has-permission", body)).status).toBe(401);
    },
  );

  it("R5: is nobody for the server either, which asks for the request of a page", async () => {
    const { instance, signUp, naming } = await createRoles("roles of the application's");
    const api = instance.api as unknown as PermissionApi;
    const ask = async (browser: Browser, headers: Record<string, string>) => {
      const cookie = browser.cookieHeader();
      const asked = { body, headers: new Headers({ ...headers, cookie }) };
      return api.userHasPermission(asked).then(
        ({ success }) => success,
        (error: unknown) => error instanceof APIError && error.statusCode,
      );
    };
    const pat = await signUp("platform", "pat@example.com");
    const al = await signUp("a", "al@example.com");
    expect(await ask(pat.browser, {})).toBe(true);
    expect(await ask(al.browser, naming("b"))).toBe(401);
    expect(await ask(pat.browser, naming("b"))).toBe(401);
  });
});
