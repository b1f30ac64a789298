import { enterpriseError } from "./errors";

/*
 * The XML libraries that `sso()` uses take quadratic time for many sibling elements, before they
 * check a signature: an anonymous request of 78 KB would stop the process for a minute. So these
 * limits are checked first, in one pass over the text. A response that lists 150 groups has about
 * 200 elements.
 */

const MAX_BYTES = 256 * 1024;
const MAX_ELEMENTS = 1000;
const MAX_ATTRIBUTES = 1000;
const MAX_DEPTH = 50;

/**
 * Limits for signatures. The libraries run all transforms of all references before they verify a
 * signature, and each transform may read and write the whole message. A signed response with a
 * signed assertion has two signatures, two references and four transforms.
 */
const MAX_OF_SIGNATURES = new Map([
  ["Signature", 4],
  ["Reference", 4],
  ["Transform", 8],
]);

/**
 * Limit for a response with an encrypted assertion, whose elements cannot be counted here. Anyone
 * can encrypt one with the public key in the application's metadata, and the libraries decrypt it
 * before they check a signature. 150 encrypted groups take about 25 KB.
 */
const MAX_ENCRYPTED_BYTES = 40 * 1024;

/**
 * The most characters of an encoded message. Base64 needs a third more than the bytes, and identity
 * providers may add line breaks.
 */
const MAX_ENCODED = 2 * MAX_BYTES;

const tooLarge = () => enterpriseError("XML_TOO_LARGE");

export function refuseLongEncoding(encoded: string): void {
  if (encoded.length > MAX_ENCODED) throw tooLarge();
}

/** Refuses XML that the libraries would take too long to read. */
export function refuseLargeXML(xml: string): void {
  const most = xml.includes("EncryptedAssertion") ? MAX_ENCRYPTED_BYTES : MAX_BYTES;
  if (xml.length > most || countElements(xml) > MAX_ELEMENTS) throw tooLarge();
  const { attributes, depth } = measureMarkup(xml);
  if (attributes > MAX_ATTRIBUTES || depth > MAX_DEPTH) throw tooLarge();
  if (hasManySignatures(xml)) throw tooLarge();
}

/** Matches a tag with one of these names. Some parsers accept unusual spaces in its prefix. */
const SIGNATURE_PART = /<(?:[^ \t\r\n<>/:]*:)*(Signature|Reference|Transform)(?![\w.-])/g;

/** Returns whether there are too many parts of signatures, also inside comments and quotes. */
function hasManySignatures(xml: string): boolean {
  const counts = new Map<string, number>();
  for (const [, name = ""] of xml.matchAll(SIGNATURE_PART)) {
    const count = (counts.get(name) ?? 0) + 1;
    if (count > (MAX_OF_SIGNATURES.get(name) ?? 0)) return true;
    counts.set(name, count);
  }
  return false;
}

/**
 * Counts everything that begins with "<" and is not a closing tag, also inside comments, sections
 * and quotes: parsers may disagree about where those end.
 */
function countElements(xml: string): number {
  let count = 0;
  for (let at = xml.indexOf("<"); at >= 0; at = xml.indexOf("<", at + 1)) {
    if (xml[at + 1] !== "/") count += 1;
  }
  return count;
}

/** Markup without tags inside: how it begins, and how it ends. */
const SECTIONS = [
  ["<!--", "-->"],
  ["<![CDATA[", "]]>"],
  ["<?", "?>"],
] as const;

function measureMarkup(xml: string) {
  const found = { attributes: 0, depth: 0 };
  let depth = 0;
  let at = xml.indexOf("<");
  while (at >= 0) {
    const section = SECTIONS.find(([start]) => xml.startsWith(start, at));
    if (section) {
      const [start, end] = section;
      const closes = xml.indexOf(end, at + start.length);
      // Tags after the start of an unclosed section count: a parser may read them.
      at = xml.indexOf("<", closes < 0 ? at + 1 : closes);
      continue;
    }
    const tag = readTag(xml, at);
    found.attributes += tag.attributes;
    if (xml[at + 1] === "/") depth -= 1;
    else if (xml[tag.end - 1] !== "/" && xml[at + 1] !== "!") depth += 1;
    found.depth = Math.max(found.depth, depth);
    at = xml.indexOf("<", tag.end);
  }
  return found;
}

const isQuote = (letter: string | undefined) => letter === '"' || letter === "'";

/**
 * Reads a tag up to the ">" that ends it, and skips quoted values. Counts names that follow a
 * space, an equals sign or a quote, so that attributes without quotes or without a value count too.
 */
function readTag(xml: string, start: number) {
  let attributes = 0;
  let end = start + 1;
  for (; end < xml.length && xml[end] !== ">"; end += 1) {
    const letter = xml[end] as string;
    if (isQuote(letter)) {
      const closes = xml.indexOf(letter, end + 1);
      end = closes < 0 ? xml.length : closes;
    } else if (/[^\s=/]/.test(letter) && /[\s="']/.test(xml[end - 1] as string)) {
      attributes += 1;
    }
  }
  return { attributes, end };
}

/** Inflates XML. Throws if it is too large. Returns undefined if the bytes are not deflated. */
export async function inflateXML(deflated: BufferSource): Promise<string | undefined> {
  const inflated = new Blob([deflated])
    .stream()
    .pipeThrough(new DecompressionStream("deflate-raw" as CompressionFormat));
  const decoder = new TextDecoder();
  let xml = "";
  const reader = inflated.getReader();
  for (;;) {
    const part = await reader.read().catch(() => undefined);
    if (!part) return undefined;
    if (part.done) return xml + decoder.decode();
    xml += decoder.decode(part.value, { stream: true });
    if (xml.length <= MAX_BYTES) continue;
    await reader.cancel();
    throw tooLarge();
  }
}
