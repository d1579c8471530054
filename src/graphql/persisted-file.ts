import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { ConfigError } from '../config/config.ts';
import { decodeUtf8 } from '../lib/json.ts';
import type { Log } from '../lib/log.ts';

/** The documents that a file lists, by the id that clients send for them. */
export type PersistedDocuments = ReadonlyMap<string, string>;

const id = z.string().min(1).max(256);
const body = z.string().min(1);
/** What GraphQL Code Generator and the Relay compiler write. */
const byId = z.record(id, body);
/** What Apollo's generate-persisted-query-manifest writes. */
const manifest = z.object({
  format: z.literal('apollo-persisted-query-manifest'),
  version: z.literal(1),
  operations: z.array(z.object({ id, body })),
});

/**
 * Reads the file of allowed documents: a JSON object of `{id: document}`, or Apollo's manifest.
 * @throws ConfigError that names the variable and what to change.
 */
export async function readPersistedDocuments(path: string): Promise<PersistedDocuments> {
  const parsed = parse(await read(path), path);
  const asManifest = manifest.safeParse(parsed);
  if (asManifest.success) return new Map(asManifest.data.operations.map((operation) => [operation.id, operation.body]));
  const asMap = byId.safeParse(parsed);
  if (!asMap.success) throw fault(path, 'must be a JSON object {"id": "document"}, or a manifest of Apollo');
  return new Map(Object.entries(asMap.data));
}

/** The file of allowed documents as it is in force. */
export class PersistedFile {
  readonly #path: string | undefined;
  readonly #log: Log;
  #documents: PersistedDocuments;

  private constructor(path: string | undefined, log: Log, documents: PersistedDocuments) {
    this.#path = path;
    this.#log = log;
    this.#documents = documents;
  }

  /** @throws ConfigError where there is a path and its file is at fault. */
  static async open(path: string | undefined, log: Log): Promise<PersistedFile> {
    return new PersistedFile(path, log, path === undefined ? new Map() : await readPersistedDocuments(path));
  }

  get documents(): PersistedDocuments {
    return this.#documents;
  }

  /** Reads the file again; one at fault is logged and changes nothing. */
  async reload(): Promise<void> {
    if (this.#path === undefined) return;
    const file = this.#path;
    try {
      this.#documents = await readPersistedDocuments(file);
      this.#log.info({ file, documents: this.#documents.size }, 'the persisted operations are those of their file');
    } catch (error) {
      const told = error instanceof ConfigError ? { faults: error.faults } : { err: error };
      this.#log.error({ file, ...told }, 'the persisted operations stay as they were: their file is at fault');
    }
  }
}

async function read(path: string): Promise<Uint8Array> {
  try {
    return await readFile(path);
  } catch (error) {
    throw fault(path, `cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function parse(bytes: Uint8Array, path: string): unknown {
  try {
    return JSON.parse(decodeUtf8(bytes));
  } catch {
    throw fault(path, 'must be JSON in UTF-8');
  }
}

function fault(path: string, what: string): ConfigError {
  return new ConfigError([`GRAPHQL_PERSISTED_FILE ${path} ${what}`]);
}
