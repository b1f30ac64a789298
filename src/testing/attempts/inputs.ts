import {
  alternatives,
  type Endpoint,
  fieldsOf,
  type JsonSchema,
  requiredOf,
} from "../instance/endpoints";
import type { GivenInput, Values } from "../options";
import { PASSWORD } from "../sides/people";
import { directoryInput } from "./directory-input";

export interface Input {
  path: string;
  query: Record<string, string>;
  body: Values | undefined;
  headers: Record<string, string>;
  /** Required values that nobody gave, and that only the application could know: an id, a code. */
  invented: string[];
}

/**
 * A request to the endpoint with the given values wherever it takes them, and with something
 * plausible in whatever else it asks for. The bare one leaves out all that may be left out.
 */
export function inputFor(endpoint: Endpoint, given: Values, own?: GivenInput, bare = false): Input {
  const values: Values = { ...given, ...specific(endpoint, given), ...own?.params };
  const invented = new Set<string>();
  const invent = (name: string, schema: JsonSchema) => {
    const value = madeUp(name, schema);
    if (!saysSomething(name, value)) invented.add(name);
    return isText(name) && value === UNKNOWN ? (values.freeText ?? value) : value;
  };
  const fill = (schema: JsonSchema | undefined, over: Values = {}) => {
    const required = new Set(requiredOf(schema));
    const entries = Object.entries(fieldsOf(schema)).flatMap(([name, field]) => {
      if (name in over) return [];
      const wanted = required.has(name) || (!bare && values[name] !== undefined);
      return wanted ? [[name, values[name] ?? invent(name, field)] as const] : [];
    });
    return { ...Object.fromEntries(entries), ...over };
  };
  const path = endpoint.path.replaceAll(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(String(values[name] ?? invent(name, {}))),
  );
  const body =
    endpoint.method === "GET"
      ? undefined
      : { ...fill(endpoint.body, { ...freeForm(endpoint, values), ...own?.body }) };
  // What the body says need not be said twice.
  const query = Object.entries(fill(endpoint.query, own?.query))
    .filter(([name]) => !(body && name in body))
    .map(([name, value]) => [name, String(value)]);
  const headers = own?.headers ?? {};
  return { path, query: Object.fromEntries(query), body, headers, invented: [...invented] };
}

/** A field for free text, which an application stores and shows again. */
const isText = (name: string) =>
  /text|title|name|message|content|note|comment|description|label|subject/i.test(name);

const saysSomething = (name: string, value: unknown) =>
  name in PLAUSIBLE || isText(name) || !(value === UNKNOWN || /(^id|Id|ID)s?$/.test(name));

/** The fields whose name says too little. */
function specific({ path, method }: Endpoint, things: Values): Values {
  const { userId, secondUserId, passkeyId, keyId, invitationId, tenantId, id } = things;
  if (path.startsWith("/passkey/")) return { id: passkeyId };
  if (path.startsWith("/api-key/")) return { id: keyId, ...SPECIFIC[path] };
  if (path.startsWith("/sso/") || path === "/sign-in/sso") return ofProvider(path, things);
  if (path.startsWith("/scim/")) return directoryInput(method, path, things);
  if (path === "/organization/get-invitation") return { id: invitationId };
  if (path === "/organization/cancel-invitation") return { invitationId: things.ownInvitationId };
  if (path.startsWith("/tenant/invitation/")) {
    return { id: things.tenantInvitationId, ...fresh(path, things) };
  }
  if (path === "/tenant/get") return { id: tenantId ?? "unknown" };
  // Nobody may ban, remove or impersonate themselves.
  if (/^\/admin\/(get|list|revoke|set|update)/.test(path)) return { id: userId, ...ADMIN[path] };
  if (path.startsWith("/admin/")) return { userId: secondUserId, ...fresh(path, things) };
  return { ...(id === undefined ? {} : { id }), ...fresh(path, things), ...SPECIFIC[path] };
}

function ofProvider(path: string, things: Values): Values {
  if (path === "/sso/register") return things.newSsoProvider as Values;
  if (path.startsWith("/sso/saml2/")) return { providerId: things.samlProviderId };
  if (path.includes("domain")) return { providerId: things.unverifiedProviderId };
  return { providerId: things.ssoProviderId, domain: things.ssoDomain };
}

const fresh = (path: string, { freshEmail, freshName }: Values): Values =>
  /\/sign-up\/|\/create-user$|\/invite-member$|\/invitation\/create$/.test(path)
    ? { email: freshEmail, username: freshName, ...ROLE_OF_NEW[path] }
    : {};

const ROLE_OF_NEW: Record<string, Values> = {
  "/admin/create-user": { role: "user" },
  "/organization/invite-member": { role: "member" },
};

const CHANGED = "changed by the kit";

const ADMIN: Record<string, Values> = {
  "/admin/update-user": { data: { name: CHANGED } },
  "/admin/set-role": { role: "admin" },
};

const SPECIFIC: Record<string, Values> = {
  "/api-key/update": { name: CHANGED },
  "/tenant/update": { name: CHANGED },
  "/tenant/oauth-config/update": { scopes: [CHANGED] },
  "/organization/update-team": { data: { name: CHANGED } },
  "/organization/update": { data: { name: CHANGED } },
  "/organization/update-member-role": { role: "admin" },
};

/** Bodies that say more than their schema. */
function freeForm({ path, freeForm }: Endpoint, { newPerson }: Values): Values {
  if (/\/(sign-up\/email|invitation\/accept)$/.test(path)) return newPerson as Values;
  if (path === "/update-session") return { userAgent: CHANGED };
  if (path === "/update-user") return { name: CHANGED, image: "https://example.com/changed.png" };
  // There are two forms of it, and only the newer one is good for anything.
  if (path.endsWith("/has-permission")) {
    const permissions = path.startsWith("/admin")
      ? { user: ["list"] }
      : { organization: ["update"] };
    return { permissions, permission: undefined };
  }
  return freeForm ? { name: CHANGED } : {};
}

const UNKNOWN = "unknown";

const PLAUSIBLE: Values = {
  password: PASSWORD,
  currentPassword: PASSWORD,
  newPassword: "another good password 4712",
  name: CHANGED,
  slug: "a-new-slug-of-the-kit",
  email: "nobody-yet@example.com",
  newEmail: "changed-by-the-kit@example.com",
  role: "admin",
  provider: "google",
  providerId: "google",
  clientId: "changed-by-the-kit",
  clientSecret: "changed-by-the-kit",
  callbackURL: "/welcome",
  redirectTo: "/welcome",
  otp: "000000",
  code: "000000",
  message: "example.com wants you to sign in",
  permission: { user: ["list"] },
  permissions: { user: ["list"] },
  response: { id: "unknown", response: {} },
  grant_type: "urn:ietf:params:oauth:grant-type:device_code",
};

function madeUp(name: string, schema: JsonSchema): unknown {
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  if (name in PLAUSIBLE) return PLAUSIBLE[name];
  const [first] = alternatives(schema);
  if (first) return madeUp(name, first);
  const [type] = [schema.type].flat();
  if (type === "boolean") return true;
  if (type === "number" || type === "integer") return schema.minimum ?? 1;
  if (type === "array") return schema.items ? [madeUp("", schema.items)] : [];
  if (type === "object") {
    const fields = Object.entries(schema.properties ?? {});
    return Object.fromEntries(fields.map(([key, field]) => [key, madeUp(key, field)]));
  }
  if (schema.format === "email") return "nobody-yet@example.com";
  if (schema.format === "uri") return "https://example.com/";
  return UNKNOWN;
}
