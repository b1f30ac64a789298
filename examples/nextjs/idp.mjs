import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

const demo = JSON.parse(readFileSync(new URL("demo.json", import.meta.url), "utf8"));
const people = demo.peopleAtTheIdentityProvider;

/** Everybody who may use this provider: each tenant, and one client for a tenant of your own. */
const clients = new Map([
  ...demo.tenants.map(({ name, client }) => [client.id, { name, secret: client.secret }]),
  [demo.spareClient.id, { name: "Your own tenant", secret: demo.spareClient.secret }],
]);

/**
 * A stand-in for an identity provider, with GitLab's paths, so that social sign-in works without a
 * network. It is as strict as a real one: it knows its clients and where they may lead back to, and
 * a code is good once, with the redirect URI and the verifier that it was made for. Only the people
 * are easy: whoever comes may say who they are.
 */
export function startIdentityProvider(port, appUrl) {
  const origin = `http://localhost:${port}`;
  const grants = new Map();
  const tokens = new Map();

  const routes = {
    "GET /": home,
    "GET /oauth/authorize": askForConsent,
    "POST /oauth/authorize": giveConsent,
    "POST /oauth/token": exchangeCode,
    "GET /api/v4/user": describeUser,
    "GET /.well-known/openid-configuration": describeProvider,
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
    if (client && isOurs(redirect_uri) && response_type === "code") return client;
    page(response, 400, "Invalid request", [
      "<p>The application or its redirect URI is not registered here.</p>",
    ]);
  }

  function isOurs(redirectURI) {
    if (!URL.canParse(redirectURI)) return false;
    const { protocol, hostname, port, pathname } = new URL(redirectURI);
    return (
      protocol === appUrl.protocol &&
      port === appUrl.port &&
      (hostname === appUrl.hostname || hostname.endsWith(`.${appUrl.hostname}`)) &&
      pathname === "/api/auth/tenant/callback/gitlab"
    );
  }

  function askForConsent(response, params) {
    const client = knownRequest(response, params);
    if (!client) return;
    // Nobody is ever signed in here, and must not be asked to.
    if (params.prompt === "none") return sendBack(response, params, { error: "login_required" });
    const hidden = Object.entries(params).map(
      ([name, value]) =>
        `<input type="hidden" name="${escapeHtml(name)}" value="${escapeHtml(value)}">`,
    );
    page(response, 200, `Sign in to ${client.name}`, [
      `<p>The application <strong>${escapeHtml(params.client_id)}</strong> would like to know your
       name and your email address.</p>`,
      '<form method="post" action="/oauth/authorize">',
      ...hidden,
      "<fieldset><legend>Who are you?</legend>",
      ...people.map(
        ({ username, name, email }, index) =>
          `<label class="choice"><input type="radio" name="username" value="${username}"
            ${index === 0 ? "checked" : ""}><span>${name}<small>${email}</small></span></label>`,
      ),
      "</fieldset>",
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

  function exchangeCode(response, params) {
    const { client_id, client_secret, code, redirect_uri, code_verifier = "" } = params;
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
    json(response, 200, { access_token: token, token_type: "Bearer", expires_in: 7200 });
  }

  function describeUser(response, _params, { headers }) {
    const person = tokens.get(headers.authorization?.replace("Bearer ", ""));
    if (!person) return json(response, 401, { error: "invalid_token" });
    json(response, 200, { ...person, email_verified: true, state: "active" });
  }

  function describeProvider(response) {
    json(response, 200, {
      issuer: origin,
      authorization_endpoint: `${origin}/oauth/authorize`,
      token_endpoint: `${origin}/oauth/token`,
      userinfo_endpoint: `${origin}/api/v4/user`,
    });
  }

  /** What a developer would find in the settings of a real one. */
  function home(response) {
    page(response, 200, "Stand-in identity provider", [
      "<p>It plays a self-hosted GitLab, so that social sign-in can be tried without a network.",
      `In an OAuth config, choose <strong>GitLab</strong> and the URL <code>${origin}</code>.</p>`,
      "<table><caption>Applications</caption><thead><tr><th scope=col>Client ID<th scope=col>",
      "Client secret</tr></thead><tbody>",
      ...[...clients].map(
        ([id, { secret }]) => `<tr><td><code>${id}</code><td><code>${secret}</code></tr>`,
      ),
      "</tbody></table>",
    ]);
  }

  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "localhost", () => resolve(server));
  });
}

function json(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function page(response, status, title, content) {
  response
    .writeHead(status, {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": "default-src 'none'; img-src data:; style-src 'unsafe-inline'",
    })
    .end(
      `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(title)}</title>
       <meta name="viewport" content="width=device-width, initial-scale=1">
       <link rel="icon" href="data:,"><style>${STYLE}</style></head>
       <body><main><p class="brand">Stand-in GitLab</p><h1>${escapeHtml(title)}</h1>
       ${content.join("\n")}</main></body></html>`,
    );
}

function escapeHtml(text) {
  return String(text).replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

const STYLE = `
  :root { color-scheme: light dark; font: 16px/1.5 Inter, system-ui, sans-serif;
    --ink: light-dark(#1f2328, #f0f0f3); --quiet: light-dark(#59606b, #a5abb6);
    --line: light-dark(#d5d9e0, #3a3f48); --orange: light-dark(#b8400a, #ffa06b); }
  * { box-sizing: border-box; }
  body { margin: 0; min-height: 100dvh; display: grid; place-items: center; padding: 1.5rem;
    color: var(--ink); background: light-dark(#f6f7f9, #131519); }
  main { width: min(100%, 27rem); padding: 2rem; border: 1px solid var(--line);
    border-radius: 1rem; background: light-dark(#fff, #1b1e24); }
  .brand { margin: 0 0 1.25rem; font-weight: 600; color: var(--orange); }
  h1 { margin: 0 0 .5rem; font-size: 1.5rem; line-height: 1.2; }
  p { color: var(--quiet); } strong, code { color: var(--ink); }
  fieldset { border: 0; margin: 1.5rem 0; padding: 0; display: grid; gap: .5rem; }
  legend { padding: 0; margin-bottom: .5rem; font-weight: 600; }
  .choice { display: flex; align-items: center; gap: .75rem; padding: .65rem .9rem;
    border: 1px solid var(--line); border-radius: .6rem; cursor: pointer; }
  .choice:has(:checked) { border-color: var(--orange); }
  .choice small { display: block; color: var(--quiet); }
  input { accent-color: var(--orange); width: 1.1rem; height: 1.1rem; }
  .row { display: flex; gap: .6rem; }
  button { flex: 1; min-height: 2.75rem; font: inherit; font-weight: 600; border-radius: .6rem;
    border: 1px solid var(--orange); cursor: pointer; background: var(--orange);
    color: light-dark(#fff, #131519); }
  button.quiet { background: none; border-color: var(--line); color: inherit; }
  :focus-visible { outline: 3px solid light-dark(#1f6feb, #79b0ff); outline-offset: 2px; }
  table { width: 100%; border-collapse: collapse; font-size: .9rem; }
  caption { text-align: left; font-weight: 600; padding: .5rem 0; }
  th, td { text-align: left; padding: .4rem 0; border-top: 1px solid var(--line); }
`;
