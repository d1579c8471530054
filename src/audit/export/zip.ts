import { pipeline } from 'node:stream/promises';
import { crc32, createDeflateRaw } from 'node:zlib';

/** The sizes and the checksum stand behind the content (bit 3), where it has been compressed. */
const FLAGS = 0x0008;
const DEFLATED = 8;
const VERSION = 20;
/** 1 January 1980, the first date that the format has. */
const DATE = 0x0021;

/**
 * Yields a ZIP archive (PKWARE's APPNOTE) of files with ASCII names and altogether less than 4 GiB, which it compresses as
 * their contents arrive. Rejects as a content does, which leaves the archive without a directory.
 */
export async function* zipOf(
  files: readonly (readonly [name: string, content: AsyncIterable<Uint8Array>])[],
): AsyncGenerator<Buffer> {
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [name, content] of files) {
    const start = offset;
    let [crc, bytes, zippedBytes] = [0, 0, 0];
    const summed = async function* () {
      for await (const chunk of content) {
        crc = crc32(chunk, crc);
        bytes += chunk.length;
        yield chunk;
      }
    };
    const head = [VERSION, FLAGS, DEFLATED, 0, DATE];
    const label = Buffer.from(name);
    yield Buffer.concat([packed('42222244422', [0x04034b50, ...head, 0, 0, 0, label.length, 0]), label]);
    const deflate = createDeflateRaw();
    // An error of the content ends the iteration below too.
    pipeline(summed, deflate).catch(() => undefined);
    for await (const part of deflate) {
      zippedBytes += part.length;
      yield part;
    }
    const sums = [crc, zippedBytes, bytes];
    yield packed('4444', [0x08074b50, ...sums]);
    const entry = [0x02014b50, VERSION, ...head, ...sums, label.length, 0, 0, 0, 0, 0, start];
    directory.push(packed('42222224442222244', entry), label);
    offset += 30 + label.length + zippedBytes + 16;
  }
  const index = Buffer.concat(directory);
  yield index;
  yield packed('42222442', [0x06054b50, 0, 0, files.length, files.length, index.length, offset, 0]);
}

/** Returns unsigned integers in little-endian order; `sizes` has a digit for each, its size in bytes. */
function packed(sizes: string, values: readonly number[]): Buffer {
  return Buffer.concat(
    values.map((value, index) => {
      const bytes = Buffer.alloc(Number(sizes[index]));
      bytes.writeUIntLE(value, 0, bytes.length);
      return bytes;
    }),
  );
}
