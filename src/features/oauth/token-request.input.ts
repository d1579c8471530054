import { z } from 'zod';
import { isUuid, objectInput, secretText, textInput, uuidInput } from '../../lib/input.ts';
import { decodeUtf8, isJsonType, isObject, parsedOr, parsedOrNone, parseInput, repeatedIn } from '../../lib/json.ts';
import { nfc } from '../../lib/spelling.ts';
import { invalidRequest, parseOrReject, type Refusal } from '../../platform/errors.ts';

const NOT_EMPTY = 'must not be empty';
const required = () => textInput().min(1, NOT_EMPTY);
const requiredSecret = () => secretText().min(1, NOT_EMPTY);

/** The schema of a client's credentials in the body; HTTP Basic is the alternative (RFC 6749 section 2.3.1). */
export const clientInput = objectInput({ client_id: uuidInput(), client_secret: requiredSecret() });

/** The schema of a body with HTTP Basic: it may repeat the client id, but must not contain a second secret. */
export const clientBesideBasicInput = objectInput({
  client_id: uuidInput().optional(),
  client_secret: z.never('must not be given twice').optional(),
});

/** The requested scope. One that is not a text is ignored, as every unknown name is. */
const scope = z.string().optional().catch(undefined);

/** Keyboards and systems encode one letter in different ways, so passwords are compared in NFC, and usernames by their keys. */
const login = { username: required(), password: requiredSecret().overwrite(nfc) };

/** The schema of the client of a session in the console. */
export const consoleSessionInput = objectInput({ client_id: uuidInput() });

/** The schema of a sign-in to the console. */
export const consoleSignInInput = objectInput({ client_id: uuidInput(), ...login });

/** The schemas of the parameters of each grant (docs/contract.md, 4.1). */
export const grantInputs = {
  password: objectInput({ grant_type: z.literal('password'), scope, ...login }),
  client_credentials: objectInput({ grant_type: z.literal('client_credentials'), scope }),
  refresh_token: objectInput({ grant_type: z.literal('refresh_token'), scope, refresh_token: requiredSecret() }),
};

/** The schema for any grant type; one that is unknown is refused after its client has been authenticated. */
const anyGrantInput = objectInput({ grant_type: required() });

/**
 * The schema of the parameters of revocation and introspection (RFC 7009 section 2.1, RFC 7662 section 2.1);
 * `token_type_hint` is ignored.
 */
export const tokenInput = objectInput({ token: requiredSecret() });

export type GrantType = keyof typeof grantInputs;

/** The parameters of a grant. */
export type GrantRequest = z.output<(typeof grantInputs)[GrantType]>;

/**
 * Parses the parameters of a grant; returns undefined for an unknown grant type.
 * @throws Refusal `invalid_request` that names each parameter that is missing or malformed.
 */
export function parseTokenRequest(parameters: unknown): GrantRequest | undefined {
  const grantType = grantTypeOf(parameters);
  if (grantType) return parseOrReject(grantInputs[grantType], parameters);
  parseOrReject(anyGrantInput, parameters);
  return undefined;
}

/** Returns the grant type of parameters; undefined if they have none, or one that is unknown. */
function grantTypeOf(parameters: unknown): GrantType | undefined {
  const grantType = isObject(parameters) ? parameters.grant_type : undefined;
  return typeof grantType === 'string' && Object.hasOwn(grantInputs, grantType) ? (grantType as GrantType) : undefined;
}

/** The only parameter that a request may repeat (RFC 8707 section 2). */
const REPEATABLE = 'resource';

/**
 * Parses an `application/x-www-form-urlencoded` body. A parameter without a value counts as absent (RFC 6749 section
 * 3.1). `resource`, which is ignored, may be repeated.
 * @throws Refusal `invalid_request` when a name is repeated or an escape is malformed; Utf8Error when the text is not
 * UTF-8.
 */
export function parseForm(bytes: Uint8Array): Record<string, string> {
  const fields = new Map<string, string>();
  for (const pair of decodeUtf8(bytes).split('&')) {
    if (pair === '') continue;
    const [name, value] = splitOnce(pair, '=').map(decodeFormPart);
    if (name === undefined || value === undefined) {
      throw invalidRequest([{ path: '', message: 'must have % only in UTF-8 escapes such as %25' }]);
    }
    if (fields.has(name) && name !== REPEATABLE) throw repeated(name);
    fields.set(name, value);
  }
  return Object.fromEntries([...fields].filter(([, value]) => value !== ''));
}

/** Returns the refusal of a repeated parameter, with its name unless that may be a misplaced secret. */
function repeated(name: string): Refusal {
  const isSafe = /^[a-z_]{1,32}$/.test(name);
  return invalidRequest(
    [{ path: isSafe ? name : '', message: isSafe ? 'must be given once' : 'must have each parameter once' }],
    'a repeated parameter',
  );
}

/** Decodes a form-encoded name or value: `+` is a space, `%XX` a byte of UTF-8. Undefined when it is malformed. */
function decodeFormPart(part: string): string | undefined {
  return parsedOrNone(() => decodeURIComponent(part.replaceAll('+', ' ')));
}

/** Splits a text at the first separator; the second part is empty when there is no separator. */
function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + separator.length)];
}

/** The credentials of a client, from HTTP Basic or the body. */
export interface ClientCredentials {
  /** The client id: a UUID in lower case. */
  clientId: string;
  secret: string;
}

const SCHEME = /^Basic(?: |$)/i;
const BASIC = /^Basic +([A-Za-z0-9+/]+={0,2}) *$/i;

/** Checks whether an `Authorization` header uses HTTP Basic, the only scheme for clients. */
function isBasic(authorization: string | undefined): boolean {
  return authorization !== undefined && SCHEME.test(authorization);
}

/**
 * Reads a client's credentials from an HTTP Basic header, where id and secret are form-encoded (RFC 6749 section
 * 2.3.1). Undefined for another scheme, which is ignored; null when no client can have them.
 */
function basicClient(authorization: string | undefined): ClientCredentials | null | undefined {
  if (authorization === undefined || !isBasic(authorization)) return undefined;
  const base64 = BASIC.exec(authorization)?.[1];
  const text = base64 && parsedOrNone(() => decodeUtf8(Buffer.from(base64, 'base64')));
  if (!text?.includes(':')) return null;
  const [clientId, secret] = splitOnce(text, ':').map(decodeFormPart);
  if (clientId === undefined || !isUuid(clientId) || secret === undefined || secret === '') return null;
  return { clientId: clientId.toLowerCase(), secret };
}

interface Headers {
  'content-type'?: string | undefined;
  authorization?: string | undefined;
}

const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;

/**
 * Parses the body of a request to an OAuth endpoint, JSON or a form; an absent body has no parameters.
 * @throws Refusal `invalid_request` for another content type, a malformed body or a repeated parameter.
 */
function parametersOf({ 'content-type': type }: Headers, bytes: Buffer): unknown {
  if (type === undefined && bytes.length === 0) return {};
  const isForm = FORM_TYPE.test(type ?? '');
  if (!isForm && !isJsonType(type)) {
    throw invalidRequest([
      { path: 'Content-Type', message: 'must be application/json or application/x-www-form-urlencoded' },
    ]);
  }
  return parsedOr(
    () => (isForm ? parseForm(bytes) : parseJsonOnce(decodeUtf8(bytes))),
    ({ message }) => invalidRequest([{ path: '', message }]),
  );
}

/** The parameters of a request to an OAuth endpoint, and how it names its client. */
export interface ClientRequest {
  readonly parameters: unknown;
  /** The credentials in HTTP Basic: undefined without it, null when no client can have them. */
  readonly basic: ClientCredentials | null | undefined;
  /** The client id in HTTP Basic, else in the body; it may be of no client, and the request is not authenticated by it. */
  readonly namedId: string | undefined;
  /** Whether the client asks for itself, and not for a login. */
  readonly isOwn: boolean;
}

/**
 * Parses a request to an OAuth endpoint.
 * @throws Refusal `invalid_request` as `parametersOf` does.
 */
export function clientRequestOf(headers: Headers, bytes: Buffer): ClientRequest {
  const parameters = parametersOf(headers, bytes);
  const basic = basicClient(headers.authorization);
  const clientId = basic === undefined && isObject(parameters) ? parameters.client_id : basic?.clientId;
  const namedId = typeof clientId === 'string' ? clientId : undefined;
  return { parameters, basic, namedId, isOwn: grantTypeOf(parameters) !== 'password' };
}

/** Checks whether a client sends a form or HTTP Basic, as RFC 6749 specifies. */
export function isStandardRequest({ 'content-type': type, authorization }: Headers): boolean {
  return isBasic(authorization) || FORM_TYPE.test(type ?? '');
}

function parseJsonOnce(text: string): unknown {
  const value = parseInput(text);
  const name = [...(repeatedIn(value) ?? [])].find((candidate) => candidate !== REPEATABLE);
  if (name !== undefined) throw repeated(name);
  return value;
}
