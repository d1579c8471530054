import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import { GraphQLError } from 'graphql';
import type { GraphQLParams } from 'graphql-yoga';
import type { OnAccessEnd } from '../../../access/revocation/access-watch.ts';
import { BODY_WEIGHT, type Exchange, isIdentity, sendContinue } from '../../../gateway/exchange/exchange.ts';
import { type ChargedWorker, isObject, parsedOr, parseInput, readInput } from '../../../lib/json.ts';
import { runCooperatively } from '../../../lib/yielding.ts';
import { invalidRequest, payloadTooLarge, Refusal } from '../../../platform/errors.ts';
import type { HeldMemory } from '../../../platform/held-memory.ts';
import { Upload } from '../kit/resolvers.ts';
import { KNOWN_MEMBERS } from './documents.ts';

const FILE_PATH = /^variables\.(?!__)([A-Za-z_]\w*)$/;

/** The part `map` of a multipart request, which says where the file belongs. */
interface UploadMap {
  /** The name of the part that is the file. */
  part: string;
  /** The name of the variable that the file replaces. */
  variable: string;
}

/** Returns a 400 error that names the part of a multipart request to change. */
function badPart(path: string, message: string): Refusal {
  return invalidRequest([{ path, message }]);
}

/**
 * Reads the part `operations`, which is one operation as JSON (GraphQL multipart request specification).
 * @throws Refusal 400 when it is not a JSON object, such as a batch.
 */
async function readOperations(text: string, worker: ChargedWorker | undefined): Promise<GraphQLParams> {
  const operations = await readInput(text, ({ message }) => badPart('operations', message), worker, KNOWN_MEMBERS);
  if (Array.isArray(operations)) throw badPart('operations', 'must be one operation: a batch cannot have a file');
  if (!isObject(operations)) throw badPart('operations', 'must be a JSON object with query and variables');
  return operations;
}

/**
 * Parses the part `map`, which names one file and the one variable it is for, such as `{"0": ["variables.file"]}`.
 * @throws Refusal 400 when it has any other form.
 */
function parseMap(text: string): UploadMap {
  const map = parsedOr(
    () => parseInput(text, 'any'),
    ({ message }) => badPart('map', message),
  );
  const [entry, ...otherEntries] = isObject(map) ? Object.entries(map) : [];
  if (!entry || otherEntries.length > 0) throw badPart('map', 'must be a JSON object with one member, for one file');
  const [part, paths] = entry;
  if (!Array.isArray(paths) || paths.length !== 1) throw badPart('map', 'must name one variable for the file');
  const variable = FILE_PATH.exec(String(paths[0]))?.[1];
  if (variable === undefined) throw badPart('map', 'must name the variable of the file, such as "variables.file"');
  return { part, variable };
}

/**
 * Returns the operation with the file as the value of its variable.
 * @throws Refusal 400 when that variable is not null.
 */
function withFile(operations: GraphQLParams, variable: string, file: unknown): GraphQLParams {
  const variables: unknown = operations.variables;
  const isPlace = isObject(variables) && Object.hasOwn(variables, variable) && variables[variable] === null;
  if (!isPlace) throw badPart('operations', `must set variables.${variable} to null: the file takes its place`);
  return { ...operations, variables: { ...variables, [variable]: file } };
}

/** What an upload depends on. */
export interface UploadDependencies {
  limits: UploadLimits;
  /** Watches the sender's access, whose end ends the upload; returns the function that stops it. */
  watch(onEnd: OnAccessEnd): () => void;
}

/** The maximum size of a multipart request, in bytes, and the longest time without a byte from the sender, in ms. */
export const UPLOAD_LIMITS = { maxBytes: 1024 ** 3, maxPauseMs: 60_000 };
export type UploadLimits = typeof UPLOAD_LIMITS;

const MAX_FIELD_BYTES = 1024 ** 2;
/** The maximum size of what precedes the file, in bytes: both fields and the headers of the parts. */
const MAX_PREFACE_BYTES = MAX_FIELD_BYTES + 128 * 1024;
/** The number of parts: `operations`, `map` and the file. */
const PARTS = 3;
const ORDER = 'send the parts operations, map and one file, in this order';

/**
 * A request with a file (GraphQL multipart request specification, version 2), read as a stream: `open` reads up to the
 * beginning of the file, and the rest is read as the file is consumed.
 */
export class UploadForm {
  readonly #req: IncomingMessage;
  readonly #parser: BusboyInstance;
  readonly #maxBytes: number;
  readonly #held: HeldMemory | undefined;
  readonly #unwatch: () => void;
  readonly #pause: NodeJS.Timeout;
  readonly #opened = Promise.withResolvers<GraphQLParams>();
  readonly #ended = Promise.withResolvers<void>();
  #next: 'operations' | 'map' | 'file' | 'end' = 'operations';
  #bytes = 0;
  #fieldBytes = 0;
  /** What the part `operations` has become; undefined if it is invalid, which refuses the request. */
  #operations: Promise<GraphQLParams | undefined> | undefined;
  #map: UploadMap | undefined;
  #file: Readable | undefined;
  #refusal: Refusal | undefined;
  #isStopped = false;
  /** Settles when the parser has all chunks that have come. */
  #taken: Promise<unknown> = Promise.resolve();
  /** Whether the parser has to be read before it takes more. */
  #isWaiting = false;

  private constructor(
    { req, held }: Exchange,
    parser: BusboyInstance,
    { limits: { maxBytes, maxPauseMs }, watch }: UploadDependencies,
  ) {
    this.#req = req;
    // What precedes the file is held until the form ends; the file streams through.
    this.#held = held;
    if (held) held.giveUp = this.#giveUp;
    this.#unwatch = watch(this.#giveUp);
    this.#parser = parser;
    this.#maxBytes = maxBytes;
    this.#pause = setTimeout(() => this.#onPause(), maxPauseMs);
    // The reader of the file gets this rejection; without a reader, `refusal` becomes the response.
    this.#ended.promise.catch(() => undefined);
    parser.on('field', (name, value, _isNameCut, isCut) => this.#step(() => this.#field(name, value, isCut)));
    parser.on('file', (name, file) => this.#step(() => this.#begin(name, file)));
    for (const event of ['filesLimit', 'partsLimit'] as const) {
      parser.on(event, () => this.refuse(badPart('', `has too many parts: ${ORDER}`)));
    }
    parser.on('error', () => this.refuse(badPart('', 'must end with the closing boundary')));
    parser.on('finish', () => this.#finish());
    req.on('data', this.#onData).on('end', this.#onEnd).on('close', this.#onClose);
  }

  /**
   * Reads a form up to the beginning of its file.
   * @throws Refusal 413 when Content-Length is over the limit, 400 when the form is no valid upload, 401 when the token
   * is revoked; all before the file is read.
   */
  static async open(
    exchange: Exchange,
    parts: UploadDependencies,
  ): Promise<{ form: UploadForm; params: GraphQLParams }> {
    const { req } = exchange;
    const { limits } = parts;
    const { 'content-length': length = '0', 'content-encoding': encoding } = req.headers;
    if (Number(length) > limits.maxBytes) throw payloadTooLarge(limits.maxBytes);
    if (!isIdentity(encoding)) throw badPart('Content-Encoding', 'must be identity');
    const form = new UploadForm(exchange, parserOf(req), parts);
    sendContinue(exchange);
    return { form, params: await form.#opened.promise };
  }

  /**
   * The error to respond with instead of the operation's result, because a part of the form was invalid; undefined if
   * none was.
   */
  get refusal(): Refusal | undefined {
    return this.#refusal;
  }

  /** Stops reading the request. */
  stop(): void {
    this.#isStopped = true;
    this.#unwatch();
    clearTimeout(this.#pause);
    this.#req.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose).pause();
    this.#file?.destroy();
  }

  /** Stops reading the request, and rejects what waits for its parts. */
  refuse(refusal: Refusal): void {
    if (this.#refusal) return;
    this.#refusal = refusal;
    this.#opened.reject(refusal);
    this.#ended.reject(interrupted());
    this.stop();
  }

  readonly #giveUp = (refusal: Refusal): void => this.refuse(refusal);

  readonly #onData = (chunk: Buffer): void => {
    this.#pause.refresh();
    // Many senders' chunks arrive in one iteration of the event loop.
    const taking = runCooperatively(() => this.#take(chunk), this.#held);
    if (!taking) return;
    this.#req.pause();
    this.#taken = taking.then(
      () => this.#isWaiting || this.#resume(),
      (refusal) => this.refuse(refusal),
    );
  };

  #take(chunk: Buffer): void {
    if (this.#isStopped) return;
    this.#bytes += chunk.length;
    if (this.#bytes > this.#maxBytes) this.refuse(payloadTooLarge(this.#maxBytes));
    else if (!this.#parser.write(chunk)) this.#waitForParser();
    if (this.#file || this.#isStopped) return;
    if (this.#bytes > MAX_PREFACE_BYTES) {
      this.refuse(badPart('', `has too many bytes before the file: ${ORDER}`));
      return;
    }
    this.#held?.charge(BODY_WEIGHT * chunk.length);
  }

  readonly #onEnd = (): void => {
    clearTimeout(this.#pause);
    // The last chunk may still wait for its turn.
    void this.#taken.then(() => this.#parser.end());
  };

  readonly #onClose = (): void => {
    this.#unwatch();
    if (!this.#req.complete) this.refuse(badPart('', 'ended before the file was complete'));
  };

  /**
   * Refuses a sender that has paused for too long. While the request is paused because the file is not being read, the
   * timeout is restarted instead.
   */
  #onPause(): void {
    if (this.#req.isPaused()) this.#pause.refresh();
    else this.refuse(badPart('', 'was paused for too long: send the file without pauses'));
  }

  #waitForParser(): void {
    this.#isWaiting = true;
    this.#req.pause();
    this.#parser.once('drain', () => {
      this.#isWaiting = false;
      this.#resume();
    });
  }

  #resume(): void {
    if (this.#isStopped) return;
    this.#pause.refresh();
    this.#req.resume();
  }

  /** Runs a handler of a parser event; an Refusal that it throws becomes the refusal of the request. */
  #step(step: () => void): void {
    if (this.#refusal) return;
    try {
      step();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.refuse(error);
    }
  }

  #field(name: string | undefined, value: string, isCut: boolean): void {
    if (name !== this.#next) throw badPart(name?.slice(0, 64) ?? '', `is out of place: ${ORDER}`);
    this.#fieldBytes += Buffer.byteLength(value);
    if (isCut || this.#fieldBytes > MAX_FIELD_BYTES)
      throw badPart(name, 'is too long: operations and map together have at most 1 MiB');
    if (name === 'operations') {
      this.#operations = this.#readOperations(value);
      this.#next = 'map';
      return;
    }
    this.#map = parseMap(value);
    this.#next = 'file';
  }

  #begin(name: string | undefined, file: Readable): void {
    this.#file = file;
    // The stream fails together with the form, even if it is not read.
    file.on('error', () => undefined);
    if (this.#next !== 'file' || !this.#map) throw badPart(name?.slice(0, 64) ?? '', `is out of place: ${ORDER}`);
    if (name !== this.#map.part) throw badPart('map', 'must name the part of the file');
    this.#next = 'end';
    const upload = new Upload(() => this.#bytesOf(file));
    const { variable } = this.#map;
    void this.#operations?.then((operations) =>
      this.#step(() => operations && this.#opened.resolve(withFile(operations, variable, upload))),
    );
  }

  async #readOperations(text: string): Promise<GraphQLParams | undefined> {
    try {
      return await readOperations(text, this.#held);
    } catch (error) {
      this.#step(() => {
        throw error;
      });
      return undefined;
    }
  }

  #finish(): void {
    if (this.#next === 'end') this.#ended.resolve();
    else this.refuse(badPart(this.#next, `is missing: ${ORDER}`));
  }

  async *#bytesOf(file: Readable): AsyncGenerator<Uint8Array, void, void> {
    try {
      yield* file;
    } catch (error) {
      throw this.#refusal ? interrupted() : error;
    }
    // The parts after the file may still be invalid.
    await this.#ended.promise;
  }
}

function parserOf({ headers }: IncomingMessage): BusboyInstance {
  const { 'content-type': type = '' } = headers;
  const limits = { fieldSize: MAX_FIELD_BYTES + 1, files: 1, parts: PARTS };
  let part = 0;
  // Parts count by their order: browsers may send the first ones as Blobs, with a file name and a type.
  const isPartAFile = (_name: string | undefined, mediaType: string | undefined, fileName: string | undefined) => {
    part += 1;
    return part >= PARTS && (mediaType === 'application/octet-stream' || fileName !== undefined);
  };
  try {
    return new Busboy({ headers: { ...headers, 'content-type': type }, limits, isPartAFile });
  } catch {
    throw badPart('Content-Type', 'must be multipart/form-data with a boundary');
  }
}

/**
 * Returns the error that the reader of the file gets. No caller sees it, since the request is answered with its
 * refusal.
 */
function interrupted(): GraphQLError {
  return new GraphQLError('the upload was interrupted', { extensions: { code: 'BAD_REQUEST' } });
}
