import { createHash } from "node:crypto";

/** A page of the identity provider. It runs no script, except for the one that it is given. */
export function page(response, status, title, content, { script } = {}) {
  const hash = script && createHash("sha256").update(script).digest("base64");
  const policy = ["default-src 'none'", "img-src data:", "style-src 'unsafe-inline'"];
  response
    .writeHead(status, {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": [...policy, ...(hash ? [`script-src 'sha256-${hash}'`] : [])].join(
        "; ",
      ),
    })
    .end(
      `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(title)}</title>
       <meta name="viewport" content="width=device-width, initial-scale=1">
       <link rel="icon" href="data:,"><style>${STYLE}</style></head>
       <body><main><p class="brand">Stand-in identity provider</p><h1>${escapeHtml(title)}</h1>
       ${content.join("\n")}</main>${script ? `<script>${script}</script>` : ""}</body></html>`,
    );
}

export function json(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

export function escapeHtml(text) {
  return String(text).replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

/** What a form brings along without showing it. */
export const hiddenFields = (values) =>
  Object.entries(values).map(
    ([name, value]) =>
      `<input type="hidden" name="${escapeHtml(name)}" value="${escapeHtml(value)}">`,
  );

/** Whoever comes may say who they are. */
export const whoAreYou = (people, likely) => [
  "<fieldset><legend>Who are you?</legend>",
  ...people.map(
    ({ username, name, email }) =>
      `<label class="choice"><input type="radio" name="username" value="${username}"
        ${username === (likely ?? people[0]).username ? "checked" : ""}><span>${name}<small>${email}</small></span></label>`,
  ),
  "</fieldset>",
];

/** Something to copy into the settings of an application. */
export const fact = (name, value) =>
  `<div><dt>${name}</dt><dd><code>${escapeHtml(value)}</code></dd></div>`;

const STYLE = `
  :root { color-scheme: light dark; font: 16px/1.5 Inter, system-ui, sans-serif;
    --ink: light-dark(#1f2328, #f0f0f3); --quiet: light-dark(#59606b, #a5abb6);
    --line: light-dark(#d5d9e0, #3a3f48); --orange: light-dark(#b8400a, #ffa06b); }
  * { box-sizing: border-box; }
  body { margin: 0; min-height: 100dvh; display: grid; place-items: center; padding: 1.5rem;
    color: var(--ink); background: light-dark(#f6f7f9, #131519); overflow-wrap: anywhere; }
  main { width: min(100%, 27rem); padding: 2rem; border: 1px solid var(--line);
    border-radius: 1rem; background: light-dark(#fff, #1b1e24); }
  .brand { margin: 0 0 1.25rem; font-weight: 600; color: var(--orange); }
  h1 { margin: 0 0 .5rem; font-size: 1.5rem; line-height: 1.2; }
  p { color: var(--quiet); } strong, code { color: var(--ink); }
  fieldset { border: 0; margin: 1.5rem 0; padding: 0; display: grid; gap: .5rem; }
  legend { padding: 0; margin-bottom: .5rem; font-weight: 600; }
  .choice { display: flex; align-items: center; gap: .75rem; padding: .65rem .9rem;
    border: 1px solid var(--line); border-radius: .6rem; cursor: pointer; }
  .choice:has(:checked) { border-color: var(--orange); }
  .choice small { display: block; color: var(--quiet); }
  input { accent-color: var(--orange); width: 1.1rem; height: 1.1rem; }
  .row { display: flex; gap: .6rem; }
  button { flex: 1; min-height: 2.75rem; font: inherit; font-weight: 600; border-radius: .6rem;
    border: 1px solid var(--orange); cursor: pointer; background: var(--orange);
    color: light-dark(#fff, #131519); }
  button.quiet { background: none; border-color: var(--line); color: inherit; }
  :focus-visible { outline: 3px solid light-dark(#1f6feb, #79b0ff); outline-offset: 2px; }
  table { width: 100%; border-collapse: collapse; font-size: .9rem; }
  caption { text-align: left; font-weight: 600; padding: .5rem 0; }
  th, td { text-align: left; padding: .4rem 0; border-top: 1px solid var(--line); }
  h2 { margin: 2rem 0 .25rem; font-size: 1.125rem; }
  dl { margin: 0; font-size: .9rem; } dt { color: var(--quiet); } dd { margin: 0; }
  dl > div { padding: .4rem 0; border-top: 1px solid var(--line); }
  .to-copy { display: block; margin-top: .75rem; font-size: .9rem; color: var(--quiet); }
  textarea { display: block; width: 100%; height: 8rem; margin-top: .25rem; padding: .6rem .75rem;
    font: .8rem/1.5 ui-monospace, monospace; color: var(--ink); resize: vertical; white-space: pre;
    background: light-dark(#f6f7f9, #131519); border: 1px solid var(--line);
    border-radius: .6rem; }
`;
