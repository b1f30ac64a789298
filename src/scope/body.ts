import { returnHere } from "./back";

/*
 * An answer whose body is made while it is read: by then its request is over, and what its source
 * asks for would be the platform's. Loaded with the first such answer.
 */

/** The same answer, whose body is made in the running request, whoever reads it. */
export function readHere<A extends Response | ReadableStream>(answer: A): A;
export function readHere(answer: Response | ReadableStream): Response | ReadableStream {
  const body = answer instanceof ReadableStream ? answer : answer.body;
  // Where somebody reads it already, nobody else can.
  if (!body || body.locked) return answer;
  return body === answer ? streamHere(body) : new Response(streamHere(body), answer as Response);
}

function streamHere(source: ReadableStream): ReadableStream {
  const here = returnHere();
  const type = isOfBytes(source) ? "bytes" : undefined;
  const reader = source.getReader();
  const pull = async (controller: ReadableStreamController<unknown>) => {
    const { done, value } = await here(() => reader.read());
    if (!done) return controller.enqueue(value);
    controller.close();
    // Whoever reads bytes into a buffer of their own gets it back.
    if ("byobRequest" in controller) controller.byobRequest?.respond(0);
  };
  const cancel = (reason: unknown) => here(() => reader.cancel(reason));
  // Nothing is read ahead: the source has its own idea of that.
  return new ReadableStream({ type, pull, cancel } as UnderlyingSource, { highWaterMark: 0 });
}

function isOfBytes(source: ReadableStream): boolean {
  try {
    source.getReader({ mode: "byob" }).releaseLock();
    return true;
  } catch {
    return false;
  }
}
