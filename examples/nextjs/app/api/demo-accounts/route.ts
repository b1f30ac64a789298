import { demoAccounts } from "@/lib/demo";

export const dynamic = "force-dynamic";

/** For the command that starts the demo, which prints them. An application of yours has no such thing. */
export const GET = async () => Response.json(await demoAccounts());
