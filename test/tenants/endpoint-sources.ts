import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ENDPOINT = /createAuthEndpoint\("([^"]+)"/g;

const PACKAGES = "passkey api-key electron expo i18n mcp oauth-provider stripe".split(" ");

/** The code of better-auth and of the plugins that are packages of their own. */
function sources(): { name: string; code: string }[] {
  const roots = ["better-auth", ...PACKAGES.map((name) => `@better-auth/${name}`)].map((name) =>
    dirname(fileURLToPath(import.meta.resolve(name))),
  );
  return roots
    .flatMap((root) =>
      readdirSync(root, { recursive: true, encoding: "utf8" }).map((file) => join(root, file)),
    )
    .filter((name) => /\.m?js$/.test(name))
    .map((name) => ({ name, code: readFileSync(name, "utf8") }));
}

/**
 * Every endpoint of better-auth and its official plugins whose code has a call in it, by itself or
 * in a function above the endpoints of its file: then the file is named. `helpers` are files that
 * do it for whichever endpoint asks, and have no path of their own.
 */
export function endpointsThatCall(calls: RegExp, helpers: string[]): string[] {
  return sources().flatMap(({ name, code }) => {
    const isHelper = helpers.some((helper) => name.includes(helper)) || name.includes("/client");
    if (isHelper || !calls.test(code)) return [];
    const starts = [...code.matchAll(ENDPOINT)];
    const found = starts.flatMap((start, index) => {
      const text = code.slice(start.index, starts[index + 1]?.index);
      return calls.test(text) ? [start[1] ?? ""] : [];
    });
    const before = code.slice(0, starts[0]?.index);
    // A helper above the endpoints of its file does it for one of them.
    return calls.test(before.replace(/^(async )?function|import .*$/gm, "")) && !found.length
      ? [name]
      : found;
  });
}
