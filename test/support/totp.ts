const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

function fromBase32(text: string): Uint8Array<ArrayBuffer> {
  const bits = [...text.replace(/=+$/, "")]
    .map((letter) => ALPHABET.indexOf(letter).toString(2).padStart(5, "0"))
    .join("");
  const bytes = bits.match(/.{8}/g) ?? [];
  return Uint8Array.from(bytes, (byte) => Number.parseInt(byte, 2));
}

/** The code that an authenticator app shows now, for the address in its QR code (RFC 6238). */
export async function totpFrom(uri: string): Promise<string> {
  const { searchParams } = new URL(uri);
  const digits = Number(searchParams.get("digits") ?? 6);
  const period = Number(searchParams.get("period") ?? 30);
  const secret = fromBase32(searchParams.get("secret") ?? "");
  const algorithm = { name: "HMAC", hash: "SHA-1" };
  const key = await crypto.subtle.importKey("raw", secret, algorithm, false, ["sign"]);
  const counter = new DataView(new ArrayBuffer(8));
  counter.setBigUint64(0, BigInt(Math.floor(Date.now() / 1000 / period)));
  const hash = new DataView(await crypto.subtle.sign("HMAC", key, counter.buffer));
  const offset = hash.getUint8(19) & 15;
  const number = hash.getUint32(offset) & 0x7fffffff;
  return String(number % 10 ** digits).padStart(digits, "0");
}
