const FINAL_TEXT = 0x81;
/** What the second byte says where the length stands behind it: in two bytes, or in eight. */
const IN_TWO_BYTES = 126;
const IN_EIGHT_BYTES = 127;
const MAX_SHORT = 125;
const MAX_TWO_BYTES = 0xffff;

/** A whole text message of a server: one frame without a mask, its payload the pieces in their order (RFC 6455 section 5.2). */
export function textFrame(pieces: readonly Buffer[]): Buffer {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const frame = Buffer.allocUnsafe(headBytes(length) + length);
  frame[0] = FINAL_TEXT;
  let at = writeLength(frame, length);
  for (const piece of pieces) at += piece.copy(frame, at);
  return frame;
}

function headBytes(length: number): number {
  if (length <= MAX_SHORT) return 2;
  return length <= MAX_TWO_BYTES ? 4 : 10;
}

/** @returns where the payload begins. */
function writeLength(frame: Buffer, length: number): number {
  if (length <= MAX_SHORT) return frame.writeUInt8(length, 1);
  if (length <= MAX_TWO_BYTES) {
    frame[1] = IN_TWO_BYTES;
    return frame.writeUInt16BE(length, 2);
  }
  frame[1] = IN_EIGHT_BYTES;
  return frame.writeBigUInt64BE(BigInt(length), 2);
}
