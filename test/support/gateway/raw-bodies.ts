import { answered, BODY, CHUNKED, CHUNKS, closing, LENGTH, post, type RawRow, refused } from './raw-row.ts';

const N = BODY.length;
const SIZE = N.toString(16);

const lengths: RawRow[] = [
  ...[` ${N}`, `${N}`, `\t${N} \t`, ` 000${N}`].map((length) =>
    answered(`the length "${length}"`, post([`Content-Length:${length}`], BODY), 200),
  ),
  ...['', `+${N}`, '-1', '0x5', `${N}.0`, '1e2', '5 5', `${N}, ${N}`, '\u0665', '9'.repeat(1_000)].map((length) =>
    refused(`the length "${length}"`, post([`Content-Length: ${length}`], BODY)),
  ),
  refused('one length twice', post([LENGTH, LENGTH], BODY)),
  refused('two lengths', post([LENGTH, 'Content-Length: 5'], BODY)),
  refused('a length behind a space', post([`Content-Length : ${N}`], BODY)),
  refused('a folded length', post([`Content-Length:\r\n ${N}`], BODY)),
  closing('a length by another name', post([LENGTH.replace('-', '_')], BODY), 400),
  closing('a length over the limit', post(['Content-Length: 9007199254740991'], BODY), 400),
  closing('a body behind the length', post(['Content-Length: 2'], '{}XX'), 400),
  closing('a byte behind a complete notification', post([LENGTH], `${BODY}}`), 200),
  answered('a length of nothing', post(['Content-Length: 0'], ''), 400),
];

const coded = (coding: string) => post([`Transfer-Encoding: ${coding}`], CHUNKS);

const codings: RawRow[] = [
  ...['chunked', 'Chunked', '\tchunked '].map((coding) => answered(`the coding "${coding}"`, coded(coding), 200)),
  ...['', 'chunked, identity', 'chunked, chunked', '\vchunked', 'chunked\0'].map((coding) =>
    refused(`the coding "${coding}"`, coded(coding)),
  ),
  ...['identity', 'xchunked', 'chunked;q=1', '"chunked"', 'gzip, chunked', 'x, y, chunked'].map((coding) =>
    closing(`the coding "${coding}"`, coded(coding), 400),
  ),
  refused('chunked twice', post([CHUNKED, CHUNKED], CHUNKS)),
  refused('chunked before a length', post([CHUNKED, LENGTH], CHUNKS)),
  refused('chunked behind a length', post([LENGTH, CHUNKED], CHUNKS)),
  refused('chunked behind a space', post(['Transfer-Encoding : chunked'], CHUNKS)),
  refused('chunked on a folded line', post(['Transfer-Encoding:\r\n chunked'], CHUNKS)),
  closing('chunked by another name', post([CHUNKED.replace('-', '_')], CHUNKS), 400),
  closing('chunked in HTTP/1.0', post([CHUNKED, 'Connection: keep-alive'], CHUNKS, 'HTTP/1.0'), 400),
];

const chunked = (chunks: string) => post([CHUNKED], chunks);
const trailed = (trailers: string) => chunked(CHUNKS.replace(/\r\n$/, `${trailers}\r\n\r\n`));
const BYTES = [...BODY].map((byte) => `1\r\n${byte}\r\n`).join('');

const chunks: RawRow[] = [
  answered('leading zeros and capitals', chunked(CHUNKS.replace(SIZE, `000${SIZE.toUpperCase()}`)), 200),
  answered('a chunk for each byte', chunked(`${BYTES}0\r\n\r\n`), 200),
  ...[';a=b', ';a', ';a="b c"', ';a=b;c=d'].map((extension) =>
    answered(`the extension ${extension}`, chunked(CHUNKS.replace(SIZE, `${SIZE}${extension}`)), 200),
  ),
  ...['', 'g', '-1', '+5', '0x5', ' 5', `${SIZE} `, `${SIZE}\n`, `${SIZE}\r`, 'f'.repeat(17), `${SIZE};a\0`].map(
    (size) => closing(`the size ${JSON.stringify(size)}`, chunked(CHUNKS.replace(SIZE, size)), 400),
  ),
  closing('an extension of 20,000 bytes', chunked(CHUNKS.replace(SIZE, `${SIZE};a=${'b'.repeat(20_000)}`)), 400),
  closing('a size that ends in LF', chunked(CHUNKS.replace(`${SIZE}\r`, SIZE)), 400),
  closing('a chunk that is longer than its size', chunked(CHUNKS.replace('}', '}}}}')), 400),
  closing('a chunk that ends in LF', chunked(CHUNKS.replace('}\r\n', '}\n')), 400),
  answered('trailers', trailed('X-A: b'), 200),
  answered('trailers that would frame', trailed('Host: y\r\nX-Target-Server: z'), 200),
  answered(
    'a trailer that would grant',
    trailed('Authorization: {basic}').replace('Authorization: {basic}\r\n', ''),
    401,
  ),
  closing('a trailer without a colon', trailed('A b'), 400),
  closing('trailers of 200,000 bytes', trailed(`A: ${'x'.repeat(200_000)}`), 400),
];

/** Bodies and their ends, by RFC 9112 sections 6 and 7. */
export const BODY_ROWS: readonly RawRow[] = [lengths, codings, chunks].flat();
