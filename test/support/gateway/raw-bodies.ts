import { answered, BODY, CHUNKED, CHUNKS, closing, LENGTH, OWN, post, type RawRow, refused } from './raw-row.ts';

const lengths: RawRow[] = [
  ...[` ${BODY.length}`, `${BODY.length}`, `\t${BODY.length} \t`, ` 000${BODY.length}`].map((length) =>
    answered(`the length "${length}"`, post([`Content-Length:${length}`], BODY), 200),
  ),
  ...[
    '',
    `+${BODY.length}`,
    '-1',
    '0x5',
    `${BODY.length}.0`,
    '1e2',
    '1_0',
    '5 5',
    '5,',
    `${BODY.length}, ${BODY.length}`,
    '\u0665',
    'five',
  ].map((length) => refused(`the length "${length}"`, post([`Content-Length: ${length}`], BODY))),
  refused('a length of 64 bits and more', post(['Content-Length: 18446744073709551621'], BODY)),
  refused('a length of 1,000 digits', post([`Content-Length: ${'9'.repeat(1_000)}`], BODY)),
  refused('one length twice', post([LENGTH, LENGTH], BODY)),
  refused('two lengths', post([LENGTH, 'Content-Length: 5'], BODY)),
  refused('a length behind a space', post([`Content-Length : ${BODY.length}`], BODY)),
  refused('a folded length', post([`Content-Length:\r\n ${BODY.length}`], BODY)),
  closing('a length by another name', post([LENGTH.replace('-', '_')], BODY), 400),
  closing('a length over the limit', post(['Content-Length: 9007199254740991'], BODY), 400),
  closing('a body behind the length', post(['Content-Length: 2'], '{}XX'), 400),
  closing('a byte behind a complete notification', post([LENGTH], `${BODY}}`), 200),
  answered('a length of nothing', post(['Content-Length: 0'], ''), 400),
];

const codings: RawRow[] = [
  ...['chunked', 'CHUNKED', 'Chunked', '\tchunked '].map((coding) =>
    answered(`the coding "${coding}"`, post([`Transfer-Encoding: ${coding}`], CHUNKS), 200),
  ),
  ...['', 'chunked, identity', 'chunked, chunked', '\vchunked', 'chunked\0'].map((coding) =>
    refused(`the coding "${coding}"`, post([`Transfer-Encoding: ${coding}`], CHUNKS)),
  ),
  ...[
    'identity',
    'xchunked',
    'chunkedx',
    'chunked;q=1',
    '"chunked"',
    'gzip',
    'chunked gzip',
    'gzip, chunked',
    'identity, chunked',
    'x, y, chunked',
  ].map((coding) => closing(`the coding "${coding}"`, post([`Transfer-Encoding: ${coding}`], CHUNKS), 400)),
  refused('chunked twice', post([CHUNKED, CHUNKED], CHUNKS)),
  refused('chunked before a length', post([CHUNKED, LENGTH], CHUNKS)),
  refused('chunked behind a length', post([LENGTH, CHUNKED], CHUNKS)),
  refused('chunked beside a length of nothing', post(['Content-Length: 0', CHUNKED], CHUNKS)),
  refused('chunked behind a space', post(['Transfer-Encoding : chunked'], CHUNKS)),
  refused('chunked on a folded line', post(['Transfer-Encoding:\r\n chunked'], CHUNKS)),
  closing('chunked by another name', post([CHUNKED.replace('-', '_')], CHUNKS), 400),
  closing('chunked in HTTP/1.0', post([CHUNKED, 'Connection: keep-alive'], CHUNKS, 'HTTP/1.0'), 400),
];

const SIZE = BODY.length.toString(16);

const chunks: RawRow[] = [
  answered(
    'a chunk of leading zeros and capitals',
    post([CHUNKED], CHUNKS.replace(SIZE, `000${SIZE.toUpperCase()}`)),
    200,
  ),
  answered(
    'a chunk for each byte',
    post([CHUNKED], `${[...BODY].map((byte) => `1\r\n${byte}\r\n`).join('')}0\r\n\r\n`),
    200,
  ),
  ...[';a=b', ';a', ';a="b c"', ';a=b;c=d'].map((extension) =>
    answered(`the extension ${extension}`, post([CHUNKED], CHUNKS.replace(SIZE, `${SIZE}${extension}`)), 200),
  ),
  ...[
    '',
    'g',
    '-1',
    '+5',
    '0x5',
    ' 5',
    `${SIZE} `,
    `${SIZE}\t`,
    `${SIZE}\n`,
    `${SIZE}\r`,
    'fffffffffffffffff',
    `${SIZE};a="`,
    `${SIZE};a\0`,
  ].map((size) => closing(`the size ${JSON.stringify(size)}`, post([CHUNKED], CHUNKS.replace(SIZE, size)), 400)),
  closing(
    'an extension of 20,000 bytes',
    post([CHUNKED], CHUNKS.replace(SIZE, `${SIZE};a=${'b'.repeat(20_000)}`)),
    400,
  ),
  closing('a size that ends in LF', post([CHUNKED], CHUNKS.replace(`${SIZE}\r`, SIZE)), 400),
  closing('a chunk that is longer than its size', post([CHUNKED], CHUNKS.replace('}', '}}}}')), 400),
  closing('a chunk that ends in LF', post([CHUNKED], CHUNKS.replace('}\r\n', '}\n')), 400),
  closing('a last chunk that ends in LF', post([CHUNKED], CHUNKS.replace('0\r\n\r\n', '0\n\n')), 400),
  answered('trailers', post([CHUNKED, 'Trailer: X-A'], CHUNKS.replace(/\r\n$/, 'X-A: b\r\n\r\n')), 200),
  answered(
    'a trailer that would grant',
    `POST /v2/webhooks HTTP/1.1\r\n${OWN}${CHUNKED}\r\n\r\n${CHUNKS.replace(/\r\n$/, 'Authorization: {basic}\r\n\r\n')}`,
    401,
  ),
  answered(
    'trailers that would frame',
    post([CHUNKED], CHUNKS.replace(/\r\n$/, 'Host: y\r\nX-Target-Server: z\r\n\r\n')),
    200,
  ),
  closing('a trailer of no form', post([CHUNKED], CHUNKS.replace(/\r\n$/, 'A b\r\n\r\n')), 400),
  closing(
    'trailers of 200,000 bytes',
    post([CHUNKED], CHUNKS.replace(/\r\n$/, `A: ${'x'.repeat(200_000)}\r\n\r\n`)),
    400,
  ),
];

/** Bodies and their ends, by RFC 9112 sections 6 and 7. */
export const BODY_ROWS: readonly RawRow[] = [lengths, codings, chunks].flat();
