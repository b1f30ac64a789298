import { parseSetCookieHeader } from "better-auth/cookies";

export interface Answer<T = Record<string, unknown>> {
  status: number;
  headers: Headers;
  /** The parsed body; null when there is none. */
  data: T;
  /** The error code in the body, if there is one. */
  code: string | undefined;
  /** Where a redirect leads to. */
  location: string | null;
}

export interface RequestOptions {
  method?: string;
  body?: unknown;
  query?: Record<string, string>;
  headers?: Record<string, string>;
}

type Handler = (request: Request) => Promise<Response>;

/** Talks to the handler over HTTP requests and keeps cookies, as a browser does. */
export class Browser {
  readonly cookies = new Map<string, string>();

  constructor(
    private readonly handler: Handler,
    private readonly baseURL: string,
    /** Sent with every request: the tenant header, for example. */
    readonly headers: Record<string, string> = {},
  ) {}

  get<T = Record<string, unknown>>(path: string, options: RequestOptions = {}) {
    return this.send<T>(path, { ...options, method: "GET" });
  }

  post<T = Record<string, unknown>>(
    path: string,
    body: unknown = {},
    options: RequestOptions = {},
  ) {
    return this.send<T>(path, { ...options, method: "POST", body });
  }

  async send<T = Record<string, unknown>>(
    path: string,
    options: RequestOptions,
  ): Promise<Answer<T>> {
    const url = new URL(path.startsWith("http") ? path : `${this.baseURL}${path}`);
    for (const [key, value] of Object.entries(options.query ?? {}))
      url.searchParams.set(key, value);
    const headers = new Headers({ origin: url.origin, ...this.headers, ...options.headers });
    if (this.cookies.size && !headers.has("cookie")) headers.set("cookie", this.cookieHeader());
    const { method = "GET", body } = options;
    const init: RequestInit = { method, headers };
    if (body !== undefined) {
      init.body = typeof body === "string" ? body : JSON.stringify(body);
      if (!headers.has("content-type")) headers.set("content-type", "application/json");
    }
    const response = await this.handler(new Request(url, init));
    this.keepCookies(response.headers);
    const data = parse(await response.text());
    return {
      status: response.status,
      headers: response.headers,
      data: data as T,
      code: (data as { code?: string } | null)?.code,
      location: response.headers.get("location"),
    };
  }

  /** A `fetch` for better-auth's client: reaches the handler, with this browser's cookies. */
  readonly fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    request.headers.set("origin", new URL(request.url).origin);
    if (this.cookies.size) request.headers.set("cookie", this.cookieHeader());
    const response = await this.handler(request);
    this.keepCookies(response.headers);
    return response;
  };

  cookieHeader(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  /** Another window of the same person: same cookies from here on, other headers. */
  fork(headers: Record<string, string> = this.headers): Browser {
    const copy = new Browser(this.handler, this.baseURL, headers);
    for (const [name, value] of this.cookies) copy.cookies.set(name, value);
    return copy;
  }

  /** Takes the cookies of an answer that did not come through this browser. */
  keepCookies(headers: Headers) {
    for (const line of headers.getSetCookie()) {
      for (const [name, cookie] of parseSetCookieHeader(line)) {
        const value = line.slice(line.indexOf("=") + 1).split(";")[0] ?? "";
        if (cookie["max-age"] === 0 || value === "") this.cookies.delete(name);
        else this.cookies.set(name, value);
      }
    }
  }
}

function parse(text: string): unknown {
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch {
    return { text };
  }
}
