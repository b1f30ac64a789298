import type { Subject } from "../instance/subject";
import type { Place } from "./places";

/** The answer to a request, read. */
export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  data: unknown;
  location: string | null;
}

interface Sending {
  query?: Record<string, string>;
  body?: object | undefined;
  headers?: Record<string, string>;
}

/** Sends requests to the instance from one place, and keeps cookies as a browser does. */
export class Browser {
  readonly cookies = new Map<string, string>();

  constructor(
    private readonly subject: Subject,
    readonly place: Place,
    private readonly named: Record<string, string>,
  ) {}

  get(path: string, query: Record<string, string> = {}): Promise<Answer> {
    return this.send("GET", path, { query });
  }

  post(path: string, body: object = {}): Promise<Answer> {
    return this.send("POST", path, { body });
  }

  async send(
    method: string,
    path: string,
    { query = {}, body, headers: more = {} }: Sending,
  ): Promise<Answer> {
    const { origin } = this.place;
    const url = new URL(path.startsWith("http") ? path : origin + this.subject.basePath + path);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const headers = new Headers({
      origin,
      ...ALWAYS_SENT,
      ...this.place.headers,
      ...this.named,
      ...more,
    });
    if (this.cookies.size) headers.set("cookie", cookieHeader(this.cookies));
    if (body) headers.set("content-type", "application/json");
    const request = new Request(url, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    const answer = await read(await this.subject.handler(request));
    keepCookies(this.cookies, answer.headers);
    return answer;
  }
}

/** Captchas are solved: the stand-in for the network says so. */
export const ALWAYS_SENT = { "x-captcha-response": "solved" };

export const cookieHeader = (cookies: Iterable<[string, string]>) =>
  [...cookies].map((pair) => pair.join("=")).join("; ");

export async function read(response: Response): Promise<Answer> {
  const text = await response.text();
  const { status, headers } = response;
  return { status, headers, text, data: parse(text), location: headers.get("location") };
}

export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
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

/** What went well, or an error that says what did not. */
export async function ok<T>(sent: Promise<Answer>): Promise<T> {
  const { status, data, text, location } = await sent;
  if (status === 200 || (status < 400 && !location?.includes("error="))) return data as T;
  throw new Error(`${status} ${text.slice(0, 200) || location || ""}`);
}
