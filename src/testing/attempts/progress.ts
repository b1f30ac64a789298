/** A line that says how far it is, where there is a terminal to show it. */
export function createProgress(wanted: boolean, total: number) {
  const stream = wanted ? globalThis.process?.stderr : undefined;
  const write = (text: string) => {
    if (stream?.isTTY) stream.write(`\r\u001b[K${text}`);
  };
  let done = 0;
  return {
    step: (name: string) => write(`checkIsolation: ${++done} of ${total} endpoints, ${name}`),
    end: () => write(""),
  };
}
