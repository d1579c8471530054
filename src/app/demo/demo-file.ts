import { existsSync, readFileSync } from 'node:fs';
import { getGraphql } from '../../api/rest/graphql.rest.ts';
import { sendMcpMessage } from '../../api/rest/mcp.rest.ts';
import { makeFolder, writeWhole } from '../../lib/files.ts';
import { demoPath, notWhole, PARTS } from '../../platform/config/data-dir.ts';
import { type Demo, demoSchema } from './demo.ts';

interface InForce {
  baseUrl: string;
  webhook: { username: string; password: string };
}

/**
 * Reads the demo that was generated at the first start; undefined if there is none yet.
 * @throws StartError for a damaged file.
 */
export function readDemo(dataDir: string): Demo | undefined {
  const path = demoPath(dataDir);
  if (!existsSync(path)) return undefined;
  const text = readFileSync(path, 'utf8');
  try {
    return demoSchema.parse(JSON.parse(text));
  } catch {
    throw notWhole(dataDir, `${PARTS.demo} is damaged`);
  }
}

/** Writes the file again, with mode 0600 and the current addresses and webhook credentials. */
export function writeDemo(dataDir: string, demo: Demo, { baseUrl, webhook }: InForce): void {
  const { transactions, other_node, ...rest } = demo;
  const document = {
    base_url: baseUrl,
    graphql_url: `${baseUrl}${getGraphql.path}`,
    mcp_url: `${baseUrl}${sendMcpMessage.path}`,
    ...rest,
    webhook,
    transactions,
    other_node,
  };
  makeFolder(dataDir);
  writeWhole(demoPath(dataDir), `${JSON.stringify(document, null, 2)}\n`);
}
