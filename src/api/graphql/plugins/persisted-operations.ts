import { createHash } from 'node:crypto';
import { GraphQLError } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { BoundedMap } from '../../../lib/bounded-map.ts';
import { isObject } from '../../../lib/json.ts';
import { KNOWN_MEMBERS } from '../execution/documents.ts';
import { type PersistedDocuments, withoutPrefix } from '../execution/persisted-file.ts';

const MAX_DOCUMENTS = 500;
const MAX_DOCUMENT_LENGTH = 16_384;

/** Caches what was made from the latest 500 documents, by their text; longer ones than 16,384 characters are not cached. */
export class DocumentCache<Made> extends BoundedMap<string, Made> {
  constructor() {
    super(MAX_DOCUMENTS);
  }

  override set(document: string, entry: Made): void {
    if (document.length <= MAX_DOCUMENT_LENGTH) super.set(document, entry);
  }
}

/**
 * Which documents may run. `off`: clients send documents, ids are refused. `allow`: clients send documents or ids.
 * `only`: clients may run only the documents of the file, by id or in full.
 */
export type PersistedMode = 'off' | 'allow' | 'only';

/** The members of an operation that say which document to run. */
interface SentOperation {
  query?: unknown;
  operationName?: unknown;
  /** The id of a persisted document (GraphQL over HTTP, appendix "Persisted documents"). */
  documentId?: unknown;
  /** Contains `persistedQuery.sha256Hash` in Apollo's protocol of persisted queries. */
  extensions?: unknown;
}

const SHA256 = /^[\da-f]{64}$/;

/** Decides which documents may run, and replaces ids by their documents. */
export class PersistedOperations {
  readonly #deps;
  /** The documents that clients have sent together with their hash; clients send only the hash from then on. */
  readonly #sent = new BoundedMap<string, string>(MAX_DOCUMENTS);

  constructor(deps: {
    mode: PersistedMode;
    /** Returns the persisted documents in force; called for each operation. */
    documents(): PersistedDocuments;
  }) {
    this.#deps = deps;
  }

  /**
   * Adds the document to an operation that was sent with only its id, and checks that the document may run. Removes
   * members that GraphQL over HTTP does not know, and an empty `operationName`, which is none.
   * @throws GraphQLError 400 when the id is unknown, does not match the document sent with it, or the document may not
   * run.
   */
  complete(operation: SentOperation): void {
    for (const name of Object.keys(operation) as (keyof SentOperation)[])
      if (!Object.hasOwn(KNOWN_MEMBERS, name) || (name === 'operationName' && operation[name] === ''))
        delete operation[name];
    const id = idOf(operation);
    delete operation.documentId;
    const text = operation.query === '' || operation.query === null ? undefined : operation.query;
    if (this.#deps.mode === 'off') {
      if (text === undefined && id !== undefined) throw persistedQueryError('PersistedQueryNotSupported');
      return;
    }
    if (text === undefined) {
      if (id !== undefined) operation.query = this.#find(id);
    } else if (this.#deps.mode === 'allow') {
      if (typeof text === 'string' && id !== undefined) this.#storeSent(id, text);
    } else if (
      !this.#deps
        .documents()
        .values()
        .some((listed) => listed === text)
    ) {
      throw persistedQueryError('PersistedQueryOnly', 'only persisted operations are allowed: send the id of one');
    }
  }

  #find(id: string): string {
    const document = this.#deps.documents().get(id) ?? this.#sent.get(id);
    if (document === undefined) throw persistedQueryError('PersistedQueryNotFound');
    return document;
  }

  #storeSent(id: string, text: string): void {
    const listed = this.#deps.documents().get(id);
    if (listed !== undefined ? listed !== text : id !== createHash('sha256').update(text).digest('hex')) {
      throw persistedQueryError('PersistedQueryMismatch', 'the id does not belong to the document');
    }
    if (listed === undefined && text.length <= MAX_DOCUMENT_LENGTH) this.#sent.set(id, text);
  }
}

/** Creates the Yoga plugin that gives operations over HTTP the documents that their ids stand for. */
export function usePersistedOperations(persisted: PersistedOperations): Plugin {
  return {
    onParams({ params }) {
      // Changed in place, because the audit record identifies the operation by this object. A value that is not an
      // object is refused later.
      if (isObject(params)) persisted.complete(params);
    },
  };
}

/**
 * Returns the id of an operation's document, or undefined.
 * @throws GraphQLError 400 when the id is malformed.
 */
function idOf({ documentId, extensions }: SentOperation): string | undefined {
  const hash = memberOf(memberOf(extensions, 'persistedQuery'), 'sha256Hash');
  if (hash !== undefined && !(typeof hash === 'string' && SHA256.test(hash))) {
    throw persistedQueryError(
      'PersistedQueryMalformed',
      'extensions.persistedQuery.sha256Hash must be 64 hexadecimal digits in lower case',
    );
  }
  if (documentId === undefined || documentId === null) return hash;
  if (typeof documentId !== 'string')
    throw persistedQueryError('PersistedQueryMalformed', 'documentId must be a string');
  return withoutPrefix(documentId);
}

function memberOf(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? (value[name] ?? undefined) : undefined;
}

/**
 * Creates a refusal with the code of Apollo's protocol; its clients act on the name, so `name` must be theirs where one
 * exists.
 */
function persistedQueryError(name: string, message = name): GraphQLError {
  const code = name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();
  return new GraphQLError(message, { extensions: { code, http: { status: 400 } } });
}
