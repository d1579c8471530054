import { CsvRecords } from './csv-records.rules.ts';
import { columnsOf } from './csv-rows.rules.ts';
import { FILE_CHUNK_BYTES } from './migration-file-store.ts';

const BYTE_ORDER_MARK = Buffer.from('\ufeff');

/** What is known of a file once all of it has come. */
export interface FileFacts {
  columns: readonly string[];
  /** Where the first data row begins. */
  position: number;
  rows: number;
}

/** Reads a file while it passes: its columns, and how many data rows it has. */
export class FileReading {
  #records: CsvRecords | undefined;
  #columns: readonly string[] | undefined;
  #position = 0;
  #rows = 0;

  /** Takes the next chunk. @throws RefusalError `invalid` for a header that does not hold. */
  push(chunk: Buffer): void {
    if (this.#records) this.#records.push(chunk);
    else this.#records = recordsFrom(chunk);
    this.#read(this.#records);
    // More than any header has.
    if (!this.#columns && chunk.length === FILE_CHUNK_BYTES) columnsOf({ fault: 'has more than 16 KiB' });
  }

  /** What the file has. @throws RefusalError `invalid` for a header that does not hold, or none. */
  end(): FileFacts {
    this.#records?.end();
    if (this.#records) this.#read(this.#records);
    return { columns: this.#columns ?? columnsOf(undefined), position: this.#position, rows: this.#rows };
  }

  #read(records: CsvRecords): void {
    if (!this.#columns) {
      const header = records.take();
      if (!header) return;
      this.#columns = columnsOf(header);
      records.columns = this.#columns.length;
      this.#position = records.position;
    }
    while (records.skip()) this.#rows += 1;
  }
}

/** The records of a file that begins with this chunk, behind a byte order mark. */
function recordsFrom(chunk: Buffer): CsvRecords {
  const start = chunk.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK.length : 0;
  const records = new CsvRecords(start);
  records.push(chunk.subarray(start));
  return records;
}

/** The bytes of a stream in chunks of one size, the last one as it comes. It holds one of them. */
export async function* chunksOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let chunk = Buffer.allocUnsafeSlow(FILE_CHUNK_BYTES);
  let filled = 0;
  for await (const part of source) {
    for (let from = 0; from < part.length; ) {
      const piece = part.subarray(from, from + FILE_CHUNK_BYTES - filled);
      chunk.set(piece, filled);
      filled += piece.length;
      from += piece.length;
      if (filled < FILE_CHUNK_BYTES) continue;
      yield chunk;
      chunk = Buffer.allocUnsafeSlow(FILE_CHUNK_BYTES);
      filled = 0;
    }
  }
  if (filled > 0) yield chunk.subarray(0, filled);
}
