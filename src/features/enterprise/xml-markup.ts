/*
 * better-auth reads a SAML message with two parsers, which tolerate different mistakes: U+FEFF in a
 * tag is a letter to one of them and a space to the other. Markup that follows this grammar
 * contains no mistakes. It is the grammar of XML (https://www.w3.org/TR/xml/) without declarations
 * and processing instructions, which no SAML message has (SAML core, 1.3.1), and with ASCII names,
 * like the names in SAML. Texts and attribute values may contain all characters.
 */

const SPACE = "[ \\t\\r\\n]";
const NAME = "[A-Za-z_][\\w.-]*(?::[A-Za-z_][\\w.-]*)?";
const VALUE = `"[^"<]*"|'[^'<]*'`;
const ATTRIBUTE = `${SPACE}+(?<name>${NAME})${SPACE}*=${SPACE}*(?<value>${VALUE})`;
const EACH_ATTRIBUTE = new RegExp(ATTRIBUTE, "g");

/** Matches a comment, a CDATA section, a closing tag, or another tag, in linear time. */
const MARKUP = new RegExp(
  [
    "<!--(?:-?[^-])*-->",
    "<!\\[CDATA\\[[^]*?\\]\\]>",
    `</${NAME}${SPACE}*>`,
    `<${NAME}(?<attributes>(?:${ATTRIBUTE})*)${SPACE}*/?>`,
  ].join("|"),
  "y",
);

/** The first line of many XML documents. */
const XML_DECLARATION = new RegExp(`^${SPACE}*<\\?xml(?:${ATTRIBUTE})*${SPACE}*\\?>`);

/** Returns whether all parsers see the same tags, attributes and IDs in this XML. */
export function isUnambiguous(xml: string): boolean {
  const start = XML_DECLARATION.exec(xml)?.[0].length ?? 0;
  for (let at = xml.indexOf("<", start); at >= 0; at = xml.indexOf("<", MARKUP.lastIndex)) {
    MARKUP.lastIndex = at;
    const markup = MARKUP.exec(xml);
    if (!markup || !hasPlainAttributes(markup.groups?.attributes ?? "")) return false;
  }
  return true;
}

/**
 * Returns whether no name occurs twice, and no ID contains a character reference, such as `&#95;`.
 * One parser does not decode references, and reads `x:ID` as `ID`.
 */
function hasPlainAttributes(attributes: string): boolean {
  const names = new Set<string>();
  for (const { groups } of attributes.matchAll(EACH_ATTRIBUTE)) {
    const { name = "", value = "" } = groups ?? {};
    const local = name.startsWith("xmlns:") ? name : name.replace(/^.*:/, "");
    if (names.has(local) || (local === "ID" && value.includes("&"))) return false;
    names.add(local);
  }
  return true;
}
