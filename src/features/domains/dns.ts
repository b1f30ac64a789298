import type { AuthContext } from "better-auth";
import { within } from "../../core/utils";
import { domainError } from "./errors";
import type { ResolvedDomainOptions, ResolveTxt } from "./options";

/** Node's codes for "there is no such name" and "it has no TXT record". */
const GONE = ["ENOTFOUND", "ENODATA"];

/**
 * Returns whether DNS has the record. Throws if DNS fails or does not answer in time, because a
 * failure must not end a verification.
 */
export async function hasRecord(
  { logger }: AuthContext,
  { resolveTxt, timeout }: ResolvedDomainOptions,
  { name, value }: { name: string; value: string },
): Promise<boolean> {
  try {
    const records = await within(timeout * 1000, resolveTxt(name));
    // A long record comes in parts, which are joined before the comparison.
    return records.some((record) => [record].flat().join("") === value);
  } catch (error) {
    const { code, message } = Object(error) as { code?: string; message?: string };
    if (GONE.includes(String(code))) return false;
    logger.warn(`The TXT record of ${name} could not be looked up: ${code ?? message}`);
    throw domainError("DOMAIN_LOOKUP_FAILED");
  }
}

/** Returns a lookup that uses Node's resolver, or DNS over HTTPS in other runtimes. */
export const askDNS =
  (timeout: number): ResolveTxt =>
  async (name) => {
    // Not imported, because bundlers for the edge refuse modules of Node.
    const dns = globalThis.process?.getBuiltinModule?.("node:dns/promises");
    return dns ? dns.resolveTxt(name) : resolveByHTTPS(name, timeout);
  };

const SERVER = "https://cloudflare-dns.com/dns-query";
const TXT = 16;

type DNSAnswer = { Status: number; Answer?: { type: number; data: string }[] };

async function resolveByHTTPS(name: string, timeout: number): Promise<string[]> {
  const url = `${SERVER}?type=TXT&name=${encodeURIComponent(name)}`;
  const signal = AbortSignal.timeout(timeout * 1000);
  const response = await fetch(url, { headers: { accept: "application/dns-json" }, signal });
  if (!response.ok) throw new Error(`${SERVER} answered ${response.status}`);
  const { Status, Answer = [] } = (await response.json()) as DNSAnswer;
  // 0 is success, 3 is "no such name", any other status is a failure.
  if (Status && Status !== 3) throw new Error(`${SERVER} answered with status ${Status}`);
  // The text is in quotes. A long text consists of several quoted parts.
  const texts = Answer.filter(({ type }) => type === TXT);
  return texts.map(({ data }) => data.replaceAll(/" +"/g, "").replaceAll(/^"|"$/g, ""));
}
