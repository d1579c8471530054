import { isObject } from '../lib/json.ts';
import { JsonScanner, type ScanEnd } from '../lib/json-scanner.ts';
import { MASK, maskValues } from './mask-values.ts';
import { IS_LABELLED, type MaskedKind, SECRETS, type SecretNames } from './masked-names.ts';
import { JWK_MEMBERS, LABELLED_VALUE, LABELS } from './secret-names.ts';

/**
 * The result of masking JSON: `text` is what was read, masked; `masked` says whether anything was replaced. `end` says how
 * the scan ended, and `endAt` where.
 */
type MaskedJson = { text: string; end: ScanEnd; endAt: number; masked: boolean };

type MaskOptions = {
  /** The number of documents in whose strings the text is. */
  embedding: number;
  /** Masking may stop when the output has this many UTF-16 units. */
  maxLength?: number | undefined;
  /**
   * The names of members to mask in addition to secret keys, in a response of a known schema: objects under keys that only end in a
   * secret's name are
   * not masked as a whole there.
   */
  names?: ReadonlySet<string> | undefined;
  secrets?: SecretNames | undefined;
};

/** Matches what every string with an assignment, a document, credentials, or a value that may have been escaped contains. */
const MAY_HOLD_SECRET = /[:=[{"@%]|\\u|bearer|basic|BEGIN|prv|whsec_|SECRET-KEY|PuTTY|\.[\w-]*\./i;
const LITERALS = ['true', 'false', 'null'];
/** Matches what follows the bracket of a list that is empty or begins with a number. */
const FIRST_NUMBER = /^[\s[]*[-\d\]]/;
/** Matches what follows the bracket of a list that begins with an object. */
const FIRST_OBJECT = /^\s*\{/;
const MAX_SPACE = 256;

/** Masks one JSON text in one pass; every byte that is not replaced stays as it was. */
class JsonMasker {
  readonly #text: string;
  readonly #options: MaskOptions;
  readonly #scanner: JsonScanner;
  readonly #secrets: SecretNames;
  readonly #hidden: ReadonlyMap<number, MaskedKind>;
  readonly #pieces: string[] = [];
  #copiedUpTo = 0;
  #dropped = 0;
  /** Which values of the last name are secrets. */
  #kind: MaskedKind = 'none';
  /** Whether the last name is a field of a schema that is known: an object has members with names of their own. */
  #isTyped = false;
  /** The depth at which the secret value being skipped stands; -1 outside one. */
  #secretDepth = -1;

  constructor(text: string, options: MaskOptions) {
    this.#text = text;
    this.#options = options;
    this.#secrets = options.secrets ?? SECRETS;
    const from = text.charCodeAt(0) === 0xfeff ? 1 : 0;
    this.#scanner = new JsonScanner(text, from);
    this.#hidden = hiddenValues(text, from, this.#secrets);
  }

  run(): MaskedJson {
    const scanner = this.#scanner;
    const { maxLength = Number.POSITIVE_INFINITY } = this.#options;
    while (this.#secretDepth !== -1 || scanner.end - this.#dropped < maxLength) {
      const token = scanner.next();
      switch (token) {
        case 'complete':
        case 'cut':
        case 'error':
          if (
            token === 'error' &&
            this.#kindOf(scanner.start) !== 'none' &&
            scanner.isBeforeValue &&
            !this.#isCutLiteral()
          )
            this.#startSecret(scanner.depth);
          return this.#finish(token, scanner.start);
        case 'name':
          if (this.#secretDepth === -1) this.#name();
          break;
        case '{':
        case '[':
          if (this.#isSecret(token)) this.#startSecret(scanner.depth - 1);
          this.#kind = 'none';
          break;
        default:
          if (this.#isSecret(token)) this.#startSecret(scanner.depth);
          else if (token === 'string' && this.#secretDepth === -1) this.#maskString();
          if (this.#secretDepth === scanner.depth && !scanner.isOpen) this.#endSecret();
          this.#kind = 'none';
      }
    }
    return this.#finish('cut', scanner.end);
  }

  #finish(end: ScanEnd, endAt: number): MaskedJson {
    const isMasked = this.#pieces.length > 0;
    if (this.#secretDepth === -1) this.#pieces.push(this.#text.slice(this.#copiedUpTo, endAt));
    return { text: this.#pieces.join(''), end, endAt, masked: isMasked };
  }

  #name(): void {
    const name = this.#scanner.string;
    this.#maskString();
    const isMasked = this.#options.names?.has(name) === true;
    this.#isTyped = this.#options.names !== undefined && !isMasked && !this.#secrets.isListed(name);
    this.#kind = isMasked ? 'any' : this.#secrets.kindOf(name);
  }

  #kindOf(start: number): MaskedKind {
    return this.#secretDepth === -1 ? (this.#hidden.get(start) ?? this.#kind) : 'none';
  }

  /** Checks whether the value that begins with a token is a secret by its name. */
  #isSecret(token: string): boolean {
    const { start, end } = this.#scanner;
    const kind = this.#kindOf(start);
    if (kind === 'none' || token === '}' || token === ']') return false;
    const next = token === '[' ? this.#text.slice(end, end + MAX_SPACE) : '';
    if (this.#isTyped && !this.#hidden.has(start) && (token === '{' || FIRST_OBJECT.test(next))) return false;
    if (kind === 'any') return token !== 'scalar' || !LITERALS.includes(this.#text.slice(start, end));
    return token !== 'scalar' && !(token === '[' && FIRST_NUMBER.test(next));
  }

  /** Checks whether the text ends within a literal. */
  #isCutLiteral(): boolean {
    const remainder = this.#text.slice(this.#scanner.start);
    return LITERALS.some((literal) => literal.startsWith(remainder));
  }

  #startSecret(depth: number): void {
    const { start } = this.#scanner;
    this.#replace(start, start, `"${MASK}"`);
    this.#secretDepth = depth;
  }

  #endSecret(): void {
    this.#dropped += this.#scanner.end - this.#copiedUpTo;
    this.#copiedUpTo = this.#scanner.end;
    this.#secretDepth = -1;
  }

  /** Masks the string that was read last as an embedded document, and what its escapes hide. */
  #maskString(): void {
    const { start, end, isOpen, string } = this.#scanner;
    if (!MAY_HOLD_SECRET.test(string)) return;
    const embedded = maskEmbedded(string, this.#secrets, this.#options.embedding + 1);
    // Without escapes, its values were masked with those of the whole text.
    const isEscaped = this.#text.slice(start, end).includes('\\');
    const masked = isEscaped ? maskValues(embedded, startsDocument(embedded)) : embedded;
    if (masked === string) return;
    const quoted = JSON.stringify(masked);
    this.#replace(start, end, isOpen ? quoted.slice(0, -1) : quoted);
  }

  /** Replaces the text from `start` to `end` in the output. */
  #replace(start: number, end: number, replacement: string): void {
    this.#pieces.push(this.#text.slice(this.#copiedUpTo, start), replacement);
    this.#copiedUpTo = end;
    this.#dropped += end - start - replacement.length;
  }
}

// The deepest level of documents within strings of documents that is searched; deeper ones are masked whole.
const MAX_EMBEDDING = 4;

// Matches JSON escapes of printable ASCII and white space, which may hide the name of a secret or the colon behind it.
const ESCAPED_ASCII = /\\u00(?:[2-7]|0[9ad])/i;

const DOCUMENT_START = /^\s*[[{"]/;

/** Matches the keyword or the comment with which a GraphQL document begins, unless it begins with a brace. */
const DOCUMENT_WORD = String.raw`(?:query|mutation|subscription|fragment)\b|#`;
const OPERATION_START = new RegExp(String.raw`^[\s,\ufeff]*(?:${DOCUMENT_WORD})`);
/** Matches the document of a GraphQL operation in a JSON body. */
const OPERATION_BODY = new RegExp(String.raw`"query"\s*:\s*"(?:[\s,]|\\[nrt])*(?:${DOCUMENT_WORD}|\{)`);

/** Checks whether a JSON body is a GraphQL operation, or several. */
export function isOperationBody(body: Buffer | string): boolean {
  return body.includes('"query"') && OPERATION_BODY.test(body.toString());
}

/** Matches where a GraphQL document declares a variable without a default, or uses one: what follows is no secret. */
const VARIABLE = /\$\w+\s*:\s*[\w[\]!]+(?![\w[\]!]|\s*=)|:\s*\$/g;

/** Masks a GraphQL document by dropping everything from the first literal of a secret argument on. */
function maskOperation(text: string, secrets: SecretNames): string {
  const at = secrets.secretValueAt(text.replace(VARIABLE, (variable) => variable.replace(':', '_')));
  return at === -1 ? text : text.slice(0, at) + MASK;
}

/** Matches the names of members that others may make secret, the pairs of a list of lists, and an escape that may spell one. */
const HIDEABLE = new RegExp(
  String.raw`"(?:${Object.keys(JWK_MEMBERS).join('|')}|${LABELLED_VALUE})\\*"\s*:|\[\s*\[|,\s*\[|\\u`,
  'iu',
);

/** Matches what may be a name, and no document or sentence. */
const NAME = /^[^"{}=,\\]{1,64}$/;

/** Checks whether a member of a parsed object is secret because of another one: in a JWK, or `value` beside a secret name. */
export function isHidden(owner: unknown, name: string, secrets: SecretNames): boolean {
  if (!isObject(owner)) return false;
  const isSecret = (text: unknown) =>
    typeof text === 'string' && NAME.test(text) && secrets.kindBeside(text) !== 'none';
  if (Object.hasOwn(JWK_MEMBERS, name)) return 'kty' in owner;
  return IS_LABELLED.test(name) && LABELS.some((label) => [owner[label]].flat().some(isSecret));
}

/** Checks whether the end of a text may cut off what makes a member secret: the `kty` of a JWK, or the name of a value. */
export function mayCutLabel(text: string): boolean {
  return HIDEABLE.test(text);
}

/** An object or list that is read: which values in it another may make secret, and what is known of that one so far. */
interface Container {
  isList: boolean;
  /** Whether it is the list of a path, any of whose names says what its owner's value holds. */
  isPath: boolean;
  isKey: boolean;
  keyMembers: number[];
  /** Where `value` begins, or the second element of a list in a list; and how it is masked, as far as its name has come. */
  values: number[];
  label: MaskedKind | undefined;
  elements: number;
}

/**
 * Returns where in a JSON text the values begin that are secret because of another member: those of JWKs, `value` or
 * `input` beside a secret name or a path with one, and what follows one in a list of pairs. An object whose end or whose other member is cut off counts as one.
 */
function hiddenValues(text: string, from: number, secrets: SecretNames): ReadonlyMap<number, MaskedKind> {
  const hidden = new Map<number, MaskedKind>();
  if (!HIDEABLE.test(text)) return hidden;
  const scanner = new JsonScanner(text, from);
  const open: Container[] = [];
  const hide = ({ isKey, keyMembers, values, label = 'none' }: Container) => {
    if (isKey) for (const start of keyMembers) hidden.set(start, 'any');
    if (label !== 'none') for (const start of values) hidden.set(start, label);
  };
  let name = '';
  for (
    let token = scanner.next();
    token !== 'complete' && token !== 'cut' && token !== 'error';
    token = scanner.next()
  ) {
    const container = token === '}' || token === ']' ? open.pop() : open.at(-1);
    if (token === 'name') name = scanner.string.toLowerCase();
    else if (token === '}' || token === ']') {
      if (container && (!container.isList || (container.elements === 2 && open.at(-1)?.isList))) hide(container);
    } else {
      const names = token === 'string' ? secrets : undefined;
      if (container) readValue(container, name, scanner, names);
      const owner = container?.isPath ? open.at(-2) : undefined;
      if (owner) readLabel(owner, scanner, names);
      const isList = token === '[';
      const isPath = isList && container?.isList === false && LABELS.includes(name);
      if (token === '{' || isList)
        open.push({ isList, isPath, isKey: false, keyMembers: [], values: [], label: undefined, elements: 0 });
    }
  }
  for (const container of open) {
    const isText = (start: number) => !'{['.includes(text.charAt(start));
    const { isList, values, label } = container;
    hide({ ...container, isKey: true, ...(isList || label ? {} : { values: values.filter(isText), label: 'any' }) });
  }
  return hidden;
}

/** Notes a value of an object or list; `secrets` says whether it is the name of a secret, if it is text. */
function readValue(container: Container, name: string, scanner: JsonScanner, secrets?: SecretNames): void {
  const { isList, elements } = container;
  const { start } = scanner;
  container.elements += 1;
  if (isList ? elements === 0 : LABELS.includes(name)) readLabel(container, scanner, secrets);
  else if (isList ? elements === 1 : IS_LABELLED.test(name)) container.values.push(start);
  else if (name === 'kty') container.isKey = true;
  else if (Object.hasOwn(JWK_MEMBERS, name)) container.keyMembers.push(start);
}

function readLabel(container: Container, { string }: JsonScanner, secrets?: SecretNames): void {
  const { label } = container;
  container.label = label && label !== 'none' ? label : NAME.test(string) ? secrets?.kindBeside(string) : undefined;
}

/** Checks whether the text begins as a JSON object, array or string does. */
export function startsDocument(text: string): boolean {
  return DOCUMENT_START.test(text);
}

/**
 * Masks a JSON text by the names of its keys, including documents inside its strings, and the members called one of
 * `names`: the whole value becomes `"***"`, at any depth. Drops everything from the first syntax error on. The text may be
 * truncated; a secret at its end still becomes `"***"`.
 */
export function maskJson(text: string, options: Omit<MaskOptions, 'embedding'> = {}): MaskedJson {
  return new JsonMasker(text, { ...options, embedding: 0 }).run();
}

/** Masks a JSON or GraphQL document inside another text (a form value, a string); masks other text as free text. */
export function maskEmbedded(text: string, secrets: SecretNames = SECRETS, embedding = 1): string {
  if (!startsDocument(text)) return OPERATION_START.test(text) ? maskOperation(text, secrets) : secrets.maskText(text);
  if (embedding > MAX_EMBEDDING) return MASK;
  const scanned = new JsonMasker(text, { embedding, secrets }).run();
  if (scanned.end !== 'error') return scanned.text;
  // Much text that begins with a bracket is not JSON: the rest is returned unless it may hold a secret.
  const remainder = text.slice(scanned.endAt);
  const isSuspect = scanned.masked || ESCAPED_ASCII.test(remainder) || secrets.maskText(remainder) !== remainder;
  return isSuspect ? scanned.text : scanned.text + remainder;
}
