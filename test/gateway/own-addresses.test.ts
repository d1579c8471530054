import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { replaceOwnAddresses } from '../../src/gateway/proxy/headers.ts';
import { type Forwarder, startForwarder } from '../support/gateway/forwarder.ts';
import { request, sendRaw, watched } from '../support/gateway/raw.ts';
import { startRawUpstream } from '../support/gateway/raw-upstream.ts';
import { beforeTests } from '../support/harness/before-tests.ts';

const PUBLIC = 'https://api.example/custody';

const raw = beforeTests(() => startRawUpstream((socket) => socket.write(answer, 'latin1')));
let answer = '';
let f: Forwarder;
/** The host and port of the service. */
let own: string;

beforeAll(async () => {
  own = new URL(raw.url).host;
  const service = (at: string) => ({ at, breaker: { failures: 1_000 } });
  f = await startForwarder({
    services: { root: service(raw.url), based: service(`${raw.url}/base`) },
    endpoints: ['root', 'based'].map((name) => ({ methods: ['GET', 'POST'], path: `/${name}/**`, services: [name] })),
    publicUrl: PUBLIC,
  });
});
afterAll(async () => {
  await f[Symbol.asyncDispose]();
});

/** The value of a header field that a client receives for the one that the service sends; `{own}` is its host. */
async function passed(
  service: string,
  name: string,
  value: string,
  status = '201 Created',
): Promise<string | undefined> {
  answer = `HTTP/1.1 ${status}\r\n${name}: ${value.replaceAll('{own}', own)}\r\nContent-Length: 0\r\n\r\n`;
  const got = await sendRaw(f.url, request('GET', `/${service}/x`));
  return got.headers[name.toLowerCase()];
}

/** URLs of a service at `http://{own}`, and what clients get in their place. */
const OWN: [sent: string, received: string][] = [
  ['http://{own}/v1/things/7', '/v1/things/7'],
  ['http://{own}/v1/things/7?a=b&c=%2F#part', '/v1/things/7?a=b&c=%2F#part'],
  ['http://{own}', ''],
  ['http://{own}/', '/'],
  ['http://{own}?a=b', '?a=b'],
  ['http://{own}#part', '#part'],
  ['HTTP://{own}/x', '/x'],
  ['//{own}/x', '/x'],
  ['https://{own}/x', '/x'],
  ['http://user:secret@{own}/x', '/x'],
  ['//user@{own}/x', '/x'],
  ['http://{own}/a,b;c="d"', '/a,b;c="d"'],
  ['http://{own}/caf\xe9', '/caf\xe9'],
  ['http://{own}//double//slash', '//double//slash'],
  ['http:\\\\{own}\\x', '\\x'],
  ['/\\{own}/x', '/x'],
];

const OTHERS = [
  ...['/v1/things/7', 'things/7', '../7', '?page=2', '#part', '', '.', 'x:y', 'mailto:a@b.example', 'urn:uuid:1'],
  ...['https://other.example/x', '//other.example/x', 'http://{own}.evil.example/', 'http://{own}@evil.example/x'],
  ...['http://x{own}/', 'http://localhost/x', 'http://127.0.0.1/x', 'http://127.0.0.1:1/x', 'http://[::1]:80/x'],
  ...['ftp://{own}/x', 'ws://{own}/x', 'app://{own}/x', 'http://{own}0/x', 'http://', 'http://[', 'http://%zz/'],
  ...['https://other.example/?next=http://{own}/x', '/login?next=//{own}/x'],
];

describe('the internal address of a service', () => {
  it.each(OWN)('D2-10: in Location, %s becomes the public URL with %s', async (sent, received) => {
    for (const status of ['201 Created', '302 Found', '307 Temporary Redirect', '200 OK'])
      expect(await passed('root', 'Location', sent, status)).toBe(PUBLIC + received);
    expect(await passed('root', 'Content-Location', sent)).toBe(PUBLIC + received);
  });

  it.each(OTHERS)('D2-10: in Location, %j is unchanged', async (sent) => {
    expect(await passed('root', 'Location', sent)).toBe(sent.replaceAll('{own}', own).trim());
    expect(await passed('based', 'Content-Location', sent)).toBe(sent.replaceAll('{own}', own).trim());
  });

  it.each<[sent: string, received: string]>([
    ['http://{own}/base/v1/x', '/v1/x'],
    ['http://{own}/base', ''],
    ['http://{own}/base/', '/'],
    ['http://{own}/base?page=2', '?page=2'],
    ['//{own}/base/x', '/x'],
    ['http://{own}/basement/x', '/basement/x'],
    ['http://{own}/other', '/other'],
    ['http://{own}/', '/'],
  ])('D2-10: of a service with a path, %s is replaced without that path', async (sent, received) => {
    expect(await passed('based', 'Location', sent)).toBe(PUBLIC + received);
  });

  it.each<[name: string, sent: string, received: string]>([
    [
      'Link',
      '<http://{own}/a?page=2>; rel="next", </a?page=1>; rel="prev", <https://other.example/>; rel=help, <//{own}/b>',
      `<${PUBLIC}/a?page=2>; rel="next", </a?page=1>; rel="prev", <https://other.example/>; rel=help, <${PUBLIC}/b>`,
    ],
    ['Link', '<http://{own}/a,b>; title="http://{own}/"', `<${PUBLIC}/a,b>; title="http://{own}/"`],
    ['Refresh', '5; url=http://{own}/x?a=b', `5; url=${PUBLIC}/x?a=b`],
    ['Refresh', '0;URL="http://{own}/x"', `0;URL="${PUBLIC}/x"`],
    ['Refresh', "0, url = '//{own}/x'", `0, url = '${PUBLIC}/x'`],
    ['Refresh', '5', '5'],
    ['Refresh', '5; http://{own}/x', `5; ${PUBLIC}/x`],
    ['Link', '<a<http://{own}/x>, <http://{own}/x', `<a<${PUBLIC}/x>, <http://{own}/x`],
    ['X-Upstream', 'http://{own}/x', 'http://{own}/x'],
  ])('D2-10: in %s is replaced: %s', async (name, sent, received) => {
    expect(await passed('root', name, sent)).toBe(received.replaceAll('{own}', own));
  });

  it('D2-10: is replaced in several Link lines and in an interim response too', async () => {
    const link = `Link: <http://${own}/style.css>; rel=preload\r\n`;
    answer = `HTTP/1.1 103 Early Hints\r\n${link}${link}\r\nHTTP/1.1 200 OK\r\n${link}${link}Content-Length: 0\r\n\r\n`;
    const { socket, text } = watched(f.url);
    socket.write(request('GET', '/root/x'));
    await once(socket, 'end');
    socket.destroy();
    expect(text().match(new RegExp(`<${PUBLIC}/style.css>`, 'g'))).toHaveLength(4);
    expect(text()).not.toContain(own);
  });

  it.each<[name: string, before: string, repeated: string, after: string]>([
    ['link', '', '<', ''],
    ['link', '<', 'a', ''],
    ['link', '', '<a', ''],
    ['refresh', '0', ' ', 'b'],
    ['refresh', '0', ' ', '"'],
    ['refresh', '0', '= ', 'b'],
    ['refresh', '0; url', ' ', 'b'],
    ['refresh', '0; url=', ' ', '"'],
    ['refresh', '', '1', ' "'],
    ['refresh', '', 'url=', '"'],
    ['location', '', '/\\', ''],
    ['location', ' ', ' ', 'b'],
  ])('D2-10 D6-24: is sought in linear time in %s: %j and 16 KiB of %j, then %j', (name, before, repeated, after) => {
    const timeOf = (bytes: number) => {
      const value = before + repeated.repeat(bytes / repeated.length) + after;
      const cpu = process.cpuUsage();
      replaceOwnAddresses({ [name]: value }, { at: new URL('http://things.internal'), prefix: '' }, PUBLIC);
      const { user, system } = process.cpuUsage(cpu);
      return user + system;
    };
    const least = (bytes: number) => Math.min(...Array.from({ length: 3 }, () => timeOf(bytes)));
    // Quadratic patterns take a second and more.
    expect(least(16_384)).toBeLessThan(32 * least(1_024) + 200_000);
  });

  it.each<[at: string, sent: string]>([
    ['http://things.internal', 'http://things.internal:80/x'],
    ['http://things.internal', 'http://THINGS.Internal/x'],
    ['https://things.internal', 'https://things.internal:443/x'],
    ['http://[::1]:8080', 'http://[0:0:0:0:0:0:0:1]:8080/x'],
    ['http://127.0.0.1:8080', 'http://127.1:8080/x'],
  ])('D2-10: of %s is recognised in %s', (at, sent) => {
    const headers = { location: sent };
    replaceOwnAddresses(headers, { at: new URL(at), prefix: '' }, PUBLIC);
    expect(headers.location).toBe(`${PUBLIC}/x`);
  });
});
