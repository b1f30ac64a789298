import { BetterAuthError } from "better-auth";
import { expect, it } from "vitest";
import { byDomain } from "../../src/index";

it.each([
  "Login.Acme.com",
  "login.acme.com:3000",
  "https://login.acme.com",
  "login.acme.com/",
  "login.acme.com.",
  "*.acme.com",
  "b\u00fccher.example",
  "",
])("byDomain refuses %j, which no host ever matches", (key) => {
  const create = () => byDomain({ "globex.org": { slug: "globex" }, [key]: { slug: "acme" } });
  expect(create).toThrow(BetterAuthError);
  expect(create).toThrow(`byDomain(): "${key}" never matches`);
});

it.each(["login.acme.com", "xn--bcher-kva.example", "localhost"])("byDomain takes %s", (key) => {
  expect(() => byDomain({ [key]: { slug: "acme" } })).not.toThrow();
});
