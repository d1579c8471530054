import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import { type CsvRecord, CsvRecords, MAX_RECORD_BYTES } from '../../src/features/user-migrations/csv.rules.ts';

const NAMES = ['wallet_address', 'email', 'name', '', '', '', '', '', ''];
const isBlank = (text: string) => !/[^\p{White_Space}\ufeff]/u.test(text);

/** The records of a file that comes in parts of these sizes, over and over. */
function recordsOf(file: string | Buffer, { columns, parts = [1 << 20] }: { columns?: number; parts?: number[] } = {}) {
  const records = new CsvRecords(0, columns === undefined ? undefined : NAMES.slice(0, columns));
  const taken: CsvRecord[] = [];
  const take = () => {
    for (let record = records.nextRecord(); record; record = records.nextRecord()) taken.push(record);
  };
  for (const part of partsOf(Buffer.from(file), parts)) {
    records.push(part);
    take();
  }
  records.end();
  take();
  return { taken, position: records.position };
}

function* partsOf(bytes: Buffer, sizes: readonly number[]): Generator<Buffer> {
  for (let from = 0, at = 0; from < bytes.length; at += 1) {
    const size = sizes[at % sizes.length] ?? 1;
    yield bytes.subarray(from, from + size);
    from += size;
  }
}

const texts = fc.string({ unit: fc.constantFrom('a', 'ß', '€', '😀', ',', '"', '\n', '\r', ' ', ';'), maxLength: 12 });
const partSizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 4 });
const quoted = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
const soup = fc
  .array(fc.constantFrom('"', '""', 'a', ',', '\n', '\r\n', '\r', 'b'.repeat(9_000), 'é'), { maxLength: 60 })
  .map((pieces) => Buffer.from(pieces.join('')));

const RUNS = inject('isThorough') ? 100 : 25;

describe('the records of a CSV file', () => {
  it('D7-09 D7-12: the records of a well-formed file are those of csv-parse without blank ones, in any chunks', () => {
    const files = fc.record({
      rows: fc.array(fc.array(texts, { minLength: 1, maxLength: 5 }), { maxLength: 20 }),
      lineEnd: fc.constantFrom('\n', '\r\n'),
      hasLastEnd: fc.boolean(),
      parts: partSizes,
    });
    fc.assert(
      fc.property(files, ({ rows, lineEnd, hasLastEnd, parts }) => {
        const file = rows.map((row) => row.map(quoted).join(',')).join(lineEnd) + (hasLastEnd ? lineEnd : '');
        const expected: string[][] = parse(file, {
          relax_column_count: true,
          skip_empty_lines: true,
          record_delimiter: ['\r\n', '\n'],
        });
        const { taken, position } = recordsOf(file, { parts });
        const filled = expected.filter((fields) => !fields.every(isBlank));
        expect(taken).toEqual(filled.map((fields) => ({ fields })));
        expect(position).toBe(Buffer.byteLength(file));
      }),
      { numRuns: 3 * RUNS },
    );
  });

  it('D7-09: the records of any bytes are the same in any chunks, and skip() counts as many', () => {
    fc.assert(
      fc.property(soup, partSizes, fc.integer({ min: 1, max: 3 }), (file, parts, columns) => {
        const { taken, position } = recordsOf(file, { columns });
        expect(recordsOf(file, { columns, parts: parts.map((size) => size * 100) })).toEqual({ taken, position });
        const counted = new CsvRecords(0, NAMES.slice(0, columns));
        counted.push(file);
        counted.end();
        let count = 0;
        while (counted.skip()) count += 1;
        expect(count).toBe(taken.length);
      }),
      { numRuns: 2 * RUNS },
    );
  });

  it('D7-09: a record can be read again from the end of the previous one, for any bytes', () => {
    fc.assert(
      fc.property(soup, (file) => {
        const { taken } = recordsOf(file, { columns: 2 });
        const first = new CsvRecords(0, NAMES.slice(0, 2));
        first.push(file);
        first.end();
        for (let at = 0; at < taken.length; at += 1) {
          const rest = new CsvRecords(first.position, NAMES.slice(0, 2));
          rest.push(file.subarray(first.position));
          rest.end();
          expect(rest.nextRecord()).toEqual(taken[at]);
          first.skip();
        }
      }),
      { numRuns: RUNS },
    );
  });

  it('D7-09: after any bytes, lines without quotes are separate records', () => {
    const lines = Array.from({ length: 20 }, (_, at) => ['good', String(at)]);
    fc.assert(
      fc.property(soup, (before) => {
        const file = Buffer.concat([before, Buffer.from(`\n${lines.map((line) => line.join(',')).join('\n')}`)]);
        const { taken } = recordsOf(file, { columns: 2 });
        expect(taken.slice(-20)).toEqual(lines.map((fields) => ({ fields })));
      }),
      { numRuns: 2 * RUNS },
    );
  });

  it.each([
    ['a quote that is never closed', '"a,b', 'has a quote that is not closed'],
    ['a quote inside of a field', 'a"b,c', 'has a quote inside an unquoted field'],
    ['text after a closing quote', '"a"b,c', 'has a quote inside an unquoted field'],
    ['a field too few over two lines', '"a', 'has 1 field, not 2', 'b"'],
    ['a field too many', 'a,b,c', 'has 3 fields, not 2'],
    ['too many fields over two lines', '"a', 'has 4 fields, not 2', 'b",c,d,"e"'],
    ['bytes that are not UTF-8', Buffer.from([0xff, 0x2c, 0x61]), 'is not UTF-8'],
    ['a line that is too long', `${'x'.repeat(MAX_RECORD_BYTES - 1)},y`, 'has more than 16 KiB'],
    [
      'a quote that is closed too late',
      `"${'x'.repeat(9_000)}`,
      'has a quote that is not closed',
      `${'y'.repeat(9_000)}",z`,
    ],
  ])('D7-09: with %s, only the affected line is a fault', (_name, line, fault, next = 'n,1') => {
    const file = Buffer.concat([Buffer.from('p,0\n'), Buffer.from(line), Buffer.from(`\n${next}\nq,2\n`)]);
    for (const parts of [[1 << 20], [1], [997]]) {
      const { taken } = recordsOf(file, { columns: 2, parts });
      expect(taken[0]).toEqual({ fields: ['p', '0'] });
      expect(taken[1]).toEqual({ fault: expect.stringContaining(fault) });
      if (next === 'n,1') expect(taken[2]).toEqual({ fields: ['n', '1'] });
      expect(taken.at(-1)).toEqual({ fields: ['q', '2'] });
    }
  });

  it('D7-09: a record may have 16 KiB, also with quotes and CRLF, and not one byte more', () => {
    const at = (bytes: number) => 'x'.repeat(bytes);
    const fits = recordsOf(`${at(MAX_RECORD_BYTES)}\n"${at(MAX_RECORD_BYTES - 2)}"\r\n"${at(MAX_RECORD_BYTES - 2)}"`);
    expect(fits.taken.map((record) => 'fields' in record)).toEqual([true, true, true]);
    const over = recordsOf(
      `${at(MAX_RECORD_BYTES + 1)}\n"${at(MAX_RECORD_BYTES - 1)}"\r\n"a\n${at(MAX_RECORD_BYTES - 3)}"`,
    );
    expect(over.taken.map((record) => 'fault' in record)).toEqual([true, true, true, true]);
  });

  it('D7-09: a file of unclosed quotes has about as many faults as lines', () => {
    const lines = 40_000;
    const kinds = ['"open\n', '"open""\n', '"",x"\n', '",","\n', 'x,"\n', `${'"'.repeat(33)}\n`, '"\n"",""\n'];
    for (const kind of kinds) {
      const { taken } = recordsOf(kind.repeat(lines), { columns: 9, parts: [256 * 1024] });
      expect(taken.length).toBeGreaterThanOrEqual(lines / 2);
    }
  });
});
