import { readdirSync } from "node:fs";
import { basename } from "node:path";

/**
 * The rooms of src whose tests have to notice every change, and where such tests are beside the
 * folder of the same name: the likelier ones first. The first room that a path begins with is its.
 */
export const ROOMS: Record<string, string[]> = {
  "src/isolation/": [
    "setup",
    "copies",
    "policy",
    "oauth/state",
    "tenants",
    "flows",
    "request",
    "invitations",
    "enterprise",
    "plugins",
    "oauth",
    "domains",
    "integrations",
    "faults",
  ],
  "src/request/": [
    "guides/troubleshooting",
    "isolation",
    "flows",
    "copies",
    "plugins",
    "tenants",
    "oauth",
    "enterprise",
    "invitations",
    "domains",
    "integrations",
    "setup",
    "policy",
  ],
  "src/policy/": [
    "isolation",
    "plugins/organization",
    "enterprise",
    "copies",
    "tenants",
    "oauth",
    "domains/emails",
  ],
  "src/oauth/": [
    "request",
    "plugins/oauth",
    "tenants/events",
    "flows/accounts",
    "policy/admission",
  ],
  "src/tenants/": [
    "isolation/storage",
    "isolation/sessions",
    "enterprise/scim",
    "invitations",
    "faults",
    "flows",
    "domains",
  ],
  "src/enterprise/": ["policy", "tenants/delete", "domains/sso"],
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
