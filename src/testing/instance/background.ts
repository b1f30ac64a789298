import { replace } from "./outbox";
import type { Subject } from "./subject";

/**
 * Answers wait for what the instance does behind them (`advanced.backgroundTasks`): a mail that is
 * on its way, or a row that the next request would be blamed for.
 */
export function waitForBackground(subject: Subject): (() => void)[] {
  const { ctx, handler } = subject;
  const tasks: unknown[] = [];
  let patience = 1_000;

  const noting = (name: "runInBackground" | "runInBackgroundOrAwait") => {
    const run = ctx[name];
    return replace(ctx as unknown as Holder, name, (task: Promise<unknown>) => {
      tasks.push(task);
      return run(task);
    });
  };

  async function settle(): Promise<void> {
    // A task may start others.
    while (tasks.length) await Promise.allSettled(tasks.splice(0));
  }

  async function wait(): Promise<void> {
    if (!tasks.length) return;
    const isSettled = await withinTime(settle(), patience);
    // A task that never ends holds up a few requests, not all of them.
    if (!isSettled) patience /= 2;
  }

  const patiently = async (request: Request) => {
    const response = await handler(request);
    await wait();
    return response;
  };
  return [
    noting("runInBackground"),
    noting("runInBackgroundOrAwait"),
    replace(subject as unknown as Holder, "handler", patiently),
  ];
}

type Holder = Record<string, unknown>;

async function withinTime(done: Promise<void>, milliseconds: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, milliseconds, false);
  });
  const inTime = await Promise.race([done.then(() => true), late]);
  clearTimeout(timer);
  return inTime;
}
