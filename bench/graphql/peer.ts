import { readFileSync } from 'node:fs';
import type { RecordOptions } from '../lib/shortest-record.ts';

/** What a peer is told: where it listens, where its rows are, and whose they are. */
export interface PeerOptions {
  port: number;
  databaseUrl: string;
  nodeId: string;
  /** Of those that can compile documents: after how many requests for one; 0 for never. */
  jit: number;
  /** Of those that keep a record of each request. */
  records?: RecordOptions;
  /** What such a one judges tokens with, where it does. */
  signingSecret?: string;
}

/** As many connections to PostgreSQL as the product has. */
export const POOL_SIZE = 10;

/** The options in the file that the process was started with. */
export function peerOptions(): PeerOptions {
  const [, script, path] = process.argv;
  if (path === undefined) throw new Error(`usage: ${script} FILE`);
  process.once('SIGTERM', () => process.exit());
  return JSON.parse(readFileSync(path, 'utf8'));
}
