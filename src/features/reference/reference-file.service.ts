import { z } from 'zod';
import { decodeUtf8, JsonError, parseJson } from '../../lib/json.ts';
import { isRefusedValue } from '../../platform/errors.ts';
import { parseOfTopic } from './reference.input.ts';
import { type ReferenceChange, UnfitReferenceError } from './reference.rules.ts';
import type { Reference } from './reference.service.ts';

const NEWLINE = 0x0a;
const RETURN = 0x0d;

/** One line of a file, numbered from 1. `bytes` is undefined when the line is longer than allowed. */
export interface Line {
  number: number;
  bytes: Buffer | undefined;
}

/** Yields the non-empty lines of a stream without their line ends. It holds one chunk and one line in memory. */
export async function* linesOf(source: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Line> {
  let number = 0;
  let open = Buffer.alloc(0);
  const lineOf = (raw: Buffer): Line[] => {
    number += 1;
    if (raw.length > maxBytes) return [{ number, bytes: undefined }];
    const bytes = raw.at(-1) === RETURN ? raw.subarray(0, -1) : raw;
    return bytes.length === 0 ? [] : [{ number, bytes }];
  };
  for await (const chunk of source) {
    let rest = Buffer.concat([open, chunk]);
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      yield* lineOf(rest.subarray(0, end));
      rest = rest.subarray(end + 1);
    }
    // Of a line that is too long, only that is kept which says so.
    open = rest.subarray(0, maxBytes + 1);
  }
  if (open.length > 0) yield* lineOf(open);
}

/** The progress and the result of a load of reference data. */
export interface LoadCounts {
  bytes: number;
  /** The number of lines read, not counting empty ones. */
  lines: number;
  /** The number of rows written or deleted. */
  applied: number;
  /** The number of rows parked until their parent arrives. */
  parked: number;
  rejected: number;
}

interface NumberedChange {
  line: number;
  change: ReferenceChange;
}

const BATCH = 1_000;
const MAX_LINE_BYTES = 1024 * 1024;
const MAX_BATCH_BYTES = 4 * 1024 * 1024;

const lineInput = z.object({ topic: z.string('must be a string'), key: z.unknown(), value: z.unknown() });

/**
 * Applies a file of reference data with one `{"topic", "key", "value"}` on each line. It works in batches of up to
 * 1,000 lines and reads the next batch while the previous one is applied. A line that cannot be applied is reported and
 * skipped.
 */
export async function loadReference({
  source,
  reference,
  onRejected,
  onProgress,
}: {
  source: AsyncIterable<Uint8Array>;
  reference: Pick<Reference, 'apply'>;
  /** Called for each line that cannot be applied, in no particular order. */
  onRejected(line: number, reason: string): void;
  onProgress(counts: Readonly<LoadCounts>): void;
}): Promise<LoadCounts> {
  const counts: LoadCounts = { bytes: 0, lines: 0, applied: 0, parked: 0, rejected: 0 };
  const reject = (line: number, reason: string): void => {
    counts.rejected += 1;
    onRejected(line, reason);
  };
  let batch: NumberedChange[] = [];
  let batchBytes = 0;
  let running: Promise<void> = Promise.resolve();
  const flush = async (): Promise<void> => {
    const changes = batch;
    batch = [];
    batchBytes = 0;
    await running;
    onProgress(counts);
    running = applyAll(changes, reference, counts, reject);
    // The promise is awaited before the next batch begins; this avoids an unhandled rejection until then.
    running.catch(() => undefined);
  };
  for await (const line of linesOf(counted(source, counts), MAX_LINE_BYTES)) {
    counts.lines += 1;
    const change = changeOf(line, reject);
    if (change) batch.push({ line: line.number, change });
    batchBytes += line.bytes?.length ?? 0;
    if (batch.length >= BATCH || batchBytes >= MAX_BATCH_BYTES) await flush();
  }
  await flush();
  await running;
  onProgress(counts);
  return counts;
}

async function* counted(source: AsyncIterable<Uint8Array>, counts: LoadCounts): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    counts.bytes += chunk.length;
    yield chunk;
  }
}

/** Applies changes. When the database refuses a value, it halves the set until the offending line is found. */
async function applyAll(
  numbered: readonly NumberedChange[],
  reference: Pick<Reference, 'apply'>,
  counts: LoadCounts,
  reject: (line: number, reason: string) => void,
): Promise<void> {
  if (numbered.length === 0) return;
  try {
    const { applied, parked, rejected } = await reference.apply(numbered.map(({ change }) => change));
    counts.applied += applied;
    counts.parked += parked;
    for (const { index, reason } of rejected) reject(numbered[index]?.line ?? 0, reason);
  } catch (error) {
    if (!isRefusedValue(error)) throw error;
    const [only, ...otherRows] = numbered;
    if (only && otherRows.length === 0) return reject(only.line, 'the database rejects its values');
    const half = Math.ceil(numbered.length / 2);
    await applyAll(numbered.slice(0, half), reference, counts, reject);
    await applyAll(numbered.slice(half), reference, counts, reject);
  }
}

function changeOf(
  { number, bytes }: Line,
  reject: (line: number, reason: string) => void,
): ReferenceChange | undefined {
  try {
    if (!bytes) throw new UnfitReferenceError('is longer than 1 MiB');
    return parseLine(parseJson(decodeUtf8(bytes)));
  } catch (error) {
    if (!(error instanceof UnfitReferenceError || error instanceof JsonError)) throw error;
    reject(number, error.message);
    return undefined;
  }
}

function parseLine(value: unknown): ReferenceChange {
  const result = lineInput.safeParse(value);
  if (!result.success || !('value' in result.data)) {
    throw new UnfitReferenceError('must be an object {"topic", "key", "value"}');
  }
  const { topic, key, value: row } = result.data;
  // Only an explicit null is a tombstone; a line without `value` is malformed.
  return parseOfTopic(topic, key, row);
}
