import { readdirSync } from "node:fs";
import { basename } from "node:path";

/**
 * The areas of src in which a test has to notice every change. The tests are in the folder of `test`
 * with the same path, and then in the listed ones, the likelier ones first. A file belongs to the
 * first area that its path starts with.
 */
export const AREAS: Record<string, string[]> = {
  "src/core/isolate/": [
    "core/install",
    "copies",
    "features/credentials",
    "features/policy",
    "features/oauth/state",
    "features/management",
    "core/tenants",
    "flows",
    "core/resolve",
    "features/invitations",
    "features/enterprise",
    "plugins",
    "features/oauth",
    "features/domains",
    "features/integrations",
    "faults",
  ],
  "src/core/resolve/": [
    "guides/troubleshooting",
    "core",
    "features/email",
    "flows",
    "copies",
    "plugins",
    "features/management",
    "features/oauth",
    "features/enterprise",
    "features/invitations",
    "features/domains",
    "features/integrations",
    "features/policy",
  ],
  "src/core/": [
    "copies",
    "features/email",
    "features/management",
    "features/policy",
    "flows",
    "plugins",
    "features",
    "faults",
  ],
  "src/features/credentials/": ["core/isolate/generations", "features/policy/second-factor"],
  "src/features/email/": ["core/resolve", "core/install", "plugins", "flows"],
  "src/features/policy/": [
    "core/isolate",
    "features/management/roles",
    "features/management/last-admin",
    "plugins/organization",
    "features/enterprise",
    "copies",
    "features/management",
    "core/tenants",
    "features/oauth",
    "features/domains/emails",
  ],
  "src/features/sign-in-page/": ["features/policy"],
  "src/features/oauth/": [
    "core/resolve",
    "plugins/oauth",
    "features/management/events",
    "flows/accounts",
    "features/policy/admission",
  ],
  "src/features/management/": [
    "core/tenants",
    "core/isolate/storage",
    "core/isolate/sessions",
    "core/isolate/cross-tenant",
    "features/policy",
    "features/enterprise/scim",
    "features/invitations",
    "faults",
    "flows",
    "features/domains",
  ],
  "src/features/enterprise/": [
    "features/policy",
    "features/management/delete",
    "features/domains/sso",
  ],
};

/** They try everything at once and take long, or need more than Node. */
const SLOW = /adapter-suites|\.registry\.|\.prisma\./;

export const areaOf = (file: string) => Object.keys(AREAS).find((area) => file.startsWith(area));

const nameOf = (file: string) => basename(file).split(".")[0] ?? "";

/** The tests of an area, those whose path has the name of one of the files before all others. */
export function testsOf(area: string, files: string[], exists = allTests()): string[] {
  const mirrored = `${area
    .replace(/^src\//, "test/")
    .replace(/\.ts$/, "")
    .replace(/\/$/, "")}`;
  const folders = [mirrored, ...(AREAS[area] ?? []).map((folder) => `test/${folder}`)];
  const names = files.map(nameOf);
  const rank = (test: string) => {
    const folder = folders.findIndex((start) => test.startsWith(start));
    const named = names.some((name) => new RegExp(`/${name}[./-]`).test(test)) ? 0 : 1;
    return named * folders.length + folder;
  };
  return exists
    .filter((test) => !SLOW.test(test) && folders.some((folder) => test.startsWith(folder)))
    .sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
}

const allTests = () =>
  readdirSync("test", { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".test.ts") && !path.includes("node_modules"))
    .map((path) => `test/${path.replaceAll("\\", "/")}`);
