import { openAPI } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { createPlaces } from "./places";

interface Operation {
  description?: string;
  parameters?: { name: string; in: string }[];
  requestBody?: {
    content: Record<string, { schema: { properties?: object; required?: string[] } }>;
  };
}

type Paths = Record<string, { get?: Operation; post?: Operation }>;

async function describedPaths(): Promise<Paths> {
  const { at } = await createPlaces([openAPI()]);
  const { status, data } = await at("platform").get<{ paths: Paths }>("/open-api/generate-schema");
  expect(status).toBe(200);
  return data.paths;
}

/** What the bodies of this plugin's endpoints hold, and what they need. */
const BODIES: Record<string, { fields: string[]; required: string[] }> = {
  "/tenant/create": { fields: ["name", "slug", "metadata"], required: ["name", "slug"] },
  "/tenant/update": {
    // A tenant's own administrator need not name it.
    fields: ["tenantId", "name", "slug", "metadata", "status", "policy", "endSessions"],
    required: [],
  },
  "/tenant/delete": { fields: ["tenantId"], required: ["tenantId"] },
  "/tenant/sign-up/email": {
    fields: ["tenantId", "name", "email", "password", "image", "callbackURL", "rememberMe"],
    required: ["name", "email", "password"],
  },
  "/tenant/sign-in/email": {
    fields: ["tenantId", "email", "password", "callbackURL", "rememberMe"],
    required: ["email", "password"],
  },
  "/tenant/sign-in/social": {
    fields: ["tenantId", "provider", "callbackURL", "errorCallbackURL"],
    required: ["provider"],
  },
  "/tenant/oauth-config/register": {
    fields: [
      "tenantId",
      "providerId",
      "clientId",
      "clientSecret",
      "scopes",
      "redirectURI",
      "options",
      "enabled",
    ],
    required: ["providerId", "clientId", "clientSecret"],
  },
  "/tenant/oauth-config/update": {
    fields: [
      "tenantId",
      "providerId",
      "clientSecret",
      "scopes",
      "redirectURI",
      "options",
      "enabled",
    ],
    required: ["providerId"],
  },
  "/tenant/oauth-config/check": {
    fields: [
      "tenantId",
      "providerId",
      "clientId",
      "clientSecret",
      "scopes",
      "redirectURI",
      "options",
    ],
    required: ["providerId"],
  },
  "/tenant/oauth-config/delete": { fields: ["tenantId", "providerId"], required: ["providerId"] },
};

describe("openAPI", () => {
  it.each(Object.entries(BODIES))("describes the body of %s", async (path, body) => {
    const operation = (await describedPaths())[path]?.post;
    expect(operation?.description).toEqual(expect.stringMatching(/\w/));
    const schema = operation?.requestBody?.content["application/json"]?.schema;
    expect(Object.keys(schema?.properties ?? {})).toEqual(expect.arrayContaining(body.fields));
    expect(schema?.required ?? []).toEqual(expect.arrayContaining(body.required));
    expect(schema?.required ?? []).not.toContain(
      body.required.includes("tenantId") ? "" : "tenantId",
    );
  });

  it.each([
    ["/tenant/get", ["id", "slug"]],
    ["/tenant/list", ["limit", "offset", "search", "sort"]],
    ["/tenant/oauth-config/list", ["tenantId"]],
    ["/tenant/sign-in-methods", ["tenantId"]],
  ])("describes the query of %s", async (path, names) => {
    const operation = (await describedPaths())[path]?.get;
    expect(operation?.description).toEqual(expect.stringMatching(/\w/));
    const parameters = operation?.parameters ?? [];
    expect(parameters.map(({ name }) => name)).toEqual(expect.arrayContaining(names));
  });
});
