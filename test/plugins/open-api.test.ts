import { openAPI } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { shareWorld } from "../support/world";

interface Operation {
  description?: string;
  parameters?: { name: string; in: string }[];
  requestBody?: {
    content: Record<string, { schema: { properties?: object; required?: string[] } }>;
  };
}

const world = shareWorld({ plugins: [openAPI()] });

async function described(path: string, method: "get" | "post") {
  type Paths = Record<string, { get?: Operation; post?: Operation }>;
  const { data } = await world.at("platform").get<{ paths: Paths }>("/open-api/generate-schema");
  const operation = data.paths[path]?.[method];
  expect(operation?.description).toEqual(expect.stringMatching(/\w/));
  return operation;
}

const CONFIG = "tenantId clientId clientSecret scopes redirectURI options";

describe("openAPI", () => {
  it.each([
    ["/tenant/create", "name slug", "metadata"],
    // A tenant's own administrator need not name it.
    ["/tenant/update", "", "tenantId name slug metadata status policy endSessions"],
    ["/tenant/delete", "tenantId", ""],
    ["/tenant/sign-up/email", "name email password", "tenantId image callbackURL rememberMe"],
    ["/tenant/sign-in/email", "email password", "tenantId callbackURL rememberMe"],
    ["/tenant/sign-in/social", "provider", "tenantId callbackURL errorCallbackURL"],
    [
      "/tenant/oauth-config/register",
      "providerId clientId clientSecret",
      "tenantId scopes redirectURI options enabled",
    ],
    [
      "/tenant/oauth-config/update",
      "providerId",
      "tenantId clientSecret scopes redirectURI options enabled",
    ],
    ["/tenant/oauth-config/check", "providerId", CONFIG],
    ["/tenant/oauth-config/delete", "providerId", "tenantId"],
  ])("describes the body of %s", async (path, needed, more) => {
    const { requestBody } = (await described(path, "post")) ?? {};
    const { properties = {}, required = [] } =
      requestBody?.content["application/json"]?.schema ?? {};
    const names = (text: string) => text.split(" ").filter(Boolean);
    const fields = [...names(needed), ...names(more)];
    expect(Object.keys(properties)).toEqual(expect.arrayContaining(fields));
    expect(required).toEqual(expect.arrayContaining(names(needed)));
    expect(required.includes("tenantId")).toBe(needed === "tenantId");
  });

  it.each([
    ["/tenant/get", ["id", "slug"]],
    ["/tenant/list", ["limit", "offset", "search", "sort"]],
    ["/tenant/oauth-config/list", ["tenantId"]],
    ["/tenant/sign-in-methods", ["tenantId"]],
  ])("describes the query of %s", async (path, names) => {
    const { parameters = [] } = (await described(path, "get")) ?? {};
    expect(parameters.map(({ name }) => name)).toEqual(expect.arrayContaining(names));
  });
});
