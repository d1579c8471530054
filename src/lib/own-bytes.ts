/**
 * A text in UTF-8, in memory of its own. What `Buffer.from` gives shares 64 KiB with whatever else was made just then, and
 * keeps all of that for as long as it is kept itself: for what is held, not for what is written and forgotten.
 */
export function ownBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}
