import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { decodeUtf8, parsedOrNone } from '../../../lib/json.ts';
import type { Log } from '../../../lib/log.ts';
import { ConfigError } from '../../../platform/config/config.ts';

/** The persisted documents, by the id that clients send instead of the text, without the prefix `sha256:`. */
export type PersistedDocuments = ReadonlyMap<string, string>;

const id = z.string().min(1).max(256).transform(withoutPrefix);
const body = z.string().min(1);
/** The format that GraphQL Code Generator and the Relay compiler write. */
const byId = z.record(id, body);
/** The format that Apollo's generate-persisted-query-manifest writes. */
const manifest = z.object({
  format: z.literal('apollo-persisted-query-manifest'),
  version: z.literal(1),
  operations: z.array(z.object({ id, body })),
});

/**
 * Reads the file of persisted documents: a JSON object of `{id: document}`, or Apollo's manifest.
 * @throws ConfigError that names the variable and says what to change.
 */
export async function readPersistedDocuments(path: string): Promise<PersistedDocuments> {
  const fault = (what: string) => new ConfigError([`GRAPHQL_PERSISTED_FILE ${path} ${what}`]);
  const bytes = await readFile(path).catch((error: unknown) => {
    throw fault(`cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  });
  const content: unknown = parsedOrNone(() => JSON.parse(decodeUtf8(bytes)));
  if (content === undefined) throw fault('must be JSON in UTF-8');
  const asManifest = manifest.safeParse(content);
  if (asManifest.success) return new Map(asManifest.data.operations.map((operation) => [operation.id, operation.body]));
  const asMap = byId.safeParse(content);
  if (!asMap.success) throw fault('must be a JSON object {"id": "document"}, or an Apollo manifest');
  return new Map(Object.entries(asMap.data));
}

const SHA256_PREFIX = 'sha256:';

/**
 * Returns an id without the prefix that may stand before a hash (GraphQL over HTTP, appendix "Persisted documents").
 */
export function withoutPrefix(id: string): string {
  return id.startsWith(SHA256_PREFIX) ? id.slice(SHA256_PREFIX.length) : id;
}

/**
 * Opens the persisted documents of the configured file, which a reload reads again, and `own`, which are always
 * available.
 * @throws ConfigError when the file cannot be read or is invalid.
 */
export async function openPersistedFile(file: string | undefined, log: Log, own: PersistedDocuments = new Map()) {
  const read = async () => new Map([...own, ...(file === undefined ? [] : await readPersistedDocuments(file))]);
  let documents: PersistedDocuments = await read();
  return {
    /** Returns the documents in force. */
    documents: () => documents,
    /** Reads the file again. An invalid file is logged and leaves the documents as they were. */
    async reload(): Promise<void> {
      if (file === undefined) return;
      try {
        documents = await read();
        log.info({ file, documents: documents.size }, 'loaded persisted operations');
      } catch (error) {
        const reason = error instanceof ConfigError ? { faults: error.faults } : { err: error };
        log.error({ file, ...reason }, 'persisted operations file is invalid; keeping the current operations');
      }
    },
  };
}

/** The persisted documents that `openPersistedFile` opens. */
export type PersistedFile = Awaited<ReturnType<typeof openPersistedFile>>;
