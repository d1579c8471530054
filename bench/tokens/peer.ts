import { readFileSync } from 'node:fs';
import type { RecordOptions } from '../lib/shortest-record.ts';

/** What a peer is told: where it listens, the client that it knows, and what it signs with. */
export interface PeerOptions {
  port: number;
  /** What the tokens name: the issuer, and the audience as a URL. */
  issuer: string;
  audience: string;
  clientId: string;
  clientSecret: string;
  scopes: readonly string[];
  /** At least 32 bytes; signed with as the raw bytes of its UTF-8 text. */
  signingSecret: string;
  /** What signs, where the peer has the choice. */
  signsBy: 'jose' | 'createHmac';
  /** Of the one that keeps a record of each request. */
  records?: RecordOptions;
}

/** The options in the file that the process was started with. */
export function peerOptions(): PeerOptions {
  const [, script, path] = process.argv;
  if (path === undefined) throw new Error(`usage: ${script} FILE`);
  process.once('SIGTERM', () => process.exit());
  return JSON.parse(readFileSync(path, 'utf8'));
}
