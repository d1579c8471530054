import { deflateRawSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { MigrationPages } from '../../src/features/user-migrations/migration-files.service.ts';
import { warningOf } from '../../src/features/user-migrations/migration-outcome.rules.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { scratchDatabase } from '../support/harness/databases.ts';
import { fileOf, filesOn, newNode, oneBatch, stateOf, work } from '../support/user-migrations/files-fixture.ts';

const HEADER = 'wallet_address,email,name';
const NBSP = '\u00a0';

const database = beforeTests(scratchDatabase);

/** Migrates a file for a new tenant. Returns the status of each row, with its reason, and the users created. */
async function migrated(content: string | Buffer, partBytes?: number) {
  const caller = await newNode(database.db);
  const { files, jobs } = filesOn(database.db);
  const { total } = await files.start(caller, fileOf(content, partBytes));
  expect(await work(jobs)).toBe('finished');
  const { migrations, rows, users } = await stateOf(database.db, caller.nodeId);
  expect(migrations).toMatchObject([{ status: 'done', total }]);
  const outcomes = rows.map(({ index, status, reason }) => [index, status, ...(reason === null ? [] : [reason])]);
  return { outcomes, users: users.map(({ address, email, name }) => [address, email, name]) };
}

const ADA = ['0x1', 'ada@example.com', 'Ada'];
const BOB = ['0x2', 'bob@example.com', 'Bob'];
const CREATED = (count: number) => Array.from({ length: count }, (_, at) => [at + 1, 'created']);

describe('D7-12: a file saved by a spreadsheet', () => {
  it.each<[name: string, file: string, ...users: string[][]]>([
    ['Excel, CSV UTF-8: byte order mark, CRLF', `\ufeff${HEADER}\r\n0x1,ada@example.com,Ada\r\n`, ADA],
    ['Excel, 7,000 formatted rows', `${HEADER}\r\n0x1,ada@example.com,Ada\r\n${',,\r\n'.repeat(7_000)}`, ADA],
    ['Excel, columns to the right were used once', `${HEADER},,\r\n0x1,ada@example.com,Ada,,\r\n,,,,\r\n`, ADA],
    ['Excel, the used range begins in column B', `,${HEADER}\r\n,0x1,ada@example.com,Ada\r\n,,,\r\n`, ADA],
    [
      'Excel 2003, trailing commas end after 16 rows',
      `${HEADER}\r\n0x1,ada@example.com,Ada\r\n0x2,bob@example.com\r\n`,
      ADA,
      ['0x2', 'bob@example.com', ''],
    ],
    [
      'Excel for Mac, CR in a cell',
      `${HEADER}\r\n0x1,ada@example.com,"Ada\rL"\r\n`,
      ['0x1', 'ada@example.com', 'Ada\rL'],
    ],
    [
      'CR in quotes in the only row, and at its end',
      `${HEADER}\n0x1,ada@example.com,"Ada\rL"\r`,
      ['0x1', 'ada@example.com', 'Ada\rL'],
    ],
    [
      'CR without quotes in one of several rows',
      `${HEADER}\n0x1,ada@example.com,Ada\rL\n"0x2","bob@example.com","Bob"\n`,
      ['0x1', 'ada@example.com', 'Ada\rL'],
      BOB,
    ],
    [
      'Excel, two lines in a cell',
      `${HEADER},\r\n0x1,ada@example.com,"Ada\nL",\r\n`,
      ['0x1', 'ada@example.com', 'Ada\nL'],
    ],
    [
      'Google Sheets, no last line end',
      `${HEADER}\r\n0x1,ada@example.com,Ada\r\n,,\r\n0x2,bob@example.com,Bob`,
      ADA,
      BOB,
    ],
    [
      'Google Sheets, a cell with a comma and quotes',
      `${HEADER}\r\n0x1,ada@example.com,"Ada, ""L"""\r\n,,`,
      ['0x1', 'ada@example.com', 'Ada, "L"'],
    ],
    [
      'LibreOffice, all cells quoted',
      `"${HEADER.replaceAll(',', '","')}"\n"0x1","ada@example.com","Ada"\n"","",""\n`,
      ADA,
    ],
    [
      'LibreOffice, quoted names after a mark',
      `\ufeff"wallet_address","email","name",""\n"0x1","ada@example.com","Ada",""\n`,
      ADA,
    ],
    ['LibreOffice, fixed width blanks', `${HEADER}\n 0x1 ,ada@example.com,Ada\n   ,   ,   \n`, ADA],
    ['Numbers, no rows below', `${HEADER}\n0x1,ada@example.com,Ada\n\n`, ADA],
    ['a blank record before the header', `,,\n"","",""\n${HEADER}\n0x1,ada@example.com,Ada\n`, ADA],
    ['a line of blanks', `${HEADER}\n \t \n0x1,ada@example.com,Ada\n`, ADA],
    ['no-break and ideographic spaces', `${HEADER}\n${NBSP},\u3000,"${NBSP}"\n0x1,ada@example.com,Ada\n`, ADA],
    ['a next line character and a byte order mark', `${HEADER}\n\u0085,\ufeff,\n0x1,ada@example.com,Ada\n`, ADA],
    ['a form feed between pages', `${HEADER}\n0x1,ada@example.com,Ada\n\f\n0x2,bob@example.com,Bob\n`, ADA, BOB],
    ['more blank fields than the header has', `${HEADER}\n0x1,ada@example.com,Ada,,, \n,,,,,,,,\n`, ADA],
    [
      'blank fields over two lines',
      `${HEADER}\n0x1,ada@example.com,Ada\n"\n","",\n"\n"\n0x2,bob@example.com,Bob\n`,
      ADA,
      BOB,
    ],
    ['the greatest number of columns of Excel', `${HEADER}\n${','.repeat(16_383)}\n0x1,ada@example.com,Ada\n`, ADA],
    ['the end-of-file mark of DOS', `${HEADER}\r\n0x1,ada@example.com,Ada\r\n\x1a`, ADA],
    ['the end-of-file mark after the last field', `${HEADER}\n0x1,ada@example.com,Ada\x1a`, ADA],
    ['the end-of-file mark of DOS, twice and on a line', `${HEADER}\n0x1,ada@example.com,Ada\n\x1a\n\x1a`, ADA],
    ['line ends that Python for Windows converts twice', `${HEADER}\r\r\n0x1,ada@example.com,Ada\r\r\n`, ADA],
    [
      'line ends that are converted twice, in quotes',
      `"${HEADER.replaceAll(',', '","')}"\r\r\n"0x1","ada@example.com","Ada"\r\r\n0x2,bob@example.com,Bob\r\r\n`,
      ADA,
      BOB,
    ],
    ['a mark inside a file', `${HEADER}\n0x1,ada@example.com,A\x1a\n`, ['0x1', 'ada@example.com', 'A\x1a']],
    [
      'texts as formulas, in quotes',
      `${HEADER}\n"=""0x1""",ada@example.com,"=""007"""\n`,
      ['0x1', 'ada@example.com', '007'],
    ],
    [
      'texts as formulas, as people write them',
      `${HEADER}\n="0x1",ada@example.com,="007"\r\n`,
      ['0x1', 'ada@example.com', '007'],
    ],
    ['a formula in the header', '="wallet_address","=""email""",name\n0x1,ada@example.com,Ada\n', ADA],
    [
      'other formulas, as they are',
      `${HEADER}\n0x1,ada@example.com,"=T(""007"")"\n`,
      ['0x1', 'ada@example.com', '=T("007")'],
    ],
    ['an equals sign alone', `${HEADER}\n0x1,ada@example.com,=007\n`, ['0x1', 'ada@example.com', '=007']],
    ['an unnamed column in the middle', 'wallet_address,,email, ,name\n0x1,,ada@example.com, ,Ada\n', ADA],
    [
      'one field of three',
      `name,${HEADER.replace(',name', '')}\n"","0x1","ada@example.com"\n`,
      ['0x1', 'ada@example.com', ''],
    ],
  ])('a file is read as the spreadsheet meant it: %s', async (_name, file, ...users) => {
    const expected = { outcomes: CREATED(users.length), users };
    expect(await migrated(file)).toEqual(expected);
    expect(await migrated(file, 7)).toEqual(expected);
  });

  it.each([
    [
      'a value in an unnamed column',
      `${HEADER},\n0x1,a@x.y,Ann,x\n`,
      'line 1: has a value in column 4, which has no name',
    ],
    ['a value right of the header', `${HEADER}\n0x1,a@x.y,Lee, Ann\n`, 'line 1: has 4 fields, not 3'],
    ['a value right of blank fields', `${HEADER}\n0x1,a@x.y,Ann,,,x\n`, 'line 1: has 6 fields, not 3'],
    ['too few fields over two lines', `${HEADER}\n0x1,"a\n@x.y"\n`, 'line 1: has 2 fields, not 3'],
    ['too many blank fields over two lines', `${HEADER}\n0x1,"a\n@x.y",Ann,\n`, 'line 1: has 4 fields, not 3'],
    ['a quote that swallows the next record', `${HEADER}\n"0x1,a@x.y,Ann\n0x2,b@x.y",Bob\n`, 'line 1: has 2 fields'],
    ['a field of one quote', `${HEADER}\n"""",,\n`, 'missing_email_and_external_id'],
    ['a field of one comma', `${HEADER}\n",",,\n`, 'missing_email_and_external_id'],
    ['a zero-width space', `${HEADER}\n\u200b,,\n`, 'missing_email_and_external_id'],
    ['one field too few, the wallet', `email,wallet_address\na@x.y\n`, 'line 1: wallet_address must not be blank'],
  ])('a record is not treated as blank: %s', async (_name, file, reason) => {
    const { outcomes, users } = await migrated(file);
    const [[index, , told] = []] = outcomes;
    expect([index, users]).toEqual([1, []]);
    expect(told).toContain(reason);
  });

  it('`line N` in a reason counts neither blank records nor empty lines', async () => {
    const file = [HEADER, ',,', '0x1,a@x.y,Ann', '', ',,', '"",,', '0x2,b"@x.y,Bob', ' ', '0x3,c@x.y,Cy', ',,'];
    const { outcomes } = await migrated(file.join('\r\n'));
    expect(outcomes).toEqual([
      [1, 'created'],
      [2, 'failed', expect.stringMatching(/^line 2: has a quote inside/)],
      [3, 'created'],
    ]);
  });

  it('D7-09: reading resumes in the middle of blank records, one batch of bytes at a time', async () => {
    const blank = `${','.repeat(99)}\n`.repeat(8_000);
    const caller = await newNode(database.db);
    const { files } = filesOn(database.db);
    const { id } = await files.start(caller, fileOf(`${HEADER}\n${blank}0x1,ada@example.com,Ada\n${blank}`, 65_536));
    const positions: number[] = [];
    while ((await oneBatch(database.db)) === 'more') {
      const { jobs } = await stateOf(database.db, caller.nodeId);
      positions.push(Number(jobs[0]?.byte_position));
    }
    expect(positions).toEqual(positions.toSorted((a, b) => a - b));
    expect(positions.length).toBeGreaterThanOrEqual(2);
    expect(await files.progress(caller.nodeId, id)).toMatchObject({ processed: 1, total: 1, done: true });
    expect((await stateOf(database.db, caller.nodeId)).rows).toMatchObject([{ index: 1, status: 'created' }]);
  });
});

/** A ZIP archive of one file, as .xlsx, .ods and .numbers are. */
function zipOf(name: string, content: string): Buffer {
  const data = deflateRawSync(content);
  const head = Buffer.alloc(30);
  head.write('PK\x03\x04', 'latin1');
  head.writeUInt16LE(8, 8);
  head.writeUInt32LE(data.length, 18);
  head.writeUInt16LE(name.length, 26);
  return Buffer.concat([head, Buffer.from(name), data]);
}

const ROWS = `${HEADER}\n0x1,ada@example.com,Ada\n`;
const utf16le = (text: string) => Buffer.from(text, 'utf16le');

/** Files that a program saves in place of CSV in UTF-8, and what their refusal names. */
const OTHER_FORMATS: [name: string, file: Buffer | string, cause: RegExp][] = [
  ['.xlsx', zipOf('[Content_Types].xml', '<Types/>'), /^is a workbook .*: save it as CSV/],
  ['.ods', zipOf('mimetype', 'application/vnd.oasis.opendocument.spreadsheet'), /^is a workbook/],
  ['.numbers', zipOf('Index/Document.iwa', 'x\n'.repeat(9_000)), /^is a workbook/],
  ['an empty archive', Buffer.from('PK\x05\x06\0\0\0\0', 'latin1'), /^is a workbook/],
  ['.xls', Buffer.from('d0cf11e0a1b11ae1000000000000', 'hex'), /^is a workbook/],
  [
    'Unicode Text of Excel (UTF-16 with a mark, tabs)',
    utf16le(`\ufeff${ROWS.replaceAll(',', '\t')}`),
    /^is in UTF-16: /,
  ],
  ['UTF-16 without a mark', utf16le(ROWS), /^is in UTF-16: save it as CSV/],
  ['UTF-16, the high byte first, with a mark', utf16le(`\ufeff${ROWS}`).swap16(), /^is in UTF-16/],
  ['UTF-16, the high byte first, without a mark', utf16le(ROWS).swap16(), /^is in UTF-16/],
  ['UTF-16 of CRLF and quotes', utf16le(`\ufeff"wallet_address","email"\r\n"0x1","a@x.y"\r\n`), /^is in UTF-16/],
  ['UTF-16 after an empty line', utf16le(`\n${ROWS}`), /^is in UTF-16/],
  ['sep=; of Excel', `sep=;\r\n${ROWS.replaceAll(',', ';')}`, /^begins with a line sep=: delete it/],
  ['sep=, though commas separate', `sep=,\r\n${ROWS}`, /^begins with a line sep=/],
  ['sep=, after a mark', `\ufeffsep=,\r\n${ROWS}`, /^begins with a line sep=/],
  ['"sep=;", quoted, in capitals', `"SEP=;"\n${ROWS}`, /^begins with a line sep=/],
  ['sep= and a tab', `sep=\t\n${ROWS}`, /^begins with a line sep=/],
  [
    'CR alone (Excel, Macintosh)',
    ROWS.replaceAll('\n', '\r'),
    /^ends its lines with a single CR: save it with LF or CRLF/,
  ],
  ['CR alone and all cells quoted', `"wallet_address","email"\r"0x1","a@x.y"\r`, /^ends its lines with a single CR/],
  ['CR alone, many lines', ROWS.replaceAll('\n', '\r').repeat(900), /^ends its lines with a single CR/],
  ['CR alone and one column', 'wallet_address\r0x1\r0x2', /^ends its lines with a single CR/],
  [
    'CR alone after a header with LF',
    'wallet_address,email\n0x1,a@x.y\r0x2,b@x.y\r',
    /^ends its lines with a single CR/,
  ],
  [
    'CR alone after a header with CRLF',
    'wallet_address,email\r\n0x1,a@x.y\r0x2,b@x.y\n\n',
    /^ends its lines with a single CR/,
  ],
  ['CR alone after a header with LF, one column', 'wallet_address\n0x1\r0x2', /^ends its lines with a single CR/],
  [
    'CR alone after a header with LF, fields omitted',
    `${HEADER}\n0x1\r0x2\r0x3,c@x.y`,
    /^ends its lines with a single CR/,
  ],
  [
    'CR alone after a header with LF, quoted',
    '"wallet_address","email"\n"0x1","a@x.y"\r"0x2","a\nb"\r',
    /^ends its lines with a single CR/,
  ],
  [
    'CR alone after a header with LF, many lines',
    `\ufeff${HEADER}\n${'0x1,a@x.y,Ada\r'.repeat(9_000)}`,
    /^ends its lines with a single CR/,
  ],
  [
    'CR alone after a header with LF, blank records',
    `${HEADER}\n0x1,a@x.y,Ada\r,,\r,,\n,,\n`,
    /^ends its lines with a single CR/,
  ],
  ['CR alone after a mark', `\ufeff${ROWS.replaceAll('\n', '\r')}`, /^ends its lines with a single CR/],
  [
    'semicolons (Excel, German)',
    ROWS.replaceAll(',', ';'),
    /has the unknown column .* fields are separated by commas$/,
  ],
  ['semicolons and all cells quoted', '"wallet_address";"email"\n"0x1";"a@x.y"\n', /fields are separated by commas$/],
  ['tabs', ROWS.replaceAll(',', '\t'), /fields are separated by commas$/],
  ['vertical bars', ROWS.replaceAll(',', '|'), /fields are separated by commas$/],
];

describe('D7-12: a file in another format is rejected with the cause and what to do', () => {
  it.each(OTHER_FORMATS)('%s is rejected with its cause', async (_name, file, cause) => {
    const caller = await newNode(database.db);
    const { files } = filesOn(database.db);
    for (const partBytes of [100_000, 3]) {
      await expect(files.start(caller, fileOf(file, partBytes))).rejects.toMatchObject({
        code: 'invalid_input',
        details: { issues: [{ path: 'file', message: expect.stringMatching(cause) }] },
      });
    }
    const { migrations, chunks } = await stateOf(database.db, caller.nodeId);
    expect({ migrations, chunks }).toEqual({ migrations: [], chunks: [] });
  });

  it.each([
    ['gzip', Buffer.from('1f8b0800000000000003', 'hex'), /^has a header that is not UTF-8/],
    ['HTML', '<table>\r\n<tr><td>wallet_address</td></tr>', /^has the unknown column "<table>"/],
    ['an unknown column', 'wallet_address,sep=\r\n', /^has the unknown column "sep="/],
    ['a lone CR in a later cell', `wallet_address,phone\r\n0x1,"1\r2"\r\n`, /^has the unknown column "phone"/],
    ['Windows-1252', Buffer.from('wallet_address,n\xe4me\n', 'latin1'), /^has a header that is not UTF-8/],
  ])('%s is not reported as another format', async (_name, file, cause) => {
    const { files } = filesOn(database.db);
    await expect(files.start(await newNode(database.db), fileOf(file))).rejects.toMatchObject({
      message: expect.stringMatching(cause),
    });
  });
});

describe('D7-12: an external id that a spreadsheet has changed', () => {
  const errors = ['#NAME?', '#REF!', '#VALUE!', '#DIV/0!', '#NULL!', '#N/A', '########'];
  it.each(['1.23457E+11', '1,23457E+11', '1E+15', '1.2e+20', '9.00720E+15', '1.23457E+011', ...errors])(
    '%s is reported as changed by a spreadsheet',
    (external_id) => {
      expect(warningOf({ external_id })).toContain(`external_id ${external_id} is what a spreadsheet shows`);
    },
  );

  it.each([
    null,
    '',
    '123457000000',
    '00123',
    '1E5',
    '1.5',
    'E+11',
    '1.23457E-11',
    '12.3E+11',
    'a1.2E+11',
    '1.2E+11b',
    '#1',
    '#name',
    '#A-7',
  ])('%j is not reported as changed by a spreadsheet', (external_id) => {
    expect(warningOf({ external_id })).toBeUndefined();
  });

  it('changed external ids are listed with their row, whether the row was created or skipped', async () => {
    const caller = await newNode(database.db);
    const { files, jobs } = filesOn(database.db);
    const rows = ['1.23457E+11', '123457000000', '1.23457E+11', 'x'].map((id, at) => `0x${at},${id}\n`);
    const { id } = await files.start(caller, fileOf(`wallet_address,external_id\n${rows.join('')}`), {
      isDryRun: true,
    });
    expect(await work(jobs)).toBe('finished');
    const pages = new MigrationPages(database.db);
    const shortened = await pages.failures(caller.nodeId, id, 10, true);
    expect(shortened.map(({ index, status }) => [index, status])).toEqual([
      [1, 'created'],
      [3, 'skipped'],
    ]);
    expect(await pages.failures(caller.nodeId, id, 1, true)).toHaveLength(1);
  });
});
