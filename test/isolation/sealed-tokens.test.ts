import type { AuthContext } from "better-auth";
import { symmetricEncrypt } from "better-auth/crypto";
import { describe, expect, it } from "vitest";
import { runInTenant } from "../../src/index";
import {
  looksSealed,
  replaceToken,
  seal,
  unseal,
  withSealedToken,
} from "../../src/isolation/links";
import { createInstance, type InstanceOptions } from "../support/instance";
import { createWorld, EMAIL, expectRefused, shareWorld } from "../support/world";

it.each([
  ["in the query", "http://x/a?token=t", "http://x/a?token=SEALED"],
  ["under any name", "/a?x=1&code=t&y=2", "/a?x=1&code=SEALED&y=2"],
  ["as a value with signs of its own", "/a?x==t?&token=t", "/a?x==t?&token=SEALED"],
  ["in a second question", "/a?back=/b?x&token=t", "/a?back=/b?x&token=SEALED"],
  ["at the end of the path", "/a/t?x=1", "/a/SEALED?x=1"],
  ["at the end of a path without a query", "/a/t", "/a/SEALED"],
  ["in front of a fragment", "/?x=1&token=t#/reset", "/?x=1&token=SEALED#/reset"],
  ["in the query of a fragment", "/#/reset?token=t&x=1", "/#/reset?token=SEALED&x=1"],
  ["as a fragment", "/a#token=t", "/a#token=SEALED"],
  ["at the end of a path with a fragment", "/a/t#/t", "/a/SEALED#/t"],
  ["nowhere: a page in a fragment", "/a?x=1#/t", "/a?x=1#/t"],
  ["encoded", "/a?token=%74", "/a?token=SEALED"],
  ["nowhere: part of a value", "/a?token=tt&t=x", "/a?token=tt&t=x"],
  ["nowhere: inside the path", "/t/a", "/t/a"],
  ["nowhere: what cannot be decoded", "/a?token=%E0%A4%A", "/a?token=%E0%A4%A"],
  ["with a blank", "/a?token=a+b", "/a?token=SEALED", "a b"],
  ["with an equals sign", "/a?token=a=b", "/a?token=SEALED", "a=b"],
  ["with a question mark", "/a?token=a?b", "/a?token=SEALED", "a?b"],
])("a token is replaced %s", (_, address, replaced, token = "t") => {
  expect(replaceToken(address, token, "SEALED")).toBe(replaced);
});

describe("what a sender gets", () => {
  const world = shareWorld();
  const url = "http://localhost:3000/api/auth/verify-email?token=t";
  const context = () => world.context as unknown as AuthContext;
  const sent = (data: unknown, tenantId: string = world.ids.acme) =>
    runInTenant(tenantId, () => withSealedToken(context(), data));

  it("is sealed in a tenant, with its token, its endpoint and the tenant", async () => {
    const sealed = (await sent({ url, token: "t", to: EMAIL })) as Record<string, string>;
    expect(sealed).toEqual({
      to: EMAIL,
      token: expect.stringMatching(/^tenant~[0-9a-z~]+$/),
      url: url.replace("=t", `=${sealed.token}`),
    });
    expect(await unseal(context(), sealed.token ?? "")).toEqual({
      token: "t",
      tenantId: world.ids.acme,
      path: "/verify-email",
    });
  });

  it.each([
    ["without a token", { url }],
    ["with a token that is no text", { url, token: 1 }],
    ["without an address", { token: "t" }],
    ["with an address that is no text", { url: new URL(url), token: "t" }],
    ["with an address of elsewhere", { url: "http://localhost:3000/x?token=t", token: "t" }],
    ["with an address that is none", { url: "http://", token: "t" }],
    ["of nothing", undefined],
  ])("is left as it is %s", async (_, data) => {
    expect(await sent(data)).toBe(data);
  });

  it("is left as it is on the platform", async () => {
    const data = { url, token: "t" };
    expect(await withSealedToken(context(), data)).toBe(data);
  });

  it("opens with nothing left out and nothing added", async () => {
    const contents = { token: "t", tenantId: "a", path: "/p" };
    const open = async (what: object) =>
      unseal(context(), await seal(context(), what as typeof contents));
    expect(await open(contents)).toEqual(contents);
    expect(await open({ ...contents, more: 1 })).toBeUndefined();
    for (const name of Object.keys(contents)) {
      expect(await open({ ...contents, [name]: "" }), name).toBeUndefined();
    }
    expect(await unseal(context(), "tenant~0000")).toBeUndefined();
  });
});

it("without a token, or with two, /verify-email is refused by better-auth, at Acme as on the platform", async () => {
  const { at } = await createWorld();
  for (const query of ["", "?token=a&token=b"]) {
    const answer = await at("acme").get(`/verify-email${query}`);
    expectRefused(answer, 400, "VALIDATION_ERROR");
    expect(answer.data).toEqual((await at("platform").get(`/verify-email${query}`)).data);
  }
});

describe("secrets", () => {
  const contents = { token: "t", tenantId: "a", path: "/p" };
  const [first, second] = ["first secret ".repeat(4), "second secret ".repeat(4)];
  const open = async (auth: InstanceOptions["auth"]) => {
    const instance = await createInstance({ auth: { secret: undefined, ...auth }, migrate: false });
    return instance.context as unknown as AuthContext;
  };
  const versions = (...values: string[]) => ({
    secrets: values.map((value) => ({ version: value === first ? 1 : 2, value })),
  });

  it("links outlive a new secret, for as long as the old one is among the secrets", async () => {
    const rotated = await open({ ...versions(second, first), secret: first });
    for (const before of [{ secret: first }, versions(first), versions(second, first)]) {
      const sealed = await seal(await open(before), contents);
      expect(looksSealed(sealed)).toBe(true);
      expect(await unseal(rotated, sealed)).toEqual(contents);
    }
    const sealed = await seal(await open(versions(first)), contents);
    expect(await unseal(await open(versions(second)), sealed)).toBeUndefined();
  });

  it("what better-auth encrypts itself opens as no link", async () => {
    const context = await open(versions(second, first));
    const data = JSON.stringify(contents);
    const cipher = await symmetricEncrypt({ key: context.secretConfig, data });
    expect(await unseal(context, `tenant~${cipher.replaceAll("$", "~")}`)).toBeUndefined();
  });
});
