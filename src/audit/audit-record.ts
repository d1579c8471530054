import { hash, randomFillSync } from 'node:crypto';
import type { AuditSpool } from './spool.ts';

/** An audit record, with the columns of `audit_records` as members (docs/contract.md, 1-04). */
export interface AuditRecord {
  at: string;
  id: string;
  node_id: string | null;
  correlation_id: string;
  method: string;
  path: string;
  status_code: number;
  /** The duration of the request, in ms. */
  elapsed: number;
  headers: Record<string, unknown>;
  remote_address: string;
  real_ip: string;
  request_bytes: number;
  response_bytes: number;
  is_api: boolean;
  aborted: boolean;
  /** The `sub` of the token; null without one. */
  subject: string | null;
  client_id: string | null;
  /** The path pattern of the endpoint, or the schema names of the operation's root fields; never the caller's text. */
  operation: string | null;
  /** The ids of the users whose rows the request created, changed, returned or matched as a duplicate; null if none. */
  noted_users: readonly string[] | null;
  query: string | null;
  request_body: string | null;
  response_body: string | null;
}

/** The columns that an erasure removes, in the order of their salts and digests. */
export const ERASABLE_COLUMNS = ['query', 'request_body', 'response_body'] as const;

/** The columns of a record that describe its request, in the order of a line of the spool. */
export const RECORD_COLUMNS = [
  ...['at', 'id', 'node_id', 'correlation_id', 'method', 'path', 'status_code', 'elapsed', 'headers'],
  ...['remote_address', 'real_ip', 'request_bytes', 'response_bytes', 'is_api', 'aborted'],
  ...['subject', 'client_id', 'operation', 'noted_users', ...ERASABLE_COLUMNS],
] as const;

/** The columns of `audit_records` that a line of the spool has, in its order. */
export const AUDIT_COLUMNS = ['chain_id', 'chain_index', 'previous_hash', 'hash', 'salts', ...RECORD_COLUMNS] as const;

const NULL = '\\N';

/** Returns the columns that no erasure removes, in the format `text` of PostgreSQL's `COPY`, as they are inserted. */
export function fixedColumnsOf(r: AuditRecord): string {
  const request = `${r.at}\t${r.id}\t${r.node_id?.toLowerCase() ?? NULL}\t${field(r.correlation_id)}\t${field(r.method)}\t${field(r.path)}`;
  const result = `${r.status_code}\t${r.elapsed}\t${field(headersText(r))}\t${field(r.remote_address)}\t${field(r.real_ip)}`;
  const sizes = `${r.request_bytes}\t${r.response_bytes}\t${r.is_api}\t${r.aborted}`;
  const users = r.noted_users ? `{${r.noted_users.join()}}` : NULL;
  return `${request}\t${result}\t${sizes}\t${field(r.subject)}\t${field(r.client_id)}\t${field(r.operation)}\t${users}`;
}

/**
 * Returns the headers of a record as JSON. The names are sorted, since the database keeps no order; a value that is not
 * an object stays unchanged.
 */
function headersText({ headers }: Pick<AuditRecord, 'headers'>): string {
  if (Object.prototype.toString.call(headers) !== '[object Object]') return JSON.stringify(headers);
  const sorted: AuditRecord['headers'] = Object.create(null);
  for (const name of Object.keys(headers).sort()) sorted[name] = headers[name];
  return JSON.stringify(sorted);
}

// Four searches for one character each take a third of the time of one search for any of them.
function field(text: string | null): string {
  if (text === null) return NULL;
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\t', '\\t');
}

const ESCAPED: Record<string, string> = { n: '\n', r: '\r', t: '\t' };

function textOf(column: string): string {
  return column.replace(/\\(.)/g, (_, character: string) => ESCAPED[character] ?? character);
}

const OPENING_BRACE = 0x7b;

/** Checks whether a spooled line begins with its place in a chain, as all do but refused records and lines of 0.1.0. */
export function isChainedLine(line: Buffer): boolean {
  return line[0] !== OPENING_BRACE;
}

/** Returns the JSON text of the record in a spooled line. */
export function jsonOf(line: Buffer): string {
  const text = line.toString('utf8');
  if (!isChainedLine(line)) return text;
  const members = text.split('\t').map((column, index) => {
    const [name, member] = [AUDIT_COLUMNS[index], column === NULL ? null : textOf(column)];
    return [name, member !== null && JSON_COLUMNS.has(name) ? JSON.parse(member) : member];
  });
  return JSON.stringify(Object.fromEntries(members));
}

const JSON_COLUMNS: ReadonlySet<string | undefined> = new Set([
  ...['status_code', 'elapsed', 'headers', 'request_bytes', 'response_bytes', 'is_api', 'aborted'],
]);

/** The format of records and their hashes, which the first seal of a chain states. */
export const CHAIN_FORMAT = 3;

/** The previous hash of a chain's first record. */
export const NO_HASH = '0'.repeat(64);

/** The characters of a salt: 16 random bytes in hexadecimal digits. */
const SALT_LENGTH = 32;

/** The characters of the salts of a record. */
export const SALTS_LENGTH = ERASABLE_COLUMNS.length * SALT_LENGTH;

const SALTS_BYTES = SALTS_LENGTH / 2;
const random = Buffer.allocUnsafe(SALTS_BYTES * 64);
let used = random.length;

/** Returns a new salt for each column that an erasure removes, one after another in hexadecimal digits. */
function newSalts(): string {
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  used += SALTS_BYTES;
  return random.toString('hex', used - SALTS_BYTES, used);
}

/**
 * Returns the digests of the columns that an erasure removes: SHA-256 of the salt and the text, in hexadecimal digits,
 * as `audit_erase` computes it too; for null a dash and the salt. Without the salt, a guess of the text cannot be
 * checked.
 */
export function columnDigests(record: Pick<AuditRecord, (typeof ERASABLE_COLUMNS)[number]>, salts: string): string[] {
  return ERASABLE_COLUMNS.map((column, index) => {
    const salt = salts.slice(index * SALT_LENGTH, (index + 1) * SALT_LENGTH);
    const text = record[column];
    return text === null ? `-${salt}` : hash('sha256', salt + text);
  });
}

/** The place of a record in the chain of a process: the first has index 0. Hashes are in hexadecimal digits. */
export interface ChainPlace {
  chain: string;
  index: number;
  /** The hash of the record before, or `NO_HASH`. */
  previous: string;
}

/**
 * Returns the leaf of a record: SHA-256 over its index in its chain, its fixed columns and the digests of the others. A
 * guess of the record cannot be checked by it, because the digests are of salted texts.
 */
export function recordLeaf(
  { chain, index }: Omit<ChainPlace, 'previous'>,
  fixed: string,
  digests: readonly string[],
): string {
  return hash('sha256', `${chain}\t${index}\t${fixed}\t${digests.join('\t')}`);
}

/** Returns the hash of a record: SHA-256 over the hash of the record before and its own leaf. */
export function chainedHash(previous: string, leaf: string): string {
  return hash('sha256', `${previous}\t${leaf}`);
}

/** Returns the hash of a record at its place. */
export function recordHash(place: ChainPlace, fixed: string, digests: readonly string[]): string {
  return chainedHash(place.previous, recordLeaf(place, fixed, digests));
}

/** A record that has no place in a chain yet. */
export interface UnchainedRecord {
  fixed: string;
  erasable: string;
  salts: string;
  digests: readonly string[];
  /** The number of characters of its columns. */
  length: number;
}

/** Makes a record ready for its place in a chain. */
export function unchained(record: AuditRecord): UnchainedRecord {
  const [fixed, salts] = [fixedColumnsOf(record), newSalts()];
  const erasable = ERASABLE_COLUMNS.map((column) => field(record[column])).join('\t');
  return { fixed, erasable, salts, digests: columnDigests(record, salts), length: fixed.length + erasable.length };
}

/** The last record of a chain: its index, or -1, and its hash. */
export interface ChainHead {
  index: number;
  hash: string;
}

interface ChainHandlers {
  /** Called with each record that cannot be stored, and the error. */
  onLost(error: unknown, record: UnchainedRecord): void;
  /** Makes the disk write what is stored, if records must survive a crash of the machine. */
  sync(): Promise<void>;
  /** Called with the error of `sync`, and each record that may not be on the disk. */
  onUnsynced(error: unknown, record: UnchainedRecord): void;
  /** Called with what an `onStored` callback throws. */
  onFault(error: unknown): void;
}

/** The number of characters above which records are written at once, before the end of the tick. */
const MAX_CHARACTERS = 1024 * 1024;

/**
 * Chains the records of this process: each gets an index and the hash of the one before, in the order of the spool.
 * Stores all lines of one tick of the event loop by one write, the most expensive part.
 */
export class AuditChain {
  readonly id: string;
  readonly #spool: Pick<AuditSpool, 'append'>;
  readonly #handlers: Partial<ChainHandlers>;
  /** The last record in the spool. */
  head: ChainHead = { index: -1, hash: NO_HASH };
  #records: UnchainedRecord[] = [];
  #waiting: (() => void)[] = [];
  #characters = 0;
  #end: NodeJS.Immediate | undefined;

  constructor(id: string, spool: Pick<AuditSpool, 'append'>, handlers: Partial<ChainHandlers> = {}) {
    this.id = id;
    this.#spool = spool;
    this.#handlers = handlers;
  }

  /**
   * Adds a record. Calls `onStored` once it is in the spool, and synced if there is a `sync`, or has been passed to
   * `onLost` or `onUnsynced`; an error that it throws reaches neither the caller nor the other callbacks.
   */
  add(record: UnchainedRecord, onStored?: () => void): void {
    this.#records.push(record);
    if (onStored) this.#waiting.push(onStored);
    this.#characters += record.length;
    if (this.#characters > MAX_CHARACTERS) this.commit();
    else this.#end ??= setImmediate(() => this.commit());
  }

  /** Stores all records added so far, and calls their callbacks, after the sync if there is one. */
  commit(): void {
    if (this.#end) clearImmediate(this.#end);
    this.#end = undefined;
    const [records, waiting] = [this.#records, this.#waiting];
    this.#records = [];
    this.#waiting = [];
    this.#characters = 0;
    this.#store(records);
    const { sync, onUnsynced } = this.#handlers;
    const answer = () => this.#answer(waiting);
    if (!sync || records.length === 0) answer();
    else
      sync()
        .catch((error: unknown) => {
          for (const record of records) onUnsynced?.(error, record);
        })
        .then(answer);
  }

  #answer(waiting: readonly (() => void)[]): void {
    for (const onStored of waiting) {
      try {
        onStored();
      } catch (error) {
        this.#handlers.onFault?.(error);
      }
    }
  }

  /** Stores the records by one write or, if that fails, one by one, so that a bad record affects no other. */
  #store(records: readonly UnchainedRecord[]): void {
    try {
      if (records.length > 0) this.append(...records);
    } catch {
      for (const record of records) {
        try {
          this.append(record);
        } catch (error) {
          this.#handlers.onLost?.(error, record);
        }
      }
    }
  }

  /**
   * Stores records in the spool.
   * @throws the spool's errors; then none of them is stored, or has a place in the chain.
   */
  append(...records: readonly UnchainedRecord[]): void {
    let head = this.head;
    const lines = records.map(({ fixed, erasable, salts, digests }) => {
      const position = { chain: this.id, index: head.index + 1, previous: head.hash };
      head = { index: position.index, hash: recordHash(position, fixed, digests) };
      return `${position.chain}\t${position.index}\t\\\\x${position.previous}\t\\\\x${head.hash}\t\\\\x${salts}\t${fixed}\t${erasable}`;
    });
    this.#spool.append(...lines);
    this.head = head;
  }
}

const TAB = 0x09;
const UUID_LENGTH = 36;
/** What stands before the hexadecimal digits of a `bytea` in a line: its prefix, of which the backslash is doubled. */
const PREFIX_LENGTH = 3;

/** Returns the chain and the place of a spooled line that has one. */
export function placeOf(line: Buffer): { chain: string } & ChainHead {
  const indexEnd = line.indexOf(TAB, UUID_LENGTH + 1);
  const hashStart = indexEnd + 1 + PREFIX_LENGTH + NO_HASH.length + 1 + PREFIX_LENGTH;
  return {
    chain: line.toString('latin1', 0, UUID_LENGTH),
    index: Number(line.toString('latin1', UUID_LENGTH + 1, indexEnd)),
    hash: line.toString('latin1', hashStart, hashStart + NO_HASH.length),
  };
}
