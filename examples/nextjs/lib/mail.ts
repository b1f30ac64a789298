import { getCurrentAdapter } from "@better-auth/core/context";
import { runInTenant } from "better-auth-tenant";
import { auth } from "./auth";
import type { Mail } from "./inbox";

/** Replace this by your mail service. */
export async function sendMail(mail: Omit<Mail, "id" | "createdAt">): Promise<void> {
  // better-auth may be in the middle of a transaction. SQLite would wait for its end, and it for us.
  const adapter = await getCurrentAdapter((await auth.$context).adapter);
  await adapter.create({ model: "mail", data: { ...mail, createdAt: new Date() } });
}

/** The latest mails of a tenant. */
export function mailsOf(tenantId: string): Promise<Mail[]> {
  return runInTenant(tenantId, async () => {
    const { adapter } = await auth.$context;
    const sortBy = { field: "createdAt", direction: "desc" as const };
    return adapter.findMany<Mail>({ model: "mail", sortBy, limit: 25 });
  });
}
