import { databases } from "./servers";

/** Says what this run does not cover. */
export default function setup() {
  const skipped = [
    ...(databases.includes("postgres")
      ? []
      : ["PostgreSQL, MariaDB (npm run test:servers runs them, on 127.0.0.1)"]),
    ...(process.env.TEST_PACKAGE
      ? []
      : ["the packed package in fresh projects (npm run test:package)"]),
  ];
  if (skipped.length) console.log(`\nSkipped: ${skipped.join("; ")}.\n`);
}
