import { readFile } from 'node:fs/promises';
import { Worker } from 'node:worker_threads';
import { ConfigError } from '../config/config.ts';
import { type GatewayConfig, parseGatewayConfig, unreadable } from './gateway-config.ts';

/** A longer file (some 300 endpoints) would hold requests up while it is read: it goes to a thread of its own. */
const HERE_CHARACTERS = 32 * 1024;

/** What the thread is given. */
export interface TableText {
  path: string;
  source: string;
}

/** What it answers: the table in JSON, which crosses faster than its objects. */
export type ParsedTable = { table: string } | { faults: readonly string[] };

/**
 * Reads the text of `gateway.yaml`.
 * @throws ConfigError as a start does.
 */
export async function readTableText(path: string): Promise<TableText> {
  try {
    return { path, source: await readFile(path, 'utf8') };
  } catch (error) {
    throw unreadable(path, error);
  }
}

/**
 * Validates the text of `gateway.yaml` as `parseGatewayConfig` does, beside the event loop if it is long.
 * @throws ConfigError as that does; what `signal` gives as its reason when it ends the thread.
 */
export async function parseTable(text: TableText, signal: AbortSignal): Promise<GatewayConfig> {
  if (text.source.length <= HERE_CHARACTERS) return parseGatewayConfig(text.path, text.source);
  const parsed = await parseInThread(text, signal);
  if ('faults' in parsed) throw new ConfigError(parsed.faults);
  return JSON.parse(parsed.table);
}

async function parseInThread(text: TableText, signal: AbortSignal): Promise<ParsedTable> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<ParsedTable>();
  const worker = new Worker(new URL('./table-thread.ts', import.meta.url), { workerData: text, execArgv: [] });
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort);
  worker.once('message', resolve).once('error', reject);
  worker.once('exit', () => reject(new Error('the thread that reads the gateway table has ended')));
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', abort);
    await worker.terminate();
  }
}
