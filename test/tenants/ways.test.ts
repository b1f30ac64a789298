import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { WAYS } from "../../src/border/ways";

/** What makes a session, by itself or for an endpoint that calls it. */
const MAKERS = /\bcreateSession\(|\bhandleOAuthUserInfo\(|\bvalid\(ctx\b/;
const ENDPOINT = /createAuthEndpoint\("([^"]+)"/g;

/** Where sessions are made for whichever endpoint asks: they have no path of their own. */
const HELPERS = ["internal-adapter", "link-account", "verify-two-factor", "test-utils"];

/** The code of better-auth and of the plugins that are packages of their own. */
function sources(): { name: string; code: string }[] {
  const roots = ["better-auth", "@better-auth/passkey", "@better-auth/api-key"].map((name) =>
    dirname(fileURLToPath(import.meta.resolve(name))),
  );
  return roots
    .flatMap((root) =>
      readdirSync(root, { recursive: true, encoding: "utf8" }).map((file) => join(root, file)),
    )
    .filter((name) => name.endsWith(".mjs"))
    .map((name) => ({ name, code: readFileSync(name, "utf8") }));
}

/** Every endpoint whose code makes a session; a maker outside of endpoints goes by its file. */
function endpointsThatMakeSessions(): string[] {
  return sources().flatMap(({ name, code }) => {
    const isHelper = HELPERS.some((helper) => name.includes(helper)) || name.includes("/client");
    if (isHelper || !MAKERS.test(code)) return [];
    const starts = [...code.matchAll(ENDPOINT)];
    const found = starts.flatMap((start, index) => {
      const text = code.slice(start.index, starts[index + 1]?.index);
      return MAKERS.test(text) ? [start[1] ?? ""] : [];
    });
    const before = code.slice(0, starts[0]?.index);
    // A helper above the endpoints of its file makes the session for one of them.
    return MAKERS.test(before.replace(/^(async )?function|import .*$/gm, "")) && !found.length
      ? [name]
      : found;
  });
}

/** Not installed here: the paths of @better-auth/sso. And one whose handler is another's. */
const ELSEWHERE = Object.keys(WAYS).filter(
  (path) => path.startsWith("/sso/") || path === "/oauth-proxy-callback",
);

it("R14: every endpoint of every official plugin that makes a session is in the table", () => {
  const makers = new Set(endpointsThatMakeSessions());
  expect(makers.size).toBeGreaterThan(20);
  expect([...makers].sort()).toEqual(
    Object.keys(WAYS)
      .filter((path) => !ELSEWHERE.includes(path))
      .sort(),
  );
});
