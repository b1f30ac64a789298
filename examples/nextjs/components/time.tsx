"use client";

import { useSyncExternalStore } from "react";
import { formatLocalTime, formatTime } from "@/lib/format";

/** The server does not know the reader's time zone: it writes UTC, and the browser the time there. */
export function Time({ date }: { date: Date | string }) {
  const text = useSyncExternalStore(
    neverChanges,
    () => formatLocalTime(date),
    () => formatTime(date),
  );
  // Browsers may write UTC with other spaces than the server.
  return (
    <time dateTime={new Date(date).toISOString()} suppressHydrationWarning>
      {text}
    </time>
  );
}

const neverChanges = () => () => {};
