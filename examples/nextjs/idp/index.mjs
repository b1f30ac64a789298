import { createHash, randomBytes, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { keptKeys } from "./keys.mjs";
import { escapeHtml, fact, hiddenFields, json, page, whoAreYou } from "./page.mjs";
import { speakSaml } from "./saml.mjs";

const demo = JSON.parse(readFileSync(new URL("../demo.json", import.meta.url), "utf8"));
const people = demo.peopleAtTheIdentityProvider;

/** Everybody who may use this provider: each tenant, and one client for a tenant of your own. */
const clients = new Map([
  ...demo.tenants.map(({ name, client }) => [client.id, { name, secret: client.secret }]),
  [demo.spareClient.id, { name: "Your own tenant", secret: demo.spareClient.secret }],
]);

/** Where the application takes people back, after GitLab and after single sign-on. */
const CALLBACKS = /^\/api\/auth\/(tenant\/callback\/gitlab|sso\/callback\/[\w-]+)$/;

/**
 * A stand-in for an identity provider, so that social sign-in and single sign-on work without a
 * network. It speaks OAuth with GitLab's paths, OpenID Connect and SAML. It is as strict as a real
 * one: it knows its clients and where they may lead back to, and a code is good once, with the
 * redirect URI and the verifier that it was made for. Only the people are easy: whoever comes may
 * say who they are.
 */
export function startIdentityProvider({ port, appUrl, directory }) {
  const origin = `http://localhost:${port}`;
  const keys = keptKeys(directory);
  const grants = new Map();
  const tokens = new Map();
  const saml = speakSaml({ origin, keys, people, isOurs });

  const routes = {
    "GET /": home,
    "GET /oauth/authorize": askForConsent,
    "POST /oauth/authorize": giveConsent,
    "POST /oauth/token": exchangeCode,
    "GET /oauth/userinfo": describeClaims,
    "GET /oauth/discovery/keys": showKeys,
    "GET /api/v4/user": describeUser,
    "GET /.well-known/openid-configuration": describeProvider,
    ...saml.routes,
  };

  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", origin);
    const route = routes[`${request.method} ${pathname}`];
    if (!route) return json(response, 404, { error: "not_found" });
    let body = "";
    for await (const chunk of request) {
      body += chunk;
      if (body.length > 100_000) return json(response, 413, { error: "too_large" });
    }
    route(response, Object.fromEntries([...searchParams, ...new URLSearchParams(body)]), request);
  });

  /** A redirect URI that was not registered is never followed, not even with an error. */
  function knownRequest(response, { client_id, redirect_uri = "", response_type }) {
    const client = clients.get(client_id);
    if (client && isOurs(redirect_uri, CALLBACKS) && response_type === "code") return client;
    page(response, 400, "Invalid request", [
      "<p>The application or its redirect URI is not registered here.</p>",
    ]);
  }

  function isOurs(address, paths) {
    if (!URL.canParse(address)) return false;
    const { protocol, hostname, port, pathname } = new URL(address);
    return (
      protocol === appUrl.protocol &&
      port === appUrl.port &&
      (hostname === appUrl.hostname || hostname.endsWith(`.${appUrl.hostname}`)) &&
      paths.test(pathname)
    );
  }

  function askForConsent(response, params) {
    const client = knownRequest(response, params);
    if (!client) return;
    // Nobody is ever signed in here, and must not be asked to.
    if (params.prompt === "none") return sendBack(response, params, { error: "login_required" });
    page(response, 200, `Sign in to ${client.name}`, [
      `<p>The application <strong>${escapeHtml(params.client_id)}</strong> would like to know your
       name and your email address.</p>`,
      '<form method="post" action="/oauth/authorize">',
      ...hiddenFields(params),
      ...whoAreYou(
        people,
        people.find(({ email }) => email === params.login_hint),
      ),
      '<div class="row"><button name="decision" value="allow">Allow</button>',
      '<button class="quiet" name="decision" value="deny">Deny</button></div></form>',
    ]);
  }

  function giveConsent(response, params) {
    if (!knownRequest(response, params)) return;
    const { username, decision, ...request } = params;
    const person = people.find((known) => known.username === username);
    if (decision !== "allow" || !person) {
      return sendBack(response, request, { error: "access_denied" });
    }
    const code = randomBytes(16).toString("hex");
    grants.set(code, { person, request });
    sendBack(response, request, { code });
  }

  function sendBack(response, { redirect_uri, state = "" }, answer) {
    const back = new URL(redirect_uri);
    for (const [name, value] of Object.entries({ state, ...answer })) {
      back.searchParams.set(name, value);
    }
    response.writeHead(303, { location: back.href }).end();
  }

  function exchangeCode(response, params, { headers }) {
    const { code, redirect_uri, code_verifier = "" } = params;
    const [client_id, client_secret] = credentialsOf(params, headers);
    if (!client_secret || clients.get(client_id)?.secret !== client_secret) {
      return json(response, 401, { error: "invalid_client" });
    }
    const grant = grants.get(code);
    grants.delete(code);
    const challenge = createHash("sha256").update(code_verifier).digest("base64url");
    if (
      grant?.request.client_id !== client_id ||
      grant.request.redirect_uri !== redirect_uri ||
      grant.request.code_challenge !== challenge
    ) {
      return json(response, 400, { error: "invalid_grant" });
    }
    const token = randomBytes(16).toString("hex");
    tokens.set(token, grant.person);
    const isOpenID = grant.request.scope?.split(" ").includes("openid");
    json(response, 200, {
      ...{ access_token: token, token_type: "Bearer", expires_in: 7200 },
      ...(isOpenID && { id_token: idToken(grant) }),
    });
  }

  /** Who the person is, signed, for this client alone. */
  function idToken({ person, request }) {
    const now = Math.floor(Date.now() / 1000);
    const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const content = [
      { alg: "RS256", typ: "JWT", kid: KEY_ID },
      {
        ...{ iss: origin, aud: request.client_id, iat: now, exp: now + 300 },
        ...(request.nonce && { nonce: request.nonce }),
        ...claimsOf(person),
      },
    ]
      .map(encode)
      .join(".");
    return `${content}.${sign("sha256", Buffer.from(content), keys.privateKey).toString("base64url")}`;
  }

  function showKeys(response) {
    const key = keys.publicKey.export({ format: "jwk" });
    json(response, 200, { keys: [{ ...key, kid: KEY_ID, use: "sig", alg: "RS256" }] });
  }

  function describeUser(response, _params, { headers }) {
    const person = personOf(headers);
    if (!person) return json(response, 401, { error: "invalid_token" });
    json(response, 200, { ...person, email_verified: true, state: "active" });
  }

  function describeClaims(response, _params, { headers }) {
    const person = personOf(headers);
    if (!person) return json(response, 401, { error: "invalid_token" });
    json(response, 200, claimsOf(person));
  }

  const personOf = ({ authorization }) => tokens.get(authorization?.replace("Bearer ", ""));

  function describeProvider(response) {
    json(response, 200, {
      issuer: origin,
      authorization_endpoint: `${origin}/oauth/authorize`,
      token_endpoint: `${origin}/oauth/token`,
      token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"],
      userinfo_endpoint: `${origin}/oauth/userinfo`,
      jwks_uri: `${origin}/oauth/discovery/keys`,
      response_types_supported: ["code"],
      subject_types_supported: ["public"],
      id_token_signing_alg_values_supported: ["RS256"],
    });
  }

  /** What an administrator would find in the settings of a real one. */
  function home(response) {
    page(response, 200, "What to enter where", [
      "<p>Sign-in at the tenants can be tried without a network: this one asks for no password,",
      "and whoever comes may say who they are.</p>",
      "<h2>Social sign-in</h2>",
      `<p>It plays a self-hosted GitLab. Choose <strong>GitLab</strong> and the URL
       <code>${origin}</code>.</p>`,
      "<h2>Single sign-on with OpenID Connect</h2>",
      `<dl>${fact("Issuer", origin)}</dl>`,
      "<h2>Applications, for both</h2>",
      "<table><thead><tr><th scope=col>Client ID<th scope=col>Client secret</tr></thead><tbody>",
      ...[...clients].map(
        ([id, { secret }]) => `<tr><td><code>${id}</code><td><code>${secret}</code></tr>`,
      ),
      "</tbody></table>",
      ...saml.settings,
    ]);
  }

  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "localhost", () => resolve(server));
  });
}

const KEY_ID = "stand-in";

const claimsOf = ({ id, name, email }) => ({
  ...{ sub: String(id), name, email, email_verified: true },
});

/** A client says who it is in the body, or with HTTP's basic authentication. */
function credentialsOf({ client_id, client_secret }, { authorization = "" }) {
  if (!authorization.startsWith("Basic ")) return [client_id, client_secret];
  const [id, secret] = Buffer.from(authorization.slice(6), "base64").toString().split(":");
  return [id, secret].map((part) => decodeURIComponent(part ?? ""));
}
