import { chmodSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../lib/make-folder.ts';
import { type Demo, demoSchema } from './demo.ts';

interface InForce {
  baseUrl: string;
  webhook: { username: string; password: string };
}

/** `DATA_DIR/demo.json`, which scripts read. */
export function demoPath(dataDir: string): string {
  return join(dataDir, 'demo.json');
}

/** The demo that was generated at the first start, or undefined where there is none that can be read. */
export function readDemo(dataDir: string): Demo | undefined {
  try {
    return demoSchema.parse(JSON.parse(readFileSync(demoPath(dataDir), 'utf8')));
  } catch {
    return undefined;
  }
}

/** Writes the file anew, mode 0600, with the addresses and webhook credentials that are in force. */
export function writeDemo(dataDir: string, demo: Demo, { baseUrl, webhook }: InForce): void {
  const { transactions, other_node, ...rest } = demo;
  const document = {
    base_url: baseUrl,
    graphql_url: `${baseUrl}/graphql`,
    mcp_url: `${baseUrl}/v2/mcp`,
    ...rest,
    webhook,
    transactions,
    other_node,
  };
  makeFolder(dataDir);
  const unfinished = `${demoPath(dataDir)}.${process.pid}`;
  writeFileSync(unfinished, `${JSON.stringify(document, null, 2)}\n`, { mode: 0o600 });
  chmodSync(unfinished, 0o600);
  renameSync(unfinished, demoPath(dataDir));
}
