import type { Answer } from "../support/browser";
import { PASSWORD } from "../support/instance";
import { createSocialInstance, type SocialOptions } from "../support/social";
import {
  type Credentials,
  HOT,
  type Size,
  tenantId,
  tenantSlug,
  userEmail,
  userId,
  userOf,
} from "./population";

/** What every generated tenant with a config has registered. */
const CLIENT = { clientId: "size-client", clientSecret: "size-secret" };

/** What generated users sign in with. */
export const CREDENTIALS: Credentials = { password: `hashed:${PASSWORD}`, provider: "gitlab" };

/** An instance whose tenants are about to be generated, and what it mails. */
export async function createSizeInstance(options: SocialOptions) {
  const resetTokens: string[] = [];
  const app = await createSocialInstance({
    ...options,
    auth: {
      ...options.auth,
      emailAndPassword: {
        enabled: true,
        sendResetPassword: async ({ token }) => void resetTokens.push(token),
      },
    },
  });
  const template = await app.createTenant("template");
  await app.configure(template.id, CLIENT);
  return { ...app, resetTokens };
}

export type SizeInstance = Awaited<ReturnType<typeof createSizeInstance>>;

/** Looks inside of names and slugs, where no index leads: goes through the tenants until it has enough. */
export const SEARCH = "search tenants";

/** Runs one request that has to go well. */
export async function succeed<T>(name: string, run: () => Promise<Answer<T>>): Promise<T> {
  const { status, data, location } = await run();
  if (status < 400 && !location?.includes("error")) return data;
  throw new Error(`${name}: ${status} ${location ?? ""} ${JSON.stringify(data)}`);
}

/** Runs one request; its name says what for. */
export type Step = <T>(name: string, run: () => Promise<Answer<T>>) => Promise<T>;

/** Walks through the flows of one generated tenant, request by request. */
export async function walk(app: SizeInstance, size: Size, tenant: number, step: Step) {
  const id = tenantId(tenant);
  const named = { "x-tenant-id": id };
  const n = userOf(tenant, 1, size);
  const email = userEmail(n);
  const person = { tenantId: id, email, password: PASSWORD };

  const newcomer = { ...person, name: "Newcomer", email: `newcomer-${tenant}@example.com` };
  await step("sign-up", () => app.browser().post("/tenant/sign-up/email", newcomer));
  const me = app.browser();
  await step("sign-in", () => me.post("/tenant/sign-in/email", person));
  await step("get-session", () => me.get("/get-session"));
  await step("get-session in the tenant", () => me.fork(named).get("/get-session"));
  await step("list-sessions", () => me.get("/list-sessions"));
  await step("list-accounts", () => me.get("/list-accounts"));
  await step("update-user", () => me.post("/update-user", { name: "Renamed" }));
  const passwords = { currentPassword: PASSWORD, newPassword: PASSWORD };
  await step("change-password", () => me.post("/change-password", passwords));

  const stranger = () => app.browser(named);
  await step("request-password-reset", () => stranger().post("/request-password-reset", { email }));
  const reset = { token: app.resetTokens.at(-1), newPassword: PASSWORD };
  await step("reset-password", () => stranger().post("/reset-password", reset));
  await step("sign-out", () => me.post("/sign-out"));

  app.idp.addPerson("member", { id: n, email });
  app.idp.addPerson("visitor", {
    id: 1_000_000_000 + tenant,
    email: `visitor-${tenant}@example.com`,
  });
  for (const username of ["member", "visitor"]) {
    const browser = app.browser();
    const { url } = await step("social start", () => app.start(browser, id));
    const back = await app.idp.authorize(url, username);
    await step(`callback of a ${username}`, () => browser.get(back));
  }

  const operator = (await app.operator()).browser;
  await step("get tenant by id", () => operator.get("/tenant/get", { query: { id } }));
  const slug = tenantSlug(tenant);
  await step("get tenant by slug", () => operator.get("/tenant/get", { query: { slug } }));
  for (const sort of ["createdAt", "-createdAt", "name", "slug"]) {
    const query = { limit: "20", offset: "20", sort };
    await step(`list tenants by ${sort}`, () => operator.get("/tenant/list", { query }));
  }
  const search = { search: "nant 99", limit: "20" };
  await step(SEARCH, () => operator.get("/tenant/list", { query: search }));
  await step("update tenant", () => operator.post("/tenant/update", { tenantId: id, name: "New" }));
  const config = { tenantId: id, providerId: "github", clientId: "id", clientSecret: "secret" };
  await step("register config", () => operator.post("/tenant/oauth-config/register", config));
  await step("list configs", () =>
    operator.get("/tenant/oauth-config/list", { query: { tenantId: id } }),
  );
  await step("delete config", () => operator.post("/tenant/oauth-config/delete", config));
  const visiting = operator.fork(named);
  const page = { limit: "20", sortBy: "email" };
  await step("list users", () => visiting.get("/admin/list-users", { query: page }));
  const user = { userId: userId(n) };
  await step("list sessions of a user", () => visiting.post("/admin/list-user-sessions", user));
  await step("ban user", () => visiting.post("/admin/ban-user", user));
  await step("remove user", () => visiting.post("/admin/remove-user", user));
  if (tenant === HOT) return;
  await step("delete tenant", () => operator.post("/tenant/delete", { tenantId: id }));
}
