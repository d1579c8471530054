import { readFileSync } from 'node:fs';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { printed, type Running } from '../start/process.ts';

const SHIPPED = parse(readFileSync(join(import.meta.dirname, '../../../gateway.yaml'), 'utf8'));

/** What a test puts beside what is shipped. */
export interface TestTable {
  services?: Record<string, unknown>;
  endpoints?: readonly object[];
  sunset?: string;
}

/** The text of the shipped `gateway.yaml` with further services and endpoints, and more settings. */
export function tableText({ services, endpoints = [], sunset = '2027-11-01T00:00:00Z', ...more }: TestTable): string {
  return JSON.stringify({
    ...SHIPPED,
    services: { ...SHIPPED.services, ...services },
    webhook_alias: { deprecated_at: '2026-11-01T00:00:00Z', sunset },
    endpoints: [...SHIPPED.endpoints, ...endpoints],
    ...more,
  });
}

/** A `gateway.yaml` that changes while instances run on it. */
export interface ChangingFile extends AsyncDisposable {
  path: string;
  /** As a careful editor does: the file is one text or the other. */
  replace(text: string): Promise<void>;
}

export async function changingFile(text: string): Promise<ChangingFile> {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-gateway-'));
  const path = join(folder, 'gateway.yaml');
  await writeFile(path, text);
  return {
    path,
    async replace(next) {
      await writeFile(`${path}~`, next);
      await rename(`${path}~`, path);
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
}

/** Sends SIGHUP. */
export function hangUp({ pid }: { pid: number }): void {
  process.kill(pid, 'SIGHUP');
}

/** The line of the log that a pattern finds, once it is there. */
export async function logLine(instance: Running, pattern: RegExp): Promise<Record<string, unknown>> {
  const { line = '' } = await printed(instance, new RegExp(`^(?<line>.*(?:${pattern.source}).*)$`, 'm'));
  return JSON.parse(line);
}
