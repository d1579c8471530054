import { randomUUID } from 'node:crypto';
import { ftruncateSync, openSync, writeSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { finished } from 'node:stream/promises';
import { Pool } from 'pg';
import { from } from 'pg-copy-streams';

/** How rows of records are stored in the product's table. */
export const COPY = `copy audit_records (at, id, node_id, correlation_id, method, path, status_code, elapsed, headers,
  remote_address, real_ip, request_body, request_bytes, response_body, response_bytes, is_api)`;
const INTERVAL_MS = 200;
const NODE_ID = randomUUID();

/** Where records go: the file that they are spooled in, and the product's database. */
export interface RecordOptions {
  file: string;
  databaseUrl: string;
}

/** A request and its answer, as they are recorded. */
export interface Recorded {
  req: IncomingMessage;
  startedTick: number;
  requestBody: string;
  responseBody: string;
}

/** Keeps a record of a request, and calls `answer` once it is kept. */
export type Keep = (recorded: Recorded, answer: () => void) => void;

/**
 * The shortest program that keeps what the product's audit keeps: one record for each request, in a file before its
 * answer ends, by one write a turn of the event loop, and copied into PostgreSQL five times a second. It masks nothing,
 * limits nothing and adopts no file that a dead process left.
 */
export function shortestRecords({ file, databaseUrl }: RecordOptions): Keep {
  const pool = new Pool({ connectionString: databaseUrl, max: 1 });
  const copyIn = async (rows: Buffer<ArrayBuffer>) => {
    const client = await pool.connect();
    try {
      const copy = client.query(from(`${COPY} from stdin`));
      copy.end(rows);
      await finished(copy);
    } finally {
      client.release();
    }
  };
  // A copy that waits while the product makes the partition of the month is refused by the default partition, once.
  return recordsInto(file, (rows) => copyIn(rows).catch(() => copyIn(rows)));
}

/** The same, with records stored by `store`: those of one interval at once. */
export function recordsInto(file: string, store: (rows: Buffer<ArrayBuffer>) => Promise<void>): Keep {
  const fd = openSync(file, 'w');
  let turn: { line: string; answer: () => void }[] = [];
  let written: Buffer<ArrayBuffer>[] = [];
  const commit = () => {
    const ended = turn;
    turn = [];
    const lines = Buffer.from(ended.map(({ line }) => line).join(''));
    writeSync(fd, lines);
    written.push(lines);
    for (const { answer } of ended) answer();
  };
  setInterval(async () => {
    if (written.length === 0) return;
    const rows = Buffer.concat(written);
    written = [];
    await store(rows);
    if (written.length === 0) ftruncateSync(fd);
  }, INTERVAL_MS);
  return (recorded, answer) => {
    if (turn.length === 0) setImmediate(commit);
    turn.push({ line: lineOf(recorded), answer });
  };
}

function lineOf({ req, startedTick, requestBody, responseBody }: Recorded): string {
  const { authorization: _, ...headers } = req.headers;
  return `${[
    ...[new Date().toISOString(), randomUUID(), NODE_ID, randomUUID(), req.method ?? '', req.url ?? '', 200],
    ...[performance.now() - startedTick, escaped(JSON.stringify(headers)), '127.0.0.1', '127.0.0.1'],
    ...[escaped(requestBody), requestBody.length, escaped(responseBody), responseBody.length, 't'],
  ].join('\t')}\n`;
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\t', '\\t');
}
