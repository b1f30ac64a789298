import { databases } from "./servers";

/** Says what this run does not cover. */
export default function setup() {
  if (databases.includes("postgres")) return;
  console.log(
    "\nRunning on SQLite only. Skipped: PostgreSQL, MariaDB (npm run test:servers runs them, on 127.0.0.1).\n",
  );
}
