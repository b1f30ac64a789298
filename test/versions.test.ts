import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

const versionsIn = (lock: string) => {
  const { packages } = JSON.parse(readFileSync(lock, "utf8"));
  return (name: string): string => packages[`node_modules/${name}`].version;
};
const oldest = versionsIn("package-lock.json");
const newest = versionsIn("test/newest/package-lock.json");
const both = (name: string) => [...new Set([oldest(name), newest(name)])].join(" and ");

const SENTENCES: Record<string, string> = {
  "README.md": `Tested with better-auth ${both("better-auth")}.`,
  "docs/packages.md": `Tested with better-auth ${both("better-auth")}, \`@better-auth/stripe\` ${both("@better-auth/stripe")}, \`@better-auth/expo\` ${both("@better-auth/expo")} and the others at ${both("@better-auth/api-key")}.`,
  "docs/enterprise.md": `Tested with \`@better-auth/sso\` ${both("@better-auth/sso")} and \`@better-auth/scim\` ${both("@better-auth/scim")}, on better-auth ${both("better-auth")}.`,
};

it.each(Object.entries(SENTENCES))("%s says what it is tested with", (page, sentence) => {
  expect(readFileSync(page, "utf8")).toContain(sentence);
});
