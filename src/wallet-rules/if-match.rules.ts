import { invalidRequest } from '../errors/app-error.ts';

const ENTITY_TAG = /[\t ]*(?:(W\/)?"([\x21\x23-\x7e\x80-\xff]*)")?[\t ]*(?:,|$)/y;
const VERSION = /^[1-9]\d{0,9}$/;
const MAX_VERSION = 2_147_483_647;

/**
 * The versions that an `If-Match` header lets through (RFC 9110 section 13.1.1); undefined: any, as without the header.
 * A weak tag, and one that is no version, matches nothing.
 * @throws AppError 400 for a value that is neither `*` nor a list of entity tags.
 */
export function versionsOf(header: string | undefined): number[] | undefined {
  if (header === undefined || header.trim() === '*') return undefined;
  const versions: number[] = [];
  ENTITY_TAG.lastIndex = 0;
  while (ENTITY_TAG.lastIndex < header.length) {
    const match = ENTITY_TAG.exec(header);
    if (!match)
      throw invalidRequest([{ path: 'If-Match', message: 'must be * or a list of entity tags, such as "1"' }]);
    const [, weak, tag = ''] = match;
    if (weak === undefined && VERSION.test(tag) && Number(tag) <= MAX_VERSION) versions.push(Number(tag));
  }
  return [...new Set(versions)];
}

/** The entity tag of a version (RFC 9110 section 8.8.3). */
export function entityTag(version: number): string {
  return `"${version}"`;
}
