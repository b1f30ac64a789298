import { onTestFinished } from "vitest";

/** A request as it left this process. */
export interface Sent {
  method: string;
  url: string;
  headers: Headers;
  body: string;
  redirect: RequestRedirect;
  signal: AbortSignal;
}

/** Answers a request, or passes it on to where it was meant to go. */
type Answering = (sent: Sent, passOn: () => Promise<Response>) => Response | Promise<Response>;

/** The answer of a machine that is not there. */
export const unreachable = (): never => {
  throw new TypeError("fetch failed");
};

/** Stands in for the whole network until the test is over, and keeps what is sent to it. */
export function fakeNetwork(answer: Answering = unreachable): Sent[] {
  const sent: Sent[] = [];
  const original = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    const { method, url, headers, redirect, signal } = request;
    const body = await request.clone().text();
    const entry = { method, url, headers, body, redirect, signal };
    sent.push(entry);
    return answer(entry, () => original(request));
  };
  onTestFinished(() => {
    globalThis.fetch = original;
  });
  return sent;
}
