import { createHash } from 'node:crypto';
import { GraphQLError } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { DocumentCache } from './document-cache.ts';
import type { PersistedDocuments } from './persisted-file.ts';

/** `off`: documents alone; `allow`: ids as well; `only`: what the file lists, by its id or in full, and nothing else. */
export type PersistedMode = 'off' | 'allow' | 'only';

/** What an operation came with, as far as it says which document to run. */
export interface SentOperation {
  query?: unknown;
  /** GraphQL over HTTP, appendix "Persisted documents". */
  documentId?: unknown;
  /** `persistedQuery.sha256Hash`: the protocol of Apollo's persisted queries. */
  extensions?: unknown;
}

const MAX_SENT_LENGTH = 16_384;
const SHA256 = /^[\da-f]{64}$/;
const SHA256_PREFIX = 'sha256:';

/** Which documents may run, and the ids that stand for them. */
export class PersistedOperations {
  readonly #mode: PersistedMode;
  readonly #documents: () => PersistedDocuments;
  /** What clients have sent together with its hash, which they send alone from then on. */
  readonly #sent = new DocumentCache<string>();
  #listed: { documents: PersistedDocuments; texts: ReadonlySet<unknown> } | undefined;

  /** @param documents gives those in force, asked for at each operation */
  constructor(mode: PersistedMode, documents: () => PersistedDocuments) {
    this.#mode = mode;
    this.#documents = documents;
  }

  /**
   * Puts the document that an id stands for into an operation that came without one.
   * @throws GraphQLError 400 where the id is unknown or is not that of the document beside it, and where the document is
   * none that may run.
   */
  complete(operation: SentOperation): void {
    const id = idOf(operation);
    const text = operation.query === '' || operation.query === null ? undefined : operation.query;
    if (this.#mode === 'off') {
      if (text === undefined && id !== undefined) throw refused('PersistedQueryNotSupported');
      return;
    }
    delete operation.documentId;
    if (text === undefined) {
      if (id !== undefined) operation.query = this.#find(id);
    } else if (this.#mode === 'allow') {
      if (typeof text === 'string' && id !== undefined) this.#learn(id, text);
    } else if (!this.#texts().has(text)) {
      throw refused('PersistedQueryOnly', 'only persisted operations run here: send the id of one');
    }
  }

  #find(id: string): string {
    const document = this.#documents().get(id) ?? (this.#mode === 'allow' ? this.#sent.get(id) : undefined);
    if (document === undefined) throw refused('PersistedQueryNotFound');
    return document;
  }

  #learn(id: string, text: string): void {
    const listed = this.#documents().get(id);
    if (listed !== undefined ? listed !== text : id !== createHash('sha256').update(text).digest('hex')) {
      throw refused('PersistedQueryMismatch', 'the id is not that of the document');
    }
    if (listed === undefined && text.length <= MAX_SENT_LENGTH) this.#sent.set(id, text);
  }

  #texts(): ReadonlySet<unknown> {
    const documents = this.#documents();
    if (this.#listed?.documents !== documents) this.#listed = { documents, texts: new Set(documents.values()) };
    return this.#listed.texts;
  }
}

/** Yoga plugin: gives operations over HTTP the documents that their ids stand for. */
export function usePersistedOperations(persisted: PersistedOperations): Plugin {
  return {
    onParams({ params }) {
      // In place: the audit record knows the operation by this object. What is no object is refused after this.
      if (typeof params === 'object' && params !== null && !Array.isArray(params)) persisted.complete(params);
    },
  };
}

/** @throws GraphQLError 400 for an id that can be none. */
function idOf({ documentId, extensions }: SentOperation): string | undefined {
  const hash = memberOf(memberOf(extensions, 'persistedQuery'), 'sha256Hash');
  if (hash !== undefined && !(typeof hash === 'string' && SHA256.test(hash))) {
    throw refused(
      'PersistedQueryMalformed',
      'extensions.persistedQuery.sha256Hash must be 64 hexadecimal digits in lower case',
    );
  }
  if (documentId === undefined || documentId === null) return hash;
  if (typeof documentId !== 'string') throw refused('PersistedQueryMalformed', 'documentId must be a string');
  return documentId.startsWith(SHA256_PREFIX) ? documentId.slice(SHA256_PREFIX.length) : documentId;
}

function memberOf(value: unknown, name: string): string | unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[name] ?? undefined;
}

/** The codes are those of Apollo's protocol, whose clients go on by the name where there is one. */
function refused(name: string, message = name): GraphQLError {
  const code = name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();
  return new GraphQLError(message, { extensions: { code, http: { status: 400 } } });
}
