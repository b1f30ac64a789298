import { parseJSON } from "../../core/utils";
import type { Repeatable } from "../findings";
import type { Subject } from "../instance/subject";
import type { GivenInput } from "../options";
import { namedAtHome, type Place } from "./places";

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  data: unknown;
  location: string | null;
}

type Sending = Pick<GivenInput, "query" | "headers"> & { body?: object | undefined };

/** A request in plain values, as reports show it. */
export function buildRequest(
  url: URL,
  method: string,
  { query = {}, body, headers = {} }: Sending,
  cookies: Map<string, string>,
): Repeatable {
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  // Captchas are solved: the stand-in for the network says so.
  const all = { origin: url.origin, "x-captcha-response": "solved", ...headers };
  const sent = new Headers();
  for (const [name, value] of Object.entries(all)) sent.set(name, value);
  if (cookies.size) sent.set("cookie", cookieHeader(cookies));
  if (body) sent.set("content-type", "application/json");
  const data = body && { body: JSON.stringify(body) };
  return { method, url: url.href, headers: Object.fromEntries(sent), ...data };
}

/** Sends requests to the instance from one place, and keeps cookies as a browser does. */
export class Browser {
  readonly cookies = new Map<string, string>();

  constructor(
    readonly subject: Subject,
    readonly place: Place,
  ) {}

  get(path: string, query: Record<string, string> = {}): Promise<Answer> {
    return this.send("GET", path, { query });
  }

  post(path: string, body: object = {}, headers = {}): Promise<Answer> {
    return this.send("POST", path, { body, headers });
  }

  async send(method: string, path: string, sending: Sending): Promise<Answer> {
    const { place, subject } = this;
    const address = path.startsWith("http") ? path : place.origin + subject.basePath + path;
    const named = namedAtHome(place, subject.tenantOptions);
    const sent = { ...sending, headers: { ...place.headers, ...named, ...sending.headers } };
    const { url, ...init } = buildRequest(new URL(address), method, sent, this.cookies);
    const answer = await read(await subject.handler(new Request(url, init)));
    keepCookies(this.cookies, answer.headers);
    return answer;
  }
}

export const cookieHeader = (cookies: Iterable<[string, string]>) =>
  [...cookies].map((pair) => pair.join("=")).join("; ");

export async function read(response: Response): Promise<Answer> {
  const text = await response.text();
  const { status, headers } = response;
  return { status, headers, text, data: parseJSON(text), location: headers.get("location") };
}

function keepCookies(cookies: Map<string, string>, headers: Headers): void {
  for (const line of headers.getSetCookie()) {
    const [pair = "", ...attributes] = line.split(";");
    const name = pair.slice(0, pair.indexOf("=")).trim();
    const value = pair.slice(pair.indexOf("=") + 1);
    const isOver = attributes.some((attribute) => /^\s*max-age=0\s*$/i.test(attribute));
    if (isOver || value === "") cookies.delete(name);
    else cookies.set(name, value);
  }
}

/** The data of a successful response, or an error that says what failed. */
export async function ok<T>(sent: Promise<Answer>): Promise<T> {
  const { status, data, text, location } = await sent;
  if (status === 200 || (status < 400 && !location?.includes("error="))) return data as T;
  throw new Error(`${status} ${text.slice(0, 200) || location || ""}`);
}
