import { runInTenant } from "better-auth-tenant";
import demo from "../demo.json";
import { auth } from "./auth";

export interface DemoAccount {
  /** The tenant that it belongs to; null for the platform. */
  slug: string | null;
  email: string;
  /** Whether they manage what they belong to. */
  isAdmin: boolean;
  /** Null once somebody has changed it. */
  password: string | null;
}

/** DO NOT COPY: who can be tried out, with the passwords that work now. */
export async function demoAccounts(): Promise<DemoAccount[]> {
  const { adapter } = await auth.$context;
  const tenants = await adapter.findMany<{ id: string; slug: string }>({
    model: "tenant",
    where: [{ field: "slug", operator: "in", value: demo.tenants.map(({ slug }) => slug) }],
  });
  const accounts = tenants.flatMap(({ id, slug }) => {
    const people = demo.tenants.find((tenant) => tenant.slug === slug)?.people ?? [];
    return people.map(async ({ email, password, ...person }) => ({
      ...{ slug, email, isAdmin: "role" in person },
      password: await runInTenant(id, () => ifUnchanged(email, password)),
    }));
  });
  const { email, password } = demo.operator;
  const operator = ifUnchanged(email, password).then((password) => ({
    ...{ slug: null, email, isAdmin: true, password },
  }));
  return Promise.all([...accounts, operator]);
}

/** Checking a password takes a while, on purpose, and the start page is opened often. */
const checked = new Map<string, boolean>();

async function ifUnchanged(email: string, password: string): Promise<string | null> {
  const { internalAdapter, password: passwords } = await auth.$context;
  const found = await internalAdapter.findUserByEmail(email, { includeAccounts: true });
  const hash = found?.accounts.find(({ providerId }) => providerId === "credential")?.password;
  if (!hash) return null;
  const unchanged = checked.get(hash) ?? (await passwords.verify({ hash, password }));
  checked.set(hash, unchanged);
  return unchanged ? password : null;
}
