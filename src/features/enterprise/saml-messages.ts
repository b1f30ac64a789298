import type { HookEndpointContext } from "better-auth";
import * as z from "zod";
import { decodeComponent } from "../../core/utils";
import { badRequest, writesProvider } from "./sso-providers";
import { inflateXML, refuseLargeXML, refuseLongEncoding } from "./xml-limits";
import { isUnambiguous } from "./xml-markup";

/*
 * Checks XML before `sso()` reads it, and before a provider's row is read: messages of identity
 * providers, which anyone can send, and metadata, which administrators of tenants send.
 */

const MESSAGES = ["SAMLResponse", "SAMLRequest"];

type Values = Record<string, unknown> | undefined;

/** Refuses XML that takes too long to read, or that two parsers may read differently. */
export async function refuseUnsafeXML(ctx: HookEndpointContext): Promise<undefined> {
  if (ctx.path?.startsWith("/sso/saml2/")) await refuseUnsafeMessages(ctx);
  if (writesProvider(ctx)) refuseLargeMetadata(ctx);
}

async function refuseUnsafeMessages({ body, query }: HookEndpointContext): Promise<void> {
  for (const name of MESSAGES) {
    // Values that are not strings, such as a repeated parameter, need no check: better-auth's
    // schema refuses them.
    const [posted, queried] = [(body as Values)?.[name], (query as Values)?.[name]];
    if (typeof posted === "string") refuseUnsafeMessage(decodeText(decodeBase64(posted)));
    if (typeof queried === "string") refuseUnsafeMessage(await inflateQueried(queried));
  }
}

/**
 * Decodes a message in a query, which is deflated (SAML bindings, 3.4.4.1). The value may be
 * percent-encoded twice: this decodes it once more, as `sso()` does, so that both read the same
 * message.
 */
async function inflateQueried(encoded: string): Promise<string> {
  refuseLongEncoding(encoded);
  if (encoded === "") return "";
  const xml = await inflateXML(decodeBase64(decodeComponent(encoded)));
  if (xml === undefined) throw badEncoding();
  return xml;
}

const badEncoding = () =>
  badRequest("SAML_INVALID_ENCODING", "Invalid base64-encoded SAML response");

/** Decodes base64. Refuses invalid characters, which `sso()` and samlify would skip differently. */
function decodeBase64(encoded: string) {
  refuseLongEncoding(encoded);
  const plain = encoded.replaceAll(/\s/g, "");
  if (!/^[\w+/-]*={0,2}$/.test(plain)) throw badEncoding();
  try {
    return z.util.base64urlToUint8Array(plain.replaceAll("+", "-").replaceAll("/", "_")) as Bytes;
  } catch {
    throw badEncoding();
  }
}

type Bytes = Uint8Array<ArrayBuffer>;

const decodeText = (bytes: Bytes) => new TextDecoder().decode(bytes);

/**
 * Refuses a message that better-auth's two parsers may read differently. One checks the signature.
 * The other reads the recipient, and the ID that makes an assertion valid once. Where they
 * disagree, an attacker could replay a response or use one for another recipient, with a provider
 * of `defaultSSO` also in other tenants.
 */
function refuseUnsafeMessage(xml: string): void {
  refuseLargeXML(xml);
  if (!isUnambiguous(xml)) throw ambiguous();
}

const ambiguous = () =>
  badRequest(
    "SAML_INVALID_XML",
    "A SAML message must be well-formed XML with ASCII names, without a DOCTYPE, processing instructions, or character references in an ID",
  );

/** Refuses metadata that takes too long to read: `sso()` reads it again at every sign-in. */
function refuseLargeMetadata({ body }: HookEndpointContext): void {
  const { idpMetadata, spMetadata } = Object((body as Values)?.samlConfig) as Record<
    string,
    Values
  >;
  for (const { metadata } of [Object(idpMetadata), Object(spMetadata)]) {
    if (typeof metadata === "string") refuseLargeXML(metadata);
  }
}
