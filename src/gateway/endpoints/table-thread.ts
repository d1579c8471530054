import { parentPort, workerData } from 'node:worker_threads';
import { ConfigError } from '../../platform/config/config.ts';
import { parseGatewayConfig } from './gateway-config.ts';
import type { ParsedTable, TableText } from './reload.ts';

const { path, source }: TableText = workerData;
let parsed: ParsedTable;
try {
  parsed = { table: JSON.stringify(parseGatewayConfig(path, source)) };
} catch (error) {
  if (!(error instanceof ConfigError)) throw error;
  parsed = { faults: error.faults };
}
parentPort?.postMessage(parsed);
