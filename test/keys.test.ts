import { hkdfSync } from "node:crypto";
import type { AuthContext } from "better-auth";
import { makeSignature } from "better-auth/crypto";
import { expect, it } from "vitest";
import { deriveKey, deriveKeys, signFor } from "../src/keys";

const SECRET = "secret-of-the-application-0123456789";
const PURPOSES = ["link", "state", "oauth-credentials"] as const;

const expected = (purpose: string, secret = SECRET) =>
  Buffer.from(
    hkdfSync("sha256", secret, "better-auth-tenant", `better-auth-tenant:${purpose}:v1`, 32),
  ).toString("hex");

it.each(PURPOSES)("the key for %s is derived with HKDF", async (purpose) => {
  expect(await deriveKey(purpose, SECRET)).toBe(expected(purpose));
  expect(await deriveKey(purpose, SECRET)).toBe(expected(purpose));
});

it("every secret of a rotation has a key of its own", async () => {
  const keys = new Map([
    [1, "first-secret"],
    [2, "second-secret"],
  ]);
  expect(await deriveKeys("link", { keys, currentVersion: 2, legacySecret: "old" })).toEqual({
    keys: new Map([
      [1, expected("link", "first-secret")],
      [2, expected("link", "second-secret")],
    ]),
    currentVersion: 2,
    legacySecret: expected("link", "old"),
  });
  expect(await deriveKeys("link", SECRET)).toBe(expected("link"));
});

it("a signature of ours is none that better-auth computes for a caller", async () => {
  const context = { secret: SECRET } as AuthContext;
  for (const purpose of PURPOSES) {
    const signature = await signFor(purpose, "text", context);
    expect(signature).toBe(await makeSignature("text", expected(purpose)));
    expect(signature).not.toBe(await makeSignature("text", SECRET));
  }
});
