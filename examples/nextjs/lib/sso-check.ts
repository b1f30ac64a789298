import type { X509Certificate } from "node:crypto";
import {
  DiscoveryError,
  discoverOIDCConfig,
  type OIDCConfig,
  type SAMLConfig,
} from "@better-auth/sso";
import { PROVIDER_HOSTS } from "./auth";
import { explain } from "./errors";
import { formatTime } from "./format";
import { readSaml, SamlProblem } from "./saml";
import { addressesFor } from "./sso";

/** One thing that was looked at. Null where it could not be seen from here. */
export interface Finding {
  subject: string;
  ok: boolean | null;
  message: string;
}

const TIMEOUT = 5_000;

/** As `trustedProviderHosts` are read: without encryption on this machine only. */
function isAtProviderHost(url: string): boolean {
  const { host, hostname, protocol } = new URL(url);
  if (protocol !== "https:" && hostname !== "localhost") return false;
  return PROVIDER_HOSTS.some((known) =>
    known.startsWith("*.") ? host.endsWith(known.slice(1)) : host === known,
  );
}

/** What can be known of an identity provider without somebody who signs in. */
export async function checkOIDC(
  providerId: string,
  config: OIDCConfig,
  origins: string[],
): Promise<Finding[]> {
  const discovery = await find("discovery", () => describesItself(config));
  if (!discovery.ok) return [discovery];
  const redirectURIs = addressesFor("oidc", providerId, origins).map(({ value }) => value);
  return [
    discovery,
    ...(await Promise.all([
      find("keys", () => showsKeys(config)),
      find("client", () => knowsClient(config, redirectURIs[0] ?? "")),
      ...redirectURIs.map((uri) => find(uri, () => leadsBack(config, uri))),
    ])),
  ];
}

/** Nobody but people's browsers goes to a SAML provider, so there is less to see from here. */
export function checkSAML({ entryPoint, cert, idpMetadata }: SAMLConfig): Finding[] {
  const { metadata, entityID = "" } = idpMetadata ?? {};
  try {
    const { certificates, ...found } = readSaml(
      metadata ? { metadata } : { entityID, entryPoint, certificate: [cert ?? ""].flat().join() },
    );
    return [
      { subject: "address", ...good(`People are sent to ${found.entryPoint}`) },
      ...certificates.map((certificate) => ({
        subject: certificate.fingerprint256,
        ...isInForce(certificate),
      })),
      {
        subject: "sign-in",
        ...unseen("Whether it knows this application is seen when somebody signs in"),
      },
    ];
  } catch (error) {
    if (!(error instanceof SamlProblem)) throw error;
    return [{ subject: "metadata", ...bad(withoutStop(error.message)) }];
  }
}

function isInForce({ validFrom, validTo }: X509Certificate): Verdict {
  const [from, to, now] = [new Date(validFrom), new Date(validTo), new Date()];
  if (to < now) return bad(`The certificate has expired: ${formatTime(to)}`);
  if (from > now) return bad(`The certificate is not valid yet: ${formatTime(from)}`);
  return good(`The certificate is valid until ${formatTime(to)}`);
}

async function describesItself(config: OIDCConfig): Promise<Verdict> {
  try {
    const found = await discoverOIDCConfig({
      issuer: config.issuer,
      discoveryEndpoint: config.discoveryEndpoint,
      timeout: TIMEOUT,
      isTrustedOrigin: isAtProviderHost,
    });
    const names = ["authorizationEndpoint", "tokenEndpoint", "jwksEndpoint"] as const;
    return names.every((name) => found[name] === config[name])
      ? good("The provider describes itself")
      : bad("The provider has moved since it was set up. Please set it up again");
  } catch (error) {
    if (!(error instanceof DiscoveryError)) throw error;
    return bad(withoutStop(explain(error)));
  }
}

async function showsKeys({ jwksEndpoint = "" }: OIDCConfig): Promise<Verdict> {
  const answer = await ask(jwksEndpoint);
  const { keys } = (await answer.json()) as { keys?: unknown[] };
  return keys?.length
    ? good("Its keys are there")
    : bad("It shows no keys to check its tokens with");
}

/** Hands in a made-up code: if only the code is refused, the client was accepted. */
async function knowsClient(config: OIDCConfig, redirectURI: string): Promise<Verdict> {
  const { clientId, clientSecret = "", tokenEndpoint = "" } = config;
  const isBasic = config.tokenEndpointAuthentication !== "client_secret_post";
  const credentials = [clientId, clientSecret].map(encodeURIComponent).join(":");
  const answer = await ask(tokenEndpoint, {
    method: "POST",
    headers: isBasic ? { authorization: `Basic ${btoa(credentials)}` } : {},
    body: new URLSearchParams({
      ...{ grant_type: "authorization_code", code: "-", redirect_uri: redirectURI },
      code_verifier: "-".repeat(43),
      ...(!isBasic && { client_id: clientId, client_secret: clientSecret }),
    }),
  });
  const { error } = (await answer.json().catch(() => ({}))) as { error?: string };
  if (error === "invalid_grant") return good("It accepts the client ID and secret");
  if (answer.status === 401 || error === "invalid_client") {
    return bad("It does not accept the client ID and secret");
  }
  return unseen("Whether it accepts the client ID and secret is seen when somebody signs in");
}

/**
 * Goes where people would be sent to, with `prompt=none`: nobody is signed in there, which is an
 * error, and providers send errors back to registered addresses only.
 */
async function leadsBack(config: OIDCConfig, redirectURI: string): Promise<Verdict> {
  const address = new URL(config.authorizationEndpoint ?? "");
  const asked = {
    ...{ client_id: config.clientId, redirect_uri: redirectURI, response_type: "code" },
    ...{ scope: "openid", state: "check", prompt: "none" },
    ...{ code_challenge: "-".repeat(43), code_challenge_method: "S256" },
  };
  for (const [name, value] of Object.entries(asked)) address.searchParams.set(name, value);
  const { headers } = await ask(address.href);
  return headers.get("location")?.startsWith(redirectURI)
    ? good(`It knows ${redirectURI}`)
    : unseen(`Whether it knows ${redirectURI} cannot be seen from here: look at its settings`);
}

/** Follows no redirect: it might lead into the network. */
const ask = (address: string, init: RequestInit = {}) =>
  fetch(address, { ...init, redirect: "manual", signal: AbortSignal.timeout(TIMEOUT) });

type Verdict = Omit<Finding, "subject">;

async function find(subject: string, look: () => Promise<Verdict>): Promise<Finding> {
  return { subject, ...(await look().catch(() => bad("The provider cannot be reached"))) };
}

const good = (message: string): Verdict => ({ ok: true, message });
const bad = (message: string): Verdict => ({ ok: false, message });
const unseen = (message: string): Verdict => ({ ok: null, message });

const withoutStop = (sentence: string) => sentence.replace(/\.$/, "");
