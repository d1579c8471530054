import { readFileSync } from 'node:fs';
import type { RecordOptions } from '../lib/shortest-record.ts';

/** What a gateway is told: where it listens, where it forwards to, and what it judges tokens with. */
export interface GatewayOptions {
  port: number;
  upstream: string;
  /** At least 32 bytes; the raw bytes of its UTF-8 text. */
  signingSecret: string;
  /** Of the one that keeps a record of each request. */
  records?: RecordOptions;
}

/** Of each client; none refuses. */
export const REQUESTS_PER_SECOND = 1_000_000;

export const PATH = '/v1/accounts';

/** The options in the file that the process was started with. */
export function gatewayOptions(): GatewayOptions {
  const [, script, path] = process.argv;
  if (path === undefined) throw new Error(`usage: ${script} FILE`);
  process.once('SIGTERM', () => process.exit());
  return JSON.parse(readFileSync(path, 'utf8'));
}
