import { demoAccounts } from "@/lib/demo";

export const dynamic = "force-dynamic";

/**
 * DO NOT COPY: tells everyone the passwords of the demo, for the command that starts it and prints them.
 */
export const GET = async () => Response.json(await demoAccounts());
