import { invalidRequest } from '../errors/app-error.ts';
import { parseForm } from '../lib/form.ts';
import { decodeUtf8, Utf8Error } from '../lib/json.ts';
import { repeatsMember } from '../lib/json-members.ts';
import { isBasic } from './basic-client.rules.ts';

interface Headers {
  'content-type'?: string | undefined;
  authorization?: string | undefined;
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;
const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;

/**
 * The parameters in the body of a request to an OAuth endpoint: JSON or a form; no body at all is none.
 * @throws AppError 400 for another content type, malformed text or a repeated parameter.
 */
export function parametersOf({ 'content-type': type }: Headers, bytes: Buffer): unknown {
  if (type === undefined && bytes.length === 0) return {};
  const isForm = FORM_TYPE.test(type ?? '');
  if (!isForm && !JSON_TYPE.test(type ?? '')) {
    throw invalidRequest([
      { path: 'Content-Type', message: 'must be application/json or application/x-www-form-urlencoded' },
    ]);
  }
  const parameters = isForm ? parseForm(bytes) : parseJsonOnce(bytes);
  if (parameters === undefined) {
    throw invalidRequest([{ path: '', message: 'must be well-formed in UTF-8, with each parameter once' }]);
  }
  return parameters;
}

/** Whether a client speaks as RFC 6749 has it: in a form, or by HTTP Basic. */
export function isStandardRequest({ 'content-type': type, authorization }: Headers): boolean {
  return isBasic(authorization) || FORM_TYPE.test(type ?? '');
}

function parseJsonOnce(bytes: Buffer): unknown {
  try {
    const text = decodeUtf8(bytes);
    const value: unknown = JSON.parse(text);
    return repeatsMember(text) ? undefined : value;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof Utf8Error) return undefined;
    throw error;
  }
}
