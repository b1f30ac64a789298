import { readdirSync } from "node:fs";
import { basename } from "node:path";

/**
 * The rooms of src whose tests have to notice every change, and where such tests are beside the
 * folder of the same name: the likelier ones first. The first room that a path begins with is its.
 */
export const ROOMS: Record<string, string[]> = {
  "src/border/": [
    "start",
    "scope",
    "copies",
    "naming/oauth-state",
    "tenants",
    "flows",
    "routes/sign-in",
    "invitations",
    "enterprise",
  ],
  "src/naming/": [
    "scope",
    "routes/sign-in",
    "guides/troubleshooting",
    "border",
    "plugins/oauth",
    "enterprise/sso-state",
    "tenants/status",
    "invitations/accept",
  ],
  "src/scope/": ["border/reach", "flows/server-code", "copies", "naming", "border"],
  "src/oauth/": [
    "routes/oauth-configs",
    "routes/sign-in",
    "plugins/oauth",
    "tenants/events",
    "flows/accounts",
    "naming",
    "border/admission",
  ],
  "src/tenants/enforce.ts": [
    "border/admission",
    "border/keep-admin",
    "border/reach",
    "border/adapter",
    "plugins/organization",
    "enterprise",
    "border",
    "copies",
    "tenants",
    "oauth",
  ],
  "src/tenants/reservations.ts": ["enterprise", "databases"],
  "src/tenants/": [
    "routes",
    "border/storage",
    "border/sessions",
    "enterprise/scim",
    "faults",
    "flows",
  ],
  "src/routes/management.ts": ["routes", "tenants", "invitations"],
};

/** They try everything at once and take long, or need more than Node. */
const SLOW = /adapter-suites|\.registry\.|\.prisma\./;

export const roomOf = (file: string) => Object.keys(ROOMS).find((room) => file.startsWith(room));

const nameOf = (file: string) => basename(file).split(".")[0] ?? "";

/** The tests of a room, with those named for the given files before all others. */
export function testsOf(room: string, files: string[], exists = allTests()): string[] {
  const own = `${room
    .replace(/^src\//, "test/")
    .replace(/\.ts$/, "")
    .replace(/\/$/, "")}`;
  const folders = [own, ...(ROOMS[room] ?? []).map((folder) => `test/${folder}`)];
  const names = files.map(nameOf);
  const rank = (test: string) => {
    const folder = folders.findIndex((start) => test.startsWith(start));
    const named = names.some((name) => nameOf(test).startsWith(name)) ? 0 : 1;
    return named * folders.length + folder;
  };
  return exists
    .filter((test) => !SLOW.test(test) && folders.some((folder) => test.startsWith(folder)))
    .sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
}

const allTests = () =>
  readdirSync("test", { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".test.ts"))
    .map((path) => `test/${path.replaceAll("\\", "/")}`);
