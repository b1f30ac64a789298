import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { WAYS } from "../../src/border/ways";
import { ENDPOINT, endpointsThatCall } from "./endpoint-sources";

/** What makes a session, by itself or for an endpoint that calls it. */
const MAKERS = /\bcreateSession\(|\bhandleOAuthUserInfo\(|\bvalid\(ctx\b/;

/** Where sessions are made for whichever endpoint asks. */
const HELPERS = ["internal-adapter", "link-account", "verify-two-factor", "test-utils"];

/** Those of @better-auth/sso, whose helpers make the sessions: see below. And one whose handler is another's. */
const ELSEWHERE = Object.keys(WAYS).filter(
  (path) => path.startsWith("/sso/") || path === "/oauth-proxy-callback",
);

it("R14: every endpoint of every official plugin that makes a session is in the table", () => {
  const makers = new Set(endpointsThatCall(MAKERS, HELPERS));
  expect(makers.size).toBeGreaterThan(20);
  expect([...makers].sort()).toEqual(
    Object.keys(WAYS)
      .filter((path) => !ELSEWHERE.includes(path))
      .sort(),
  );
});

it("R14: so is every endpoint of @better-auth/sso that signs people in", () => {
  const code = readFileSync(fileURLToPath(import.meta.resolve("@better-auth/sso")), "utf8");
  const makers = /(?<!function )\b(handleOIDCCallback|processSAMLResponse)\(/;
  expect(code).toMatch(/\bhandleOAuthUserInfo\(/);
  const starts = [...code.matchAll(ENDPOINT)];
  const found = starts.flatMap((start, index) =>
    makers.test(code.slice(start.index, starts[index + 1]?.index)) ? [start[1]] : [],
  );
  expect(found).toEqual([
    "/sso/callback/:providerId",
    "/sso/callback",
    "/sso/saml2/sp/acs/:providerId",
  ]);
  const known = Object.keys(WAYS).filter((path) => path.startsWith("/sso/"));
  expect(known.sort()).toEqual([...found].sort());
});
