import { timingSafeEqual } from "node:crypto";
import { auth } from "@/lib/auth";

/**
 * Deletes the tenants whose week is over. For a cron job, once an hour, with the secret that the
 * server was started with: `curl -X POST -H "Authorization: Bearer $CRON_SECRET" …/api/purge-tenants`
 */
export async function POST(request: Request) {
  if (!isCronJob(request)) return Response.json({ error: "Unauthorized" }, { status: 401 });
  return Response.json(await auth.api.purgeTenants());
}

function isCronJob({ headers }: Request): boolean {
  const { CRON_SECRET } = process.env;
  if (!CRON_SECRET) return false;
  const expected = Buffer.from(`Bearer ${CRON_SECRET}`);
  const given = Buffer.from(headers.get("authorization") ?? "");
  return given.length === expected.length && timingSafeEqual(given, expected);
}
