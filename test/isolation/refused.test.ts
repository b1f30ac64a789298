import { organization } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { tenantAuth } from "../../src/index";
import { createInstance, type InstanceOptions } from "../support/instance";

/** What cannot be confined, or is not decided, does not start: there is nothing to check then. */
const REFUSED: [what: string, options: InstanceOptions, message: RegExp][] = [
  [
    "models that nobody has decided about",
    { plugins: [organization()] },
    /scopedModels: \["organization", "member", "invitation"\]/,
  ],
  [
    "a renamed e-mail that the plugin was not told of",
    { auth: { user: { fields: { email: "email_address" } } } },
    /email_address/,
  ],
  [
    "a column of the application's own that is called like ours",
    { auth: { user: { additionalFields: { tenantId: { type: "string", required: false } } } } },
    /there is a field "tenantId", like ours/,
  ],
  ["the plugin twice", { plugins: [tenantAuth()] }, /installed more than once/],
  [
    "a scoped model that no plugin has",
    { tenant: { scopedModels: ["note"] } },
    /scopedModels: no plugin has a model "note"/,
  ],
];

describe("combinations that are refused at start", () => {
  it.each(REFUSED)("%s", async (_what, options, message) => {
    await expect(createInstance(options)).rejects.toThrow(message);
  });
});
