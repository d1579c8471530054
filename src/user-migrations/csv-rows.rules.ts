import { RefusalError } from '../errors/refusal.ts';
import { hasForbiddenText } from '../lib/json.ts';
import type { CsvRecord } from './csv-records.rules.ts';
import type { MigrateUserInput } from './migration.input.ts';

/** The columns that a file can have, by the names of REST. */
const CSV_COLUMNS = ['wallet_address', 'email', 'external_id', 'name', 'surname', 'kyc_sent'] as const;

export type CsvColumn = (typeof CSV_COLUMNS)[number];

/** A data row of a file: a user to migrate, or why it is none, with what identifies it as far as known. */
export type FileRow =
  | { index: number; input: MigrateUserInput; fault?: undefined }
  | { index: number; fault: string; email: string | undefined; externalId: string | undefined };

const BY_NAME = new Map<string, CsvColumn>(
  CSV_COLUMNS.flatMap((column) => [[column, column] as const, [camelCase(column), column] as const]),
);
const KNOWN = CSV_COLUMNS.join(', ');
const SHOWN = 40;

/**
 * The columns that a header names, in its order; names are those of REST or of GraphQL.
 * @throws RefusalError `invalid` for a header that does not hold, which says what to change.
 */
export function columnsOf(header: CsvRecord | undefined): CsvColumn[] {
  if (!header) throw fileFault(`is empty: its first line names the columns, ${KNOWN}`);
  if ('fault' in header)
    throw fileFault(`has a header that ${header.fault}: write the names of columns, ${KNOWN}, in UTF-8`);
  const columns = header.fields.map((name) => {
    const column = BY_NAME.get(name.trim());
    if (column) return column;
    const separator = /[;\t|]/.test(name) ? '; fields are separated by commas' : '';
    throw fileFault(`has the unknown column ${shown(name.trim())}: name some of ${KNOWN}${separator}`);
  });
  const twice = columns.find((column, at) => columns.indexOf(column) !== at);
  if (twice) throw fileFault(`has the column ${twice} twice: name it once`);
  if (!columns.includes('wallet_address')) throw fileFault('lacks the column wallet_address: add it');
  return columns;
}

/** The data row of a record, numbered from 1. */
export function fileRowOf(record: CsvRecord, columns: readonly string[], index: number): FileRow {
  if ('fault' in record) {
    return { index, fault: `line ${index}: ${record.fault}`, email: undefined, externalId: undefined };
  }
  const at = (column: CsvColumn) => record.fields[columns.indexOf(column)];
  const wallet = at('wallet_address') ?? '';
  const [email, externalId] = [at('email'), at('external_id')];
  const kycSent = booleanOf(at('kyc_sent') ?? '');
  const walletAtFault = walletFault(wallet);
  if (walletAtFault !== undefined) {
    return { index, fault: `line ${index}: wallet_address ${walletAtFault}`, email, externalId };
  }
  if (kycSent === undefined)
    return { index, fault: `line ${index}: kyc_sent must be true or false`, email, externalId };
  const [name, surname] = [at('name'), at('surname')];
  const input: MigrateUserInput = { wallet_address: wallet.trim(), kyc_sent: kycSent };
  if (email !== undefined) input.email = email;
  if (externalId !== undefined) input.external_id = externalId;
  if (name !== undefined) input.name = name;
  if (surname !== undefined) input.surname = surname;
  return { index, input };
}

/** What a bulk request would be refused for as a whole. */
function walletFault(wallet: string): string | undefined {
  if (hasForbiddenText(wallet)) return 'must not contain U+0000 or a lone surrogate';
  return wallet.trim() === '' ? 'must not be blank' : undefined;
}

/** true and false in any case of their letters; empty is false. Undefined for all else. */
function booleanOf(text: string): boolean | undefined {
  switch (text.trim().toLowerCase()) {
    case 'true':
      return true;
    case 'false':
    case '':
      return false;
    default:
      return undefined;
  }
}

function fileFault(message: string): RefusalError {
  return new RefusalError({ kind: 'invalid', path: 'file', message });
}

function shown(name: string): string {
  return JSON.stringify(name.length > SHOWN ? `${name.slice(0, SHOWN)}…` : name);
}

function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());
}
