import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import { copyOf, fieldsOf, recordOf, recordsOf } from '../../console/views/csv.ts';
import { CsvRecords, MAX_RECORD_BYTES } from '../../src/features/user-migrations/csv.rules.ts';

const [RUNS, MEGABYTES] = inject('isThorough') ? [400, 100] : [100, 10];
const BYTE_ORDER_MARK = Buffer.from('\ufeff');

/** The records that the console cuts out of a file, which it reads in slices of this size. */
async function cutOut(file: Buffer, wanted: Iterable<number>, sliceBytes?: number) {
  const indexes = new Set(wanted);
  const { copy, rows } = await copyOf(
    new File([new Uint8Array(file)], 'users.csv'),
    (index) => indexes.has(index),
    sliceBytes,
  );
  return { rows, cut: Buffer.from(await copy.arrayBuffer()) };
}

/** Matches the empty lines and blank records before a record. */
const BLANK_RECORDS = /^(?:(?:[^\S\n]*|"\s*")(?:,(?:[^\S\n]*|"\s*"))*\r{0,2}\n)*/;

/** The bytes of the header and of each record, as the server's reader finds them, without the empty lines before. */
function recordBytes(file: Buffer): Buffer[] {
  const start = file.subarray(0, 3).equals(BYTE_ORDER_MARK) ? 3 : 0;
  const records = new CsvRecords(start);
  records.push(file.subarray(start));
  records.end();
  const found: Buffer[] = [];
  for (let from = start, record = records.nextRecord(); record; record = records.nextRecord()) {
    records.columns ??= 'fields' in record ? record.fields : undefined;
    const bytes = file.subarray(from, records.position);
    const [blank = ''] = BLANK_RECORDS.exec(bytes.toString()) ?? [];
    found.push(bytes.subarray(Buffer.byteLength(blank)));
    from = records.position;
  }
  return found;
}

const texts = fc.string({ unit: fc.constantFrom('a', 'ß', '😀', ',', '"', '\n', '\r', ' '), maxLength: 12 });
const field = fc
  .record({ text: texts, isQuoted: fc.boolean() })
  .map(({ text, isQuoted }) => (isQuoted || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text));
const lineEnds = fc.constantFrom('\n', '\r\n', '\n\n', '\r\n\r\n', '\n\r\n');
/** Lines that the server's reader finds fault with, or may, and the greatest lengths beside those that are too long. */
const bad = fc.constantFrom(
  'a"b,c',
  '"a"b,c',
  '"open,x',
  'one',
  'one,two,three',
  '"a\nb",c,d',
  '"a\nb"',
  ',,',
  '"",',
  ' \t',
  '"\n",",",',
  '"\n"',
  '\u00a0,\ufeff\u3000',
  '"""",',
  'x'.repeat(MAX_RECORD_BYTES),
  'x'.repeat(MAX_RECORD_BYTES + 1),
  `"${'x\n'.repeat(MAX_RECORD_BYTES / 2)}",z`,
  'x'.repeat(3 * MAX_RECORD_BYTES),
);
const good = fc.tuple(field, field).map((fields) => fields.join(','));
const files = fc
  .record({
    mark: fc.constantFrom('', '\ufeff'),
    before: fc.constantFrom('', '\n', '\r\n\n'),
    header: fc.constantFrom('wallet_address,email', '"wallet_address","email"'),
    lines: fc.array(fc.tuple(lineEnds, fc.oneof({ weight: 4, arbitrary: good }, bad)), { maxLength: 25 }),
    last: fc.constantFrom('', '\n', '\r\n', '\r', '\n\n'),
  })
  .map(({ mark, before, header, lines, last }) =>
    Buffer.from(mark + before + header + lines.map((line) => line.join('')).join('') + last),
  );
const soup = fc
  .array(fc.constantFrom('"', '""', 'a', ',', '\n', '\r\n', '\r', 'b'.repeat(9_000), 'é', '\xff', ' ', '\t'), {
    maxLength: 60,
  })
  .map((pieces) => Buffer.from(`a,b\n${pieces.join('')}`, 'latin1'));

describe('the records that the console cuts out of a CSV file', () => {
  it('D7-12: are byte for byte the records that the server counts, for any file and any slice size', async () => {
    const wish = fc.array(fc.boolean(), { minLength: 90, maxLength: 90 });
    const slices = fc.oneof(fc.integer({ min: 3, max: 60 }), fc.integer({ min: 1_000, max: 40_000 }));
    await fc.assert(
      fc.asyncProperty(fc.oneof(files, soup), wish, slices, async (file, isWanted, sliceBytes) => {
        const [header = Buffer.alloc(0), ...rows] = recordBytes(file);
        const before = file.subarray(0, file.indexOf(header));
        const wanted = [...rows.keys()].map((at) => at + 1).filter((index) => isWanted[index % isWanted.length]);
        const expected = Buffer.concat([before, header, ...wanted.map((index) => rows[index - 1] ?? header)]);
        const size = file.length > 5_000 ? Math.max(sliceBytes, 500) : sliceBytes;
        expect(await cutOut(file, wanted, size)).toEqual({ rows: rows.length, cut: expected });
      }),
      { numRuns: RUNS, examples: [[Buffer.from('a,b\n""\r\r\n""\r\r'), Array(90).fill(true), 60]] },
    );
  });

  it('are, for a well-formed file, the records that another parser finds', async () => {
    const wellFormed = fc.record({
      rows: fc.array(fc.tuple(field, field), { maxLength: 20 }),
      lineEnd: fc.constantFrom('\n', '\r\n'),
    });
    await fc.assert(
      fc.asyncProperty(wellFormed, fc.integer({ min: 3, max: 200 }), async ({ rows, lineEnd }, sliceBytes) => {
        const text = [['a', 'b'], ...rows].map((row) => row.join(',')).join(lineEnd);
        const options = { bom: true, skip_empty_lines: true, record_delimiter: ['\r\n', '\n'] };
        const [header, ...records] = parse(text, options) as string[][];
        const filled = records.filter((fields) => fields.some((text) => text.trim() !== ''));
        const odd = filled.filter((_, at) => at % 2 === 0);
        const { cut, rows: count } = await cutOut(Buffer.from(text), [1, 3, 5, 7, 9, 11, 13, 15, 17, 19], sliceBytes);
        expect(count).toBe(filled.length);
        expect(parse(cut, options)).toEqual([header, ...odd]);
      }),
      { numRuns: RUNS / 2 },
    );
  });

  it('are empty for an empty file, and only the header for a file without rows', async () => {
    expect(await cutOut(Buffer.alloc(0), [1])).toEqual({ rows: 0, cut: Buffer.alloc(0) });
    const header = Buffer.from('\ufeffwallet_address,email');
    expect(await cutOut(header, [1])).toEqual({ rows: 0, cut: header });
  });

  it(`are found in a file of ${MEGABYTES} MB slice by slice`, async () => {
    const lines = Array.from({ length: 20_000 }, (_, at) => `0x${at},"user ${at}",${'x'.repeat(26)}\n`).join('');
    const parts = Array.from({ length: (MEGABYTES * 1024 ** 2) / lines.length }, () => lines);
    const file = new Blob(['wallet_address,email,name\n', ...parts]);
    const rows = 20_000 * parts.length;
    const found: number[] = [];
    for await (const { index, start, bytes } of recordsOf(file)) {
      if (![0, 1, rows / 2, rows].includes(index)) continue;
      expect(bytes.buffer.byteLength).toBeLessThan(2 * 1024 ** 2);
      found.push(start + bytes.length);
    }
    expect([found.length, found.at(-1)]).toEqual([4, file.size]);
  });

  it('are written as they were read, and replaced where they were corrected', async () => {
    const bytes = (text: string) => new Uint8Array(Buffer.from(text));
    const texts = fc.string({ unit: fc.constantFrom('a', 'ß', ',', '"', '\n', '\r', ' ') });
    fc.assert(
      fc.property(fc.array(texts, { minLength: 1 }), (fields) => {
        expect(fieldsOf(bytes(recordOf(fields)))).toEqual(fields);
      }),
    );
    expect([fieldsOf(bytes('a,"b\n')), fieldsOf(bytes('a,b"c\n')), fieldsOf(new Uint8Array([0xff]))]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    const file = new File(['\ufeffa,b\r\n\r\n1,one\n2,"tw"o\n3,three'], 'users.csv');
    const { copy, rows } = await copyOf(file, (index) => (index === 2 ? recordOf(['2', 't,w,o']) : true), 4);
    expect([rows, await copy.slice(3).text()]).toEqual([3, 'a,b\r\n1,one\n2,"t,w,o"\r\n3,three']);
  });
});
