import { readFileSync } from 'node:fs';

/** What a contender is told. */
export interface PeerOptions {
  port: number;
  kafka?: { brokers: string[]; prefix: string } | undefined;
  /** Where the shortest program keeps what it keeps: on servers, or in the cluster of a folder; records in a file first. */
  servers?: { databaseUrl: string; redisUrl: string; file: string } | undefined;
  embedded?: { cluster: string; file: string } | undefined;
}

/** What is published: the members of a notification that an update shows. */
export interface Update {
  id: string;
  status: string;
}

/** The product's webhook writes to two topics. */
export const TOPICS = ['bare-admin', 'bare-user'];

/** The options in the file that the process was started with. */
export function peerOptions(): PeerOptions {
  const [, script, path] = process.argv;
  if (path === undefined) throw new Error(`usage: ${script} FILE`);
  process.once('SIGTERM', () => process.exit());
  return JSON.parse(readFileSync(path, 'utf8'));
}

/** The same text as the product's answer to `ALL`. */
export function updateText(cursor: number, { id, status }: Update): string {
  return JSON.stringify({ data: { transactionUpdates: { cursor: `${cursor}`, transaction: { id, status } } } });
}
